package stats

import (
	"math"
	"slices"
)

// MostBlocks is the number of blocks that a long enough series is split into. A few long blocks
// are nearly independent, many short ones give a narrow interval: 20 is within the usual range
// for the method of batch means (Schmeiser, Batch size effects in the analysis of simulation
// output, Operations Research 30, 1982: 10 to 30).
const MostBlocks = 20

// leastBlocks is the minimum number of blocks for a meaningful spread.
const leastBlocks = 3

// Repeat is a prediction interval for the centre of a repeated series.
type Repeat struct {
	// Middle is the mean of the blocks' medians between the quartiles.
	Middle float64
	// Low and High enclose the centre of a repeated series of the same length from the same
	// source with 95 % probability.
	Low, High float64
	// Blocks is the number of blocks.
	Blocks int
}

// Repeated splits a time series into consecutive blocks, takes the median of each, and returns
// the interval into which the centre of another such series falls. Blocks show slow changes,
// which single samples hide: by the method of batch means the standard error is that of the
// blocks' medians, corrected for the remaining correlation of neighbouring blocks. A repeated
// series has the same error again, hence the factor sqrt 2 (Hahn and Meeker, Statistical
// intervals, 1991, on the prediction of a future mean), and the quantile is that of Student's
// distribution. floor is the relative standard deviation between series that does not show within
// a series; 0 for none. ok is false below three blocks.
func Repeated(series []float64, floor float64) (r Repeat, ok bool) {
	n := len(series)
	b := min(n, MostBlocks)
	if b < leastBlocks {
		return Repeat{Middle: Median(series), Blocks: b}, false
	}
	medians := make([]float64, b)
	for i := range medians {
		medians[i] = Median(series[i*n/b : (i+1)*n/b])
	}
	return RepeatedBlocks(medians, floor)
}

// RepeatedBlocks is [Repeated] for a series whose blocks are summarised already, in chronological
// order: values holds the centre of each.
func RepeatedBlocks(values []float64, floor float64) (r Repeat, ok bool) {
	b := len(values)
	if b < leastBlocks {
		return Repeat{Middle: Median(values), Blocks: b}, false
	}
	r.Blocks = b
	r.Middle = Midmean(values)
	own := StdDev(values) / math.Sqrt(float64(b))
	// The variance of the mean of a first-order autoregressive series.
	if rho := min(max(Autocorrelation(values, 1), 0), 0.8); rho > 0 {
		own *= math.Sqrt((1 + rho) / (1 - rho))
	}
	half := math.Hypot(math.Sqrt2*StudentQuantile(0.05, float64(b-1))*own, RepeatedFloor(floor)*r.Middle)
	r.Low, r.High = r.Middle-half, r.Middle+half
	return r, true
}

// RepeatedFloor is the half-width, relative to the centre, that remains of the interval of
// [Repeated] if the series itself does not vary.
func RepeatedFloor(floor float64) float64 { return math.Sqrt2 * 1.959964 * floor }

// Midmean is the mean of the samples between the quartiles (interquartile mean), which is robust
// against a quarter of outliers on either side; NaN for no samples. With fewer than four samples
// nothing is trimmed.
func Midmean(samples []float64) float64 {
	s := slices.Clone(samples)
	slices.Sort(s)
	return Mean(s[len(s)/4 : len(s)-len(s)/4])
}
