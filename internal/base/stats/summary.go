package stats

import (
	"math"
	"slices"
)

// Summary describes samples, in their unit. Fields that need more samples are nil; without
// samples N is 0 and Median, Mean, Min and Max are NaN.
type Summary struct {
	// N is the number of samples, Kept how many of them were retained: fewer if the others were
	// only counted (see [Reservoir]). N, Mean, Min and Max cover all samples, everything else
	// those retained.
	N, Kept int64
	// Median is the median and Mean the arithmetic mean.
	Median, Mean float64
	// Min and Max are the extreme samples.
	Min, Max float64
	// StdDev is the sample standard deviation (divisor n-1) and MAD the unscaled median absolute
	// deviation from the median; from two samples.
	StdDev, MAD *float64
	// P90, P95 and P99 are percentiles by [Quantile]; from [MinSamples] samples.
	P90, P95, P99 *float64
	// CI95 is the [MedianInterval]; from six samples.
	CI95 *[2]float64
	// Outliers is the number of samples outside Tukey's inner fences; from four
	// samples.
	Outliers *int64
}

// Summarize describes samples in any order, which it does not change.
func Summarize(samples []float64) Summary {
	n := len(samples)
	out := Summary{N: int64(n), Kept: int64(n), Median: math.NaN(), Mean: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	if n == 0 {
		return out
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	out.Median, out.Mean, out.Min, out.Max = Quantile(s, 0.5), Mean(s), s[0], s[n-1]
	if n >= 2 {
		out.StdDev, out.MAD = new(StdDev(s)), new(deviation(s, out.Median))
	}
	for _, q := range []struct {
		p   float64
		dst **float64
	}{{0.90, &out.P90}, {0.95, &out.P95}, {0.99, &out.P99}} {
		if n >= MinSamples(q.p) {
			*q.dst = new(Quantile(s, q.p))
		}
	}
	if lo, hi, ok := MedianInterval(s); ok {
		out.CI95 = &[2]float64{lo, hi}
	}
	if n >= 4 {
		o := Tukey(s)
		out.Outliers = new(int64(o.Mild() + o.Severe()))
	}
	return out
}
