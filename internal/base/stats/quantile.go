package stats

import (
	"math"
	"slices"
)

// Median returns the median of samples in any order, NaN for none.
func Median(samples []float64) float64 {
	s := slices.Clone(samples)
	slices.Sort(s)
	return Quantile(s, 0.5)
}

// Quantile returns the p-quantile of sorted samples, linear between the order
// statistics at 1+(n-1)p: type 7 of Hyndman and Fan. A p outside 0 to 1 gives the
// extremes, no samples NaN.
func Quantile(sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	h := float64(n-1) * min(max(p, 0), 1)
	i := int(h)
	if i+1 >= n {
		return sorted[n-1]
	}
	f := h - float64(i)
	if f == 0 {
		return sorted[i]
	}
	return sorted[i] + f*(sorted[i+1]-sorted[i])
}

// Conformal returns the bound that a further sample keeps with probability coverage. Among n
// samples that is the one of rank (n+1)*coverage, slightly above the quantile because the bound
// is estimated from the samples themselves. It is computed as [Quantile] at coverage*(n+1)/n, and
// is the largest sample if that exceeds 1. NaN for no samples.
func Conformal(samples []float64, coverage float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	n := float64(len(s))
	return Quantile(s, math.Min(1, coverage*(n+1)/n))
}

// MinSamples is the minimum number of samples for a two-sided 95 % interval of the p-quantile: 36
// for 0.9, 72 for 0.95, 368 for 0.99. For p of 0 and 1 no number suffices: the result is the
// largest integer.
func MinSamples(p float64) int {
	p = max(p, 1-p)
	if p >= 1 {
		return math.MaxInt
	}
	return int(math.Ceil(math.Log(0.025) / math.Log(p)))
}

// MedianInterval returns the order statistics of sorted samples that enclose the median with at
// least 95 % confidence for any distribution, by the binomial distribution with p = 1/2. ok is
// false below six samples.
func MedianInterval(sorted []float64) (lo, hi float64, ok bool) {
	n := len(sorted)
	k := medianRank(n)
	if k < 1 {
		return 0, 0, false
	}
	return sorted[k-1], sorted[n-k], true
}

// medianRank is the largest k for which P(Binomial(n, 1/2) < k) <= 2.5 %, 0 if absent.
func medianRank(n int) int {
	if n > 1000 {
		// The normal approximation is accurate to one rank here; subtracting one keeps the
		// interval conservative.
		return max(0, int(math.Floor(float64(n)/2-1.959964*math.Sqrt(float64(n))/2)))
	}
	lgn, _ := math.Lgamma(float64(n + 1))
	sum := 0.0
	for k := 0; k <= n/2; k++ {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		sum += math.Exp(lgn - a - b - float64(n)*math.Ln2)
		if sum > 0.025 {
			return k
		}
	}
	return 0
}
