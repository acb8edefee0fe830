package profile

import "github.com/opmeter/opmeter/internal/base/stats"

// Summarize makes a metric of samples in any order: the parts that their number
// allows. The unit is theirs. It returns nil for no samples.
func Summarize(kind Kind, samples []float64, method string) *Metric {
	return FromSummary(kind, stats.Summarize(samples), method)
}

// FromSummary is [Summarize] for samples that were summarised before, or were never
// all kept. It returns nil for a summary of no samples. Method should say that
// quantiles are of a part of the samples where the summary has fewer than it counts.
func FromSummary(kind Kind, s stats.Summary, method string) *Metric {
	if s.N == 0 {
		return nil
	}
	return &Metric{
		Kind: kind, Method: method, N: new(s.N),
		Median: new(s.Median), Mean: new(s.Mean), Min: new(s.Min), Max: new(s.Max),
		P90: s.P90, P95: s.P95, P99: s.P99, StdDev: s.StdDev, MAD: s.MAD, CI95: s.CI95, Outliers: s.Outliers,
	}
}
