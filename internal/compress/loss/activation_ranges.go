package loss

import (
	"context"
	"math"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// RangeRule says how the range of int8 activations is derived from observed values.
type RangeRule string

// Range rules.
const (
	// MinMax uses all values.
	MinMax RangeRule = ""
	// Percentile omits 1 of 20 000 values on either side.
	Percentile RangeRule = "percentile"
	// LeastError minimises the squared quantisation error over a histogram.
	LeastError RangeRule = "least_error"
)

// tail is the share that [Percentile] omits on either side.
const tail = 0.00005

// bins is the number of bins of a histogram: sixteen times the number of quantised values, so
// that errors within a bin are small beside quantisation errors.
const bins = 4096

// histogram counts values in bins of equal width around zero. The width doubles when a value is
// outside.
type histogram struct {
	lo, hi float32
	limit  float64 // bins extend from -limit to limit
	count  []float64
	n      float64
}

func (h *histogram) add(x []float32) {
	lo, hi := rewrite.MinMax(x)
	if lo > hi {
		return
	}
	if h.count == nil {
		h.count, h.lo, h.hi = make([]float64, bins), lo, hi
	}
	h.lo, h.hi = min(h.lo, lo), max(h.hi, hi)
	if most := max(math.Abs(float64(lo)), math.Abs(float64(hi))); h.limit == 0 {
		h.limit = max(most, math.SmallestNonzeroFloat32) * 1.000001
	} else {
		for h.limit < most {
			h.widen()
		}
	}
	per := bins / 2 / h.limit
	for _, v := range x {
		if v-v == 0 {
			h.count[min(max(int(math.Floor(float64(v)*per))+bins/2, 0), bins-1)]++
			h.n++
		}
	}
}

// widen doubles the limit by merging pairs of bins.
func (h *histogram) widen() {
	wide := make([]float64, bins)
	for i, c := range h.count {
		wide[(i-bins/2)>>1+bins/2] += c
	}
	h.count, h.limit = wide, h.limit*2
}

// middle returns the centre of a bin.
func (h *histogram) middle(i int) float64 {
	return (float64(i-bins/2) + 0.5) * h.limit / (bins / 2)
}

// rangeOf returns the range by a rule; false where no value was observed.
func (h *histogram) rangeOf(rule RangeRule) (rewrite.Range, bool) {
	if h.n == 0 {
		return rewrite.Range{}, false
	}
	lo, hi := float64(h.lo), float64(h.hi)
	switch rule {
	case Percentile:
		lo, hi = h.quantile(tail), h.quantile(1-tail)
	case LeastError:
		lo, hi = h.leastErrorRange()
	}
	return rewrite.Range{Lo: float32(max(lo, float64(h.lo))), Hi: float32(min(hi, float64(h.hi)))}, true
}

func (h *histogram) quantile(p float64) float64 {
	seen := 0.0
	for i, c := range h.count {
		if seen+c >= p*h.n && c > 0 {
			edge := float64(i - bins/2)
			return (edge + (p*h.n-seen)/c) * h.limit / (bins / 2)
		}
		seen += c
	}
	return float64(h.hi)
}

// leastErrorRange searches the ends of the range alternately, in steps of a fortieth.
func (h *histogram) leastErrorRange() (lo, hi float64) {
	lo, hi = min(float64(h.lo), 0), max(float64(h.hi), 0)
	best := h.squaredError(lo, hi)
	for range 2 {
		for _, end := range []*float64{&hi, &lo} {
			full := *end
			found := full
			for k := 39; k >= 4; k-- {
				*end = full * float64(k) / 40
				if e := h.squaredError(lo, hi); e < best {
					best, found = e, *end
				}
			}
			*end = found
		}
	}
	return lo, hi
}

// squaredError returns the squared quantisation error of a range.
func (h *histogram) squaredError(lo, hi float64) float64 {
	c := affine(rewrite.Range{Lo: float32(lo), Hi: float32(hi)})
	e := 0.0
	for i, n := range h.count {
		if n == 0 {
			continue
		}
		x := h.middle(i)
		d := x - float64(c.dequantised(float32(x)))
		if x >= lo && x <= hi { // uniform within a quantisation step
			d = float64(c.scale) / math.Sqrt(12)
		}
		e += n * d * d
	}
	return e
}

// affineCode is an 8-bit quantisation by scale and zero point.
type affineCode struct {
	scale float32
	zero  float64
}

// affine returns the quantisation of a range, as [rewrite.Apply] does.
func affine(r rewrite.Range) affineCode {
	scale, zero := rewrite.AffineParams(r)
	return affineCode{scale, float64(zero)}
}

// dequantised returns a number after quantisation and dequantisation.
func (c affineCode) dequantised(x float32) float32 {
	q := min(max(math.RoundToEven(float64(x)/float64(c.scale))+c.zero, -128), 127)
	return float32((q - c.zero) * float64(c.scale))
}

// quantise rounds numbers to quantised ones.
func (c affineCode) quantise(x []float32) {
	for i, v := range x {
		x[i] = c.dequantised(v)
	}
}

// quantiseDynamically rounds numbers to 8 bits over their range, as DynamicQuantizeLinear does.
// The range includes 0.
func quantiseDynamically(x []float32) {
	lo, hi := float32(0), float32(0)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	scale := (hi - lo) / 255
	if !(scale > 0) {
		return
	}
	code := func(v, zero float32) float32 {
		return min(max(float32(math.RoundToEven(float64(v/scale)))+zero, 0), 255)
	}
	zero := code(-lo, 0)
	for i, v := range x {
		x[i] = (code(v, zero) - zero) * scale
	}
}

// Ranges finds the ranges of the inputs and outputs of layers on data, by name.
func Ranges(ctx context.Context, m *graph.Model, layers []*weights.Layer, data *samples.Set, rule RangeRule, threads int) (map[string]rewrite.Range, error) {
	g := m.Main()
	out := map[string]rewrite.Range{}
	if err := subgraphRanges(ctx, m, layers, data, rule, threads, out); err != nil {
		return nil, err
	}
	var ids []int
	for _, l := range layers {
		if l.Graph > 0 {
			continue
		}
		if l.Data >= 0 {
			ids = append(ids, l.Data)
		}
		for _, n := range l.Nodes {
			ids = append(ids, outputsAndActivations(g, n)...)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	hs, err := histograms(ctx, m, data, ids, threads, nil)
	if err != nil {
		return nil, err
	}
	for id, h := range hs {
		if r, ok := h.rangeOf(rule); ok {
			out[g.Values[id].Name] = r
		}
	}
	return out, nil
}

// outputsAndActivations returns the outputs of a node, and those of the activation function after
// it.
func outputsAndActivations(g *graph.Graph, node int) []int {
	var out []int
	for _, id := range g.Nodes[node].Outputs {
		if id < 0 {
			continue
		}
		out = append(out, id)
		for _, n := range g.Nodes {
			if len(n.Inputs) > 0 && n.Inputs[0] == id && len(n.Outputs) == 1 {
				out = append(out, n.Outputs[0])
			}
		}
	}
	return out
}

// histograms collects histograms of values over the data.
func histograms(ctx context.Context, m *graph.Model, data *samples.Set, ids []int, threads int, told func(run int)) (map[int]*histogram, error) {
	out := map[int]*histogram{}
	var x []float32
	err := runPass(ctx, m, data, ids, threads, func(run int, v values) error {
		done := map[int]bool{}
		for _, id := range ids {
			t := v(id)
			if done[id] || t == nil || !t.Known() || !t.Type.IsFloat() {
				continue
			}
			done[id] = true
			if out[id] == nil {
				out[id] = &histogram{}
			}
			x = grow(&x, t.Len())
			tensor.Read(x, t, 0)
			out[id].add(x)
		}
		if told != nil {
			told(run)
		}
		return nil
	})
	return out, err
}
