package loss

import "math"

// deviations is what a normal number differs from its mean by in 95 of 100 cases, in standard deviations.
const deviations = 1.959964

// rate is the 95 % interval of a share of which k of n samples were seen: the one of the score test (Wilson, "Probable
// inference, the law of succession, and statistical inference", 1927). Unlike that of samples drawn again it has a length where all
// samples agree: none of n leaves up to some 3.84 of n+3.84.
func rate(k, n float64) (lo, hi float64) {
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	const z2 = deviations * deviations
	p := k / n
	middle := (p + z2/(2*n)) / (1 + z2/n)
	half := deviations / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return max(middle-half, 0), min(middle+half, 1)
}

// difference is the 95 % interval of the difference of two shares on the same n samples, of which lost have only the first
// and won only the second: the one of the score test (Tango, "Equivalence test and confidence interval for the difference in proportions for the
// paired-sample design", 1998).
func difference(lost, won, n float64) (lo, hi float64) {
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	// score is how far what was seen lies from a difference d, in standard deviations under d.
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
			if d := (in + out) / 2; math.Abs(score(d)) < deviations {
				in = d
			} else {
				out = d
			}
		}
		return in
	}
	return end(-1), end(1)
}

// paired is the deviation of samples' differences, of which lost are 1, won -1 and the others of n 0.
func paired(lost, won, n float64) float64 {
	mean := (lost - won) / n
	return math.Sqrt(max((lost+won)/n-mean*mean, 0) * n / max(n-1, 1))
}
