package sparsify

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/mask"
)

// MagnitudeLevels are the levels of Sparsify's loss profile: 0 to 0.99 in steps of a hundredth.
func MagnitudeLevels() []float64 {
	out := make([]float64, 100)
	for i := range out {
		out[i] = float64(i) / 100
	}
	return out
}

// Magnitude is Sparsify's "loss" by weight magnitudes: for each level the mean magnitude of the
// weights that the level prunes beyond the previous level. It is a local quantile, not a loss: it
// does not add up, and depends on the scale of the weights.
func Magnitude(weights []float32, levels []float64) []float64 {
	a := magnitudes(weights)
	out := make([]float64, len(levels))
	prev := 0
	for k, s := range levels {
		if s <= 1e-9 || len(a) == 0 {
			continue
		}
		i := min(int(math.RoundToEven(s*float64(len(a)))), len(a)-1)
		if i > prev {
			sum := 0.0
			for _, v := range a[prev:i] {
				sum += float64(v)
			}
			out[k] = sum / float64(i-prev)
			prev = i
			continue
		}
		out[k] = float64(a[i])
		prev = i + 1
	}
	return out
}

func magnitudes(weights []float32) []float32 {
	a := mask.Magnitudes(weights)
	slices.Sort(a)
	return a
}

// Prune zeroes weights as SparseML's one-shot analysis does: those strictly below the magnitude
// of the weight at round(level * n). So it zeroes one weight less than the level says, and none
// among equal ones. It returns the number of zero weights.
func Prune(weights []float32, level float64) (zero int) {
	a := magnitudes(weights)
	at := int(math.RoundToEven(level*float64(len(a)))) - 1
	for i, w := range weights {
		if at >= 0 && float32(math.Abs(float64(w))) < a[min(at, len(a)-1)] {
			weights[i] = 0
		}
		if weights[i] == 0 {
			zero++
		}
	}
	return zero
}

// KL is the one-shot loss of a batch: the sum over outputs of the divergence of the pruned model
// from the unpruned one. Both outputs are shifted so that their common minimum is 1, and scaled
// to a sum of 1. The outputs of both have the same order and sizes.
func KL(pruned, base [][]float64) float64 {
	sum := 0.0
	for i := range pruned {
		sum += divergence(pruned[i], base[i])
	}
	return sum
}

func divergence(pruned, base []float64) float64 {
	if len(base) == 0 {
		return 0
	}
	shift := 1 - min(slices.Min(pruned), slices.Min(base))
	at := func(v float64) float64 { return max(v+shift, 1) }
	var p, q float64
	for i := range base {
		p += at(pruned[i])
		q += at(base[i])
	}
	d := 0.0
	for i := range base {
		x, y := at(pruned[i])/p, at(base[i])/q
		d += x * math.Log(x/y)
	}
	return d
}

// Figures are SparseML's summary of a layer's values at several levels.
type Figures struct {
	// Baseline is the value of the unpruned layer.
	Baseline float64
	// Comparison is the value at the level nearest to 0.9 minus the baseline.
	Comparison float64
	// Integral is the trapezoidal integral of the values over the levels.
	Integral float64
	// SparseAverage is the mean of the values and the levels together, which SparseML displays as
	// the mean of the values; Mean is the actual mean.
	SparseAverage, Mean float64
}

// Summarise makes figures of a layer's values by level, in rising order of levels; the value at
// level 0 is the baseline, or the first one if absent.
func Summarise(levels, values []float64) Figures {
	var f Figures
	if len(levels) == 0 || len(levels) != len(values) {
		return f
	}
	f.Baseline = values[max(0, slices.Index(levels, 0))]
	near := 0
	for i, s := range levels {
		if math.Abs(s-0.9) < math.Abs(levels[near]-0.9) {
			near = i
		}
		f.Mean += values[i]
		f.SparseAverage += values[i] + s
		if i > 0 {
			f.Integral += (values[i] + values[i-1]) / 2 * (s - levels[i-1])
		}
	}
	f.Mean /= float64(len(values))
	f.SparseAverage /= 2 * float64(len(values))
	f.Comparison = values[near] - f.Baseline
	return f
}

// Normalise returns values of layers as SparseML plots them: population standard deviations above
// the mean.
func Normalise(values []float64) []float64 {
	mean, dev := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		dev += (v - mean) * (v - mean) / float64(len(values))
	}
	out := make([]float64, len(values))
	for i, v := range values {
		if dev > 0 {
			out[i] = (v - mean) / math.Sqrt(dev)
		}
	}
	return out
}

// ShownSensitivity is the "pruning sensitivity" of Sparsify's page: the value at index round(0.95
// * number of levels) minus the first; false if absent.
func ShownSensitivity(values []float64) (float64, bool) {
	i := int(math.RoundToEven(0.95 * float64(len(values))))
	if i >= len(values) {
		return 0, false
	}
	return values[i] - values[0], true
}
