package stats

import (
	"math"
	"slices"
)

// Autocorrelation returns the correlation of the series with itself shifted by lag samples; 0 for
// a constant series.
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

// TheilSen returns the median of the slopes between all pairs of samples, per sample.
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

// MannKendall returns the two-sided p-value of the trend test, by the normal approximation with
// correction for ties.
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

// Pettitt finds the most likely level change: the index of the first sample after it, and the
// approximate p-value (Pettitt 1979).
func Pettitt(s []float64) (at int, p float64) {
	n := len(s)
	if n < 2 {
		return 0, 1
	}
	// Ranks, with the mean among ties.
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
		// The test statistic's own maximum is biased to the centre; scaled by its spread it
		// locates the change.
		if z := u / math.Sqrt(float64(t*(n-t))); z > sharpest {
			sharpest, at = z, t
		}
	}
	nn := float64(n)
	return at, min(1, 2*math.Exp(-6*best*best/(nn*nn*nn+nn*nn)))
}

// Modes distinguishes two separate groups of samples (2) from one (1). The widest gap between
// sorted samples, with at least a tenth of them on either side, must exceed five times the spread
// within both groups and be of practical size. Below 20 samples the result is 1.
func Modes(samples []float64) int {
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
