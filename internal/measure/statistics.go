package measure

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// Summarize describes samples: the parts of a metric that their number allows.
// It returns nil for no samples. Kind is "measured".
func Summarize(samples []float64, method string) *profile.Metric {
	n := len(samples)
	if n == 0 {
		return nil
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	mean := Mean(s)
	m := &profile.Metric{
		Kind: profile.Measured, Method: method, N: new(int64(n)), Median: new(Quantile(s, 0.5)),
		Mean: &mean, Min: &s[0], Max: &s[n-1],
	}
	// Copies: pointers into s would keep all samples alive.
	m.Min, m.Max = new(s[0]), new(s[n-1])
	if n >= 2 {
		m.StdDev = new(StdDev(s))
		m.MAD = new(MAD(s))
	}
	for _, q := range []struct {
		p   float64
		dst **float64
	}{{0.90, &m.P90}, {0.95, &m.P95}, {0.99, &m.P99}} {
		if n >= MinSamples(q.p) {
			*q.dst = new(Quantile(s, q.p))
		}
	}
	if lo, hi, ok := MedianInterval(s); ok {
		m.CI95 = &[2]float64{lo, hi}
	}
	if n >= 4 {
		o := Tukey(s)
		m.Outliers = new(int64(o.Mild() + o.Severe()))
	}
	return m
}

// Mean is the arithmetic mean, NaN for no samples.
func Mean(s []float64) float64 {
	sum, comp := 0.0, 0.0 // compensated: millions of nanoseconds lose digits otherwise
	for _, v := range s {
		y := v - comp
		t := sum + y
		comp = (t - sum) - y
		sum = t
	}
	return sum / float64(len(s))
}

// StdDev is the sample standard deviation (divisor n-1), NaN below two samples.
func StdDev(s []float64) float64 {
	m, ss := Mean(s), 0.0
	for _, v := range s {
		ss += (v - m) * (v - m)
	}
	return math.Sqrt(ss / float64(len(s)-1))
}

// CV is the coefficient of variation: standard deviation over mean.
func CV(s []float64) float64 { return StdDev(s) / Mean(s) }

// Median of samples in any order, NaN for none.
func Median(samples []float64) float64 {
	s := slices.Clone(samples)
	slices.Sort(s)
	return Quantile(s, 0.5)
}

// Quantile returns the p-quantile of sorted samples (type 7 of Hyndman and Fan),
// NaN for none.
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

// MAD is the median absolute deviation from the median. Times 1.4826 it estimates
// the standard deviation of normal samples.
func MAD(samples []float64) float64 {
	med := Median(samples)
	d := make([]float64, len(samples))
	for i, v := range samples {
		d[i] = math.Abs(v - med)
	}
	return Median(d)
}

// MinSamples is the least number of samples for which a two-sided 95 % interval
// of the p-quantile exists: 36 for 0.9, 72 for 0.95, 368 for 0.99.
func MinSamples(p float64) int {
	p = max(p, 1-p)
	return int(math.Ceil(math.Log(0.025) / math.Log(p)))
}

// MedianInterval returns the order statistics of sorted samples that enclose the
// median with at least 95 % confidence, whatever the distribution: by the
// binomial distribution with p = 1/2. ok is false below six samples.
func MedianInterval(sorted []float64) (lo, hi float64, ok bool) {
	n := len(sorted)
	k := medianRank(n)
	if k < 1 {
		return 0, 0, false
	}
	return sorted[k-1], sorted[n-k], true
}

// medianRank is the largest k for which P(Binomial(n, 1/2) < k) <= 2.5 %, 0 when
// there is none.
func medianRank(n int) int {
	if n > 1000 {
		// The normal approximation is exact to a rank here; one is given up to stay
		// on the safe side.
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

// Outliers counts samples outside Tukey's fences.
type Outliers struct {
	LowSevere, LowMild, HighMild, HighSevere int
}

// Mild is the number between the inner (1.5 quartile ranges) and outer fences.
func (o Outliers) Mild() int { return o.LowMild + o.HighMild }

// Severe is the number beyond the outer fences (3 quartile ranges).
func (o Outliers) Severe() int { return o.LowSevere + o.HighSevere }

// Tukey classifies sorted samples by their distance from the quartiles.
func Tukey(sorted []float64) Outliers {
	q1, q3 := Quantile(sorted, 0.25), Quantile(sorted, 0.75)
	iqr := q3 - q1
	var o Outliers
	for _, v := range sorted {
		switch {
		case v < q1-3*iqr:
			o.LowSevere++
		case v < q1-1.5*iqr:
			o.LowMild++
		case v > q3+3*iqr:
			o.HighSevere++
		case v > q3+1.5*iqr:
			o.HighMild++
		}
	}
	return o
}
