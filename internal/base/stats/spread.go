package stats

import "math"

// total is a Kahan sum: sums of millions of nanoseconds lose digits otherwise.
type total struct{ sum, comp float64 }

func (t *total) add(v float64) {
	y := v - t.comp
	s := t.sum + y
	t.comp = (s - t.sum) - y
	t.sum = s
}

// Sum returns the compensated sum of samples in order, 0 for none.
func Sum(samples []float64) float64 {
	var t total
	for _, v := range samples {
		t.add(v)
	}
	return t.sum
}

// Mean is the arithmetic mean, NaN for no samples.
func Mean(samples []float64) float64 { return Sum(samples) / float64(len(samples)) }

// StdDev is the sample standard deviation (divisor n-1), NaN below two samples.
func StdDev(samples []float64) float64 {
	m, ss := Mean(samples), 0.0
	for _, v := range samples {
		ss += (v - m) * (v - m)
	}
	return math.Sqrt(ss / float64(len(samples)-1))
}

// CV is the coefficient of variation: standard deviation over mean.
func CV(samples []float64) float64 { return StdDev(samples) / Mean(samples) }

// MAD is the median absolute deviation from the median, NaN for no samples. Times
// 1.4826 it estimates the standard deviation of normal samples.
func MAD(samples []float64) float64 { return deviation(samples, Median(samples)) }

// deviation returns the median of the distances from a centre.
func deviation(samples []float64, middle float64) float64 {
	d := make([]float64, len(samples))
	for i, v := range samples {
		d[i] = math.Abs(v - middle)
	}
	return Median(d)
}

// Outliers counts samples outside Tukey's fences.
type Outliers struct {
	LowSevere, LowMild, HighMild, HighSevere int
}

// Mild is the number between the inner fences (1.5 interquartile ranges) and the outer fences.
func (o Outliers) Mild() int { return o.LowMild + o.HighMild }

// Severe is the number beyond the outer fences (3 interquartile ranges).
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
