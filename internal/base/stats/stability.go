package stats

import (
	"fmt"
	"math"
)

// Limits of the tests. An effect must be both significant and of practical size.
const (
	// UnstableCV is the coefficient of variation above which times count as unstable; the default
	// of trtexec.
	UnstableCV = 0.025
	// significant is the p-value below which a test counts.
	significant = 0.01
	// practical is the relative change below which drift and steps are ignored.
	practical = 0.025
	// minTrend is the minimum number of samples for the trend and change tests.
	minTrend = 10
)

// Stability describes samples as a time series.
type Stability struct {
	N int
	// CV is the coefficient of variation; RobustCV is computed from the median and the scaled
	// MAD, and insensitive to a few outliers.
	CV, RobustCV float64
	// Unstable says that CV is above [UnstableCV].
	Unstable bool
	// Lag1 is the lag-1 autocorrelation. If its magnitude exceeds AutoLimit, the samples are not
	// independent and intervals are too narrow.
	Lag1, AutoLimit float64
	// Drift is the Theil–Sen slope over the whole series, as a fraction of the median; DriftP is
	// the p-value of the Mann–Kendall trend test.
	Drift, DriftP float64
	// ChangeAt is the index of the first sample after the most likely level change (Pettitt's
	// test), Change its relative size (after/before - 1), ChangeP the p-value.
	ChangeAt        int
	Change, ChangeP float64
	// Modes is 2 if the samples form two clearly separate groups, else 1.
	Modes int
	// Steady is nil if there are too few samples to decide; Reason says why, or why the series is
	// not steady.
	Steady *bool
	Reason string
}

// Changed reports whether a level change is the reason that the series is not steady.
func (s *Stability) Changed() bool {
	return s.ChangeP < significant && math.Abs(s.Change) > practical
}

// Judge tests samples in time order.
func Judge(samples []float64) Stability {
	n := len(samples)
	s := Stability{N: n, DriftP: 1, ChangeP: 1, Modes: 1}
	if n >= 2 {
		s.CV = CV(samples)
		s.RobustCV = 1.4826 * MAD(samples) / Median(samples)
		s.Unstable = s.CV > UnstableCV
	}
	if n < minTrend {
		s.Reason = fmt.Sprintf("%d runs are too few to tell a steady state (%d are needed)", n, minTrend)
		return s
	}
	s.Lag1 = Autocorrelation(samples, 1)
	s.AutoLimit = 2 / math.Sqrt(float64(n))
	s.Modes = Modes(samples)
	thin := thinned(samples, 500)
	med := Median(samples)
	s.Drift = TheilSen(thin) * float64(len(thin)-1) / med
	s.DriftP = MannKendall(thin)
	at, p := Pettitt(thin)
	s.ChangeAt, s.ChangeP = at*n/len(thin), p
	if at > 0 && at < len(thin) {
		s.Change = Median(thin[at:])/Median(thin[:at]) - 1
	}
	steady := true
	switch {
	case s.Changed():
		steady = false
		s.Reason = fmt.Sprintf("the time changes by %+.1f %% at run %d of %d", 100*s.Change, s.ChangeAt+1, n)
	case s.DriftP < significant && math.Abs(s.Drift) > practical:
		steady = false
		s.Reason = fmt.Sprintf("the time drifts by %+.1f %% over %d runs", 100*s.Drift, n)
	}
	s.Steady = &steady
	return s
}

// thinned reduces a long series to at most n medians of equal blocks, since the tests compare all
// pairs.
func thinned(s []float64, n int) []float64 {
	if len(s) <= n {
		return s
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = Median(s[i*len(s)/n : (i+1)*len(s)/n])
	}
	return out
}
