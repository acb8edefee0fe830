package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Kind says how a figure came about.
type Kind string

// Kinds of figures.
const (
	Counted   Kind = "counted"   // follows from the model alone
	Measured  Kind = "measured"  // taken from hardware
	Simulated Kind = "simulated" // made by an exact model of hardware
	Estimated Kind = "estimated" // made by an approximate model, has a band
	Imported  Kind = "imported"  // from another tool's record, as it stands there
)

// kinds lists the kinds of figures, the surest first.
var kinds = []string{string(Counted), string(Measured), string(Simulated), string(Estimated), string(Imported)}

// Metric is a figure with its kind and spread. All parts but kind are left out
// where they are not known; percentiles need a minimum of samples to exist (36
// for p90, 368 for p99). The unit is that of the key under which the metric
// stands.
type Metric struct {
	// Kind says how the figure came about.
	Kind Kind `json:"kind"`
	// N is the number of samples.
	N *int64 `json:"n,omitzero"`
	// Median is the middle sample, or the one value of a figure that has no spread. The
	// median time of a layer is its share of the inference times the latency, so that
	// the layers add up (see docs/reference/measurement-quality.md).
	Median *float64 `json:"median,omitzero"`
	// Mean is the arithmetic mean.
	Mean *float64 `json:"mean,omitzero"`
	// Min and Max are the extreme samples.
	Min *float64 `json:"min,omitzero"`
	Max *float64 `json:"max,omitzero"`
	// P90, P95 and P99 are percentiles.
	P90 *float64 `json:"p90,omitzero"`
	P95 *float64 `json:"p95,omitzero"`
	P99 *float64 `json:"p99,omitzero"`
	// StdDev is the sample standard deviation (divisor n-1).
	StdDev *float64 `json:"stddev,omitzero"`
	// MAD is the median absolute deviation from the median, not scaled.
	MAD *float64 `json:"mad,omitzero"`
	// CI95 is a 95 % confidence interval of the median (of the mean where method
	// says so).
	CI95 *[2]float64 `json:"ci95,omitzero"`
	// Band is the interval that holds the true value of an estimate in the stated
	// share of cases (see method).
	Band *[2]float64 `json:"band,omitzero"`
	// Outliers is the number of samples outside Tukey's inner fences. They are
	// counted and never dropped.
	Outliers *int64 `json:"outliers,omitzero"`
	// Method names how the figure was made.
	Method string `json:"method,omitzero"`
}

// Estimator names the part that [Metric.Best] returns: "median", "mean"
// or "min"; "value" for a figure without spread, "" if absent.
func (m *Metric) Estimator() string {
	switch {
	case m == nil:
		return ""
	case m.Median != nil && m.Mean == nil && m.N == nil:
		return "value"
	case m.Median != nil:
		return "median"
	case m.Mean != nil:
		return "mean"
	case m.Min != nil:
		return "min"
	}
	return ""
}

// Value makes a metric of one figure without spread.
func Value(kind Kind, v float64, method string) *Metric {
	return &Metric{Kind: kind, Median: &v, Method: method}
}

// Best returns the median, else the mean, else the minimum. ok is false if m is nil or
// has none of them.
func (m *Metric) Best() (v float64, ok bool) {
	if m == nil {
		return 0, false
	}
	for _, p := range []*float64{m.Median, m.Mean, m.Min} {
		if p != nil {
			return *p, true
		}
	}
	return 0, false
}

// Interval returns the interval of the figure that [Metric.Best] returns: the band of an estimate,
// or else the 95 % confidence interval. It is nil if m has none, or one that does not enclose the
// figure and so belongs to another statistic.
func (m *Metric) Interval() *[2]float64 {
	v, ok := m.Best()
	if !ok {
		return nil
	}
	iv := cmp.Or(m.Band, m.CI95)
	// Sums in floating point may put the figure a rounding error outside.
	if slack := 1e-9 * math.Abs(v); iv == nil || v < iv[0]-slack || v > iv[1]+slack {
		return nil
	}
	return iv
}

// Validate checks that the parts of m agree with each other.
func (m *Metric) Validate() error {
	if !slices.Contains(kinds, string(m.Kind)) {
		return fmt.Errorf("kind %q is none of %s", m.Kind, strings.Join(kinds, ", "))
	}
	if *m == (Metric{Kind: m.Kind, Median: m.Median, Method: m.Method}) && m.Median != nil && !math.IsNaN(*m.Median) && !math.IsInf(*m.Median, 0) {
		return nil // one figure without spread, as most are
	}
	if m.N != nil && *m.N < 0 {
		return fmt.Errorf("n is %d", *m.N)
	}
	if m.Outliers != nil && *m.Outliers < 0 {
		return fmt.Errorf("outliers is %d", *m.Outliers)
	}
	parts := []struct {
		name string
		v    *float64
	}{
		{"median", m.Median}, {"mean", m.Mean}, {"min", m.Min}, {"max", m.Max}, {"p90", m.P90}, {"p95", m.P95}, {"p99", m.P99}, {"stddev", m.StdDev}, {"mad", m.MAD},
	}
	for _, p := range parts {
		if p.v != nil && (math.IsNaN(*p.v) || math.IsInf(*p.v, 0)) {
			return fmt.Errorf("%s is %v", p.name, *p.v)
		}
	}
	if m.StdDev != nil && *m.StdDev < 0 || m.MAD != nil && *m.MAD < 0 {
		return errors.New("a spread is negative")
	}
	// Sums in floating point may put a mean a rounding error outside.
	for _, p := range parts[:7] {
		if p.v == nil {
			continue
		}
		slack := 1e-9 * math.Abs(*p.v)
		if m.Min != nil && *p.v < *m.Min-slack || m.Max != nil && *p.v > *m.Max+slack {
			return fmt.Errorf("%s %v lies outside min and max", p.name, *p.v)
		}
	}
	for i, iv := range []*[2]float64{m.CI95, m.Band} {
		name := [...]string{"ci95", "band"}[i]
		if iv != nil && !(iv[0] <= iv[1] && !math.IsInf(iv[0], 0) && !math.IsInf(iv[1], 0)) {
			return fmt.Errorf("%s [%v, %v] is not an interval", name, iv[0], iv[1])
		}
	}
	return nil
}
