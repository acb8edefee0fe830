package draft

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// Metric makes the parts of a recorded figure consistent. It removes parts that are not finite or
// negative, and a minimum or maximum that contradicts other parts, as rounding may cause. The
// result is nil for nil and for a figure without parts. The kind is [profile.Imported].
func Metric(m *profile.Metric) *profile.Metric {
	if m == nil {
		return nil
	}
	out := *m
	out.Kind = profile.Imported
	middles := []**float64{&out.Median, &out.Mean, &out.P90, &out.P95, &out.P99}
	for _, v := range append(middles, &out.Min, &out.Max, &out.StdDev, &out.MAD) {
		if *v != nil && !(**v >= 0 && !math.IsInf(**v, 0)) {
			*v = nil
		}
	}
	for _, n := range []**int64{&out.N, &out.Outliers} {
		if *n != nil && **n < 0 {
			*n = nil
		}
	}
	for _, v := range middles {
		if *v != nil && out.Min != nil && **v < *out.Min {
			out.Min = nil
		}
		if *v != nil && out.Max != nil && **v > *out.Max {
			out.Max = nil
		}
	}
	if out.Min != nil && out.Max != nil && *out.Min > *out.Max {
		out.Min, out.Max = nil, nil
	}
	if _, ok := out.Best(); !ok {
		return nil
	}
	return &out
}

// Value is a figure without a spread.
func Value(v float64) *profile.Metric { return Metric(profile.Value(profile.Imported, v, "")) }

// Samples makes a figure of values, nil without values; kept has at most some thousand of them.
func Samples(values []float64, method string) (m *profile.Metric, kept []float64) {
	r := stats.NewReservoir(min(len(values), profile.KeptSamples))
	for _, v := range values {
		if v >= 0 && !math.IsInf(v, 0) {
			r.Add(v)
		}
	}
	if r.N() == 0 {
		return nil, nil
	}
	kept, _ = r.Kept()
	return Metric(profile.FromSummary(profile.Imported, r.Summary(), method)), kept
}

// Figure is [Samples] for values of which a single one has no spread.
func Figure(values []float64, method string) (*profile.Metric, []float64) {
	if len(values) != 1 {
		return Samples(values, method)
	}
	m := Value(values[0])
	if m != nil {
		m.Method = method
	}
	return m, nil
}
