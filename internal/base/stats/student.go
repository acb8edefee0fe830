package stats

import (
	"math"
	"slices"
)

// StudentP returns the two-sided probability of Student's distribution: that of an absolute value
// of at least t, with any number of degrees of freedom above 0. With infinite ones it is that of
// the normal distribution. It is accurate to about 1e-12 (regularised incomplete beta function by
// its continued fraction, Abramowitz and Stegun 26.5.8 and 26.7.1).
func StudentP(t, freedom float64) float64 {
	switch {
	case math.IsNaN(t) || math.IsNaN(freedom) || freedom <= 0:
		return math.NaN()
	case math.IsInf(t, 0):
		return 0
	case freedom > 1e6: // the two agree to a millionth
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return betaFraction(freedom/2, 0.5, freedom/(freedom+t*t))
}

// StudentQuantile returns the t that [StudentP] gives the probability p for: 1.96 for 0.05 and
// infinite degrees of freedom.
func StudentQuantile(p, freedom float64) float64 {
	if !(p > 0 && p < 1) || !(freedom > 0) {
		return math.NaN()
	}
	low := math.Sqrt2 * math.Erfinv(1-p)
	if freedom > 1e6 {
		return low
	}
	high := 2*low + 1
	for StudentP(high, freedom) > p && high < math.MaxFloat64/4 {
		low, high = high, 2*high
	}
	for high-low > 1e-13*high {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if StudentP(middle, freedom) > p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// Normal returns the value that the standard normal distribution exceeds, on either side, with a
// probability of tail in all: 1.96 for 0.05.
func Normal(tail float64) float64 { return math.Sqrt2 * math.Erfcinv(tail) }

// betaFraction is the regularised incomplete beta function I_x(a, b).
func betaFraction(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // the fraction converges fast below
		return 1 - betaFraction(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	// Lentz's method for the continued fraction.
	const tiny = 1e-300
	c, d := 1.0, 0.0
	f := 1.0
	for i := range 400 {
		m := float64(i / 2)
		var n float64
		switch {
		case i == 0:
			n = 1
		case i%2 == 0:
			n = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			n = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 + n*d
		if math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		c = 1 + n/c
		if math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if math.Abs(1-c*d) < 1e-14 && i > 0 {
			break
		}
	}
	return front * (f - 1)
}

// Discoveries returns which of several hypotheses are rejected if at most the part rate of the
// rejections may be false: the procedure of Benjamini and Hochberg (1995). NaN is a hypothesis that
// nothing is known about: it is not rejected and does not count.
func Discoveries(ps []float64, rate float64) []bool {
	sorted := make([]float64, 0, len(ps))
	for _, p := range ps {
		if !math.IsNaN(p) {
			sorted = append(sorted, p)
		}
	}
	slices.Sort(sorted)
	limit := math.Inf(-1)
	for i, p := range sorted {
		if p <= rate*float64(i+1)/float64(len(sorted)) {
			limit = p
		}
	}
	out := make([]bool, len(ps))
	for i, p := range ps {
		out[i] = p <= limit
	}
	return out
}
