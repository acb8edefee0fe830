package loss

import "math"

// z95 is the normal quantile of a two-sided 95 % interval.
const z95 = 1.959964

// wilsonInterval returns the 95 % score interval of a proportion with k of n samples (Wilson,
// "Probable inference, the law of succession, and statistical inference", 1927). Unlike a
// bootstrap interval it has a length where all samples agree: none of n gives an upper end of
// about 3.84 of n+3.84.
func wilsonInterval(k, n float64) (lo, hi float64) {
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	const z2 = z95 * z95
	p := k / n
	middle := (p + z2/(2*n)) / (1 + z2/n)
	half := z95 / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return max(middle-half, 0), min(middle+half, 1)
}

// tangoInterval returns the 95 % score interval of the difference of two proportions on the same
// n samples, of which lost have only the first property and won only the second (Tango,
// "Equivalence test and confidence interval for the difference in proportions for the
// paired-sample design", 1998).
func tangoInterval(lost, won, n float64) (lo, hi float64) {
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	// score is the distance of the observation from a difference d, in standard deviations under
	// d.
	score := func(d float64) float64 {
		b := -lost - won + (2*n-lost+won)*d
		c := -won * d * (1 - d)
		q := (math.Sqrt(max(b*b-8*n*c, 0)) - b) / (4 * n)
		return (lost - won - n*d) / math.Sqrt(max(n*(2*q+d*(1-d)), 1e-300))
	}
	seen := (lost - won) / n
	end := func(out float64) float64 {
		in := seen
		for range 60 {
			if d := (in + out) / 2; math.Abs(score(d)) < z95 {
				in = d
			} else {
				out = d
			}
		}
		return in
	}
	return end(-1), end(1)
}

// pairedDeviation returns the standard deviation of sample differences, of which lost are 1, won
// are -1 and the rest of n are 0.
func pairedDeviation(lost, won, n float64) float64 {
	mean := (lost - won) / n
	return math.Sqrt(max((lost+won)/n-mean*mean, 0) * n / max(n-1, 1))
}
