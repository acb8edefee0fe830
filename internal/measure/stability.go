package measure

import (
	"fmt"
	"math"
	"slices"
)

// Limits of the verdicts. A test must be both significant and of practical size.
const (
	// UnstableCV is the coefficient of variation above which times are called
	// unstable; the default of trtexec.
	UnstableCV = 0.025
	// significant is the error probability below which a test counts.
	significant = 0.01
	// practical is the relative change below which drift and steps do not matter.
	practical = 0.025
	// minTrend is the least number of samples for the tests of trend and change.
	minTrend = 10
)

// Stability is what can be said about samples as a series in time.
type Stability struct {
	N int
	// CV is the coefficient of variation, RobustCV the same from the median and
	// the scaled MAD, which a few outliers do not move.
	CV, RobustCV float64
	// Unstable says that CV is above [UnstableCV].
	Unstable bool
	// Lag1 is the autocorrelation of neighbours. Above AutoLimit in size the
	// samples are not independent and intervals are too narrow.
	Lag1, AutoLimit float64
	// Drift is the Theil–Sen slope over the whole series, as a fraction of the
	// median; DriftP the error probability of the Mann–Kendall test for a trend.
	Drift, DriftP float64
	// ChangeAt is the index of the first sample after the most likely change of
	// level (Pettitt's test), Change its relative size (after/before - 1), ChangeP
	// the error probability.
	ChangeAt        int
	Change, ChangeP float64
	// Modes is 2 when the samples fall into two clearly separate groups, else 1.
	Modes int
	// Steady is nil when there are too few samples to tell; Reason says why, or
	// why the series is not steady.
	Steady *bool
	Reason string
}

// Judge tests samples in the order in which they were taken.
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
	s.Modes = modes(samples)
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
	case s.ChangeP < significant && math.Abs(s.Change) > practical:
		steady = false
		s.Reason = fmt.Sprintf("the time changes by %+.1f %% at run %d of %d", 100*s.Change, s.ChangeAt+1, n)
	case s.DriftP < significant && math.Abs(s.Drift) > practical:
		steady = false
		s.Reason = fmt.Sprintf("the time drifts by %+.1f %% over %d runs", 100*s.Drift, n)
	}
	s.Steady = &steady
	return s
}

// thinned reduces a long series to at most n medians of equal blocks, since the
// tests compare all pairs.
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

// Autocorrelation is the correlation of the series with itself lag samples
// later; 0 for a constant series.
func Autocorrelation(s []float64, lag int) float64 {
	if lag >= len(s) {
		return 0
	}
	m := Mean(s)
	num, den := 0.0, 0.0
	for i, v := range s {
		den += (v - m) * (v - m)
		if i >= lag {
			num += (v - m) * (s[i-lag] - m)
		}
	}
	if den == 0 {
		return 0
	}
	return num / den
}

// TheilSen is the median of the slopes between all pairs of samples, a sample.
func TheilSen(s []float64) float64 {
	if len(s) < 2 {
		return 0
	}
	slopes := make([]float64, 0, len(s)*(len(s)-1)/2)
	for i := range s {
		for j := i + 1; j < len(s); j++ {
			slopes = append(slopes, (s[j]-s[i])/float64(j-i))
		}
	}
	slices.Sort(slopes)
	return Quantile(slopes, 0.5)
}

// MannKendall is the two-sided error probability for saying that the series has a
// trend, by the normal approximation with correction for ties.
func MannKendall(s []float64) float64 {
	n := float64(len(s))
	if n < 4 {
		return 1
	}
	sum := 0
	for i := range s {
		for j := i + 1; j < len(s); j++ {
			switch {
			case s[j] > s[i]:
				sum++
			case s[j] < s[i]:
				sum--
			}
		}
	}
	v := n * (n - 1) * (2*n + 5)
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		v -= t * (t - 1) * (2*t + 5)
		i = j
	}
	if v <= 0 || sum == 0 {
		return 1
	}
	z := (math.Abs(float64(sum)) - 1) / math.Sqrt(v/18)
	return math.Erfc(z / math.Sqrt2)
}

// Pettitt finds the most likely change of level: the index of the first sample
// after it, and the approximate error probability (Pettitt 1979).
func Pettitt(s []float64) (at int, p float64) {
	n := len(s)
	if n < 2 {
		return 0, 1
	}
	// Ranks, means among ties.
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case s[a] < s[b]:
			return -1
		case s[a] > s[b]:
			return 1
		}
		return 0
	})
	rank := make([]float64, n)
	for i := 0; i < n; {
		j := i
		for j < n && s[order[j]] == s[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			rank[order[k]] = float64(i+j+1) / 2
		}
		i = j
	}
	sum, best, sharpest := 0.0, 0.0, 0.0
	for t := 1; t < n; t++ {
		sum += rank[t-1]
		u := math.Abs(2*sum - float64(t*(n+1)))
		best = max(best, u)
		// The test's own maximum leans towards the middle; scaled by its spread it
		// points at the change.
		if z := u / math.Sqrt(float64(t*(n-t))); z > sharpest {
			sharpest, at = z, t
		}
	}
	nn := float64(n)
	return at, min(1, 2*math.Exp(-6*best*best/(nn*nn*nn+nn*nn)))
}

// modes tells two separate groups from one: the widest gap between sorted
// samples, with at least a tenth of them on either side, must be wider than five
// times the spread within both groups and of practical size.
func modes(samples []float64) int {
	n := len(samples)
	if n < 20 {
		return 1
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	cut, gap := 0, 0.0
	for i := max(n/10, 2); i <= n-max(n/10, 2); i++ {
		if d := s[i] - s[i-1]; d > gap {
			cut, gap = i, d
		}
	}
	if cut == 0 || gap < practical*Quantile(s, 0.5) {
		return 1
	}
	within := max(StdDev(s[:cut]), StdDev(s[cut:]))
	if gap > 5*within {
		return 2
	}
	return 1
}
