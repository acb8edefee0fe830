package loss

import (
	"context"
	"math"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// RangeRule says how the range of 8-bit activations follows from the numbers that were seen.
type RangeRule string

// Rules of ranges.
const (
	// MinMax takes all.
	MinMax RangeRule = ""
	// Percentile leaves out 1 of 20 000 numbers on either side.
	Percentile RangeRule = "percentile"
	// LeastError takes the range whose codes have the least squared error over a histogram.
	LeastError RangeRule = "least_error"
)

// RangeRules lists the rules.
func RangeRules() []RangeRule { return []RangeRule{MinMax, Percentile, LeastError} }

// tail is the share that [Percentile] leaves out on either side.
const tail = 0.00005

// bins is the number of steps of a histogram: sixteen times that of codes, so that errors within a bin are small
// beside those of codes.
const bins = 4096

// histogram counts numbers in steps of equal width around zero, which is doubled when a number lies outside.
type histogram struct {
	lo, hi float32
	reach  float64 // bins reach from -reach to reach
	count  []float64
	n      float64
}

func (h *histogram) add(x []float32) {
	lo, hi := float32(math.MaxFloat32), float32(-math.MaxFloat32)
	for _, v := range x {
		if v-v == 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if lo > hi {
		return
	}
	if h.count == nil {
		h.count, h.lo, h.hi = make([]float64, bins), lo, hi
	}
	h.lo, h.hi = min(h.lo, lo), max(h.hi, hi)
	if most := max(math.Abs(float64(lo)), math.Abs(float64(hi))); h.reach == 0 {
		h.reach = max(most, math.SmallestNonzeroFloat32) * 1.000001
	} else {
		for h.reach < most {
			h.widen()
		}
	}
	per := bins / 2 / h.reach
	for _, v := range x {
		if v-v == 0 {
			h.count[min(max(int(math.Floor(float64(v)*per))+bins/2, 0), bins-1)]++
			h.n++
		}
	}
}

// widen doubles the reach: pairs of bins become one.
func (h *histogram) widen() {
	wide := make([]float64, bins)
	for i, c := range h.count {
		wide[(i-bins/2)>>1+bins/2] += c
	}
	h.count, h.reach = wide, h.reach*2
}

// middle is the number in the middle of a bin.
func (h *histogram) middle(i int) float64 {
	return (float64(i-bins/2) + 0.5) * h.reach / (bins / 2)
}

// rangeOf is the range by a rule; false where no number was seen.
func (h *histogram) rangeOf(rule RangeRule) (rewrite.Range, bool) {
	if h.n == 0 {
		return rewrite.Range{}, false
	}
	lo, hi := float64(h.lo), float64(h.hi)
	switch rule {
	case Percentile:
		lo, hi = h.quantile(tail), h.quantile(1-tail)
	case LeastError:
		lo, hi = h.least()
	}
	return rewrite.Range{Lo: float32(max(lo, float64(h.lo))), Hi: float32(min(hi, float64(h.hi)))}, true
}

func (h *histogram) quantile(p float64) float64 {
	seen := 0.0
	for i, c := range h.count {
		if seen+c >= p*h.n && c > 0 {
			edge := float64(i - bins/2)
			return (edge + (p*h.n-seen)/c) * h.reach / (bins / 2)
		}
		seen += c
	}
	return float64(h.hi)
}

// least searches the ends of the range one after the other, in steps of a fortieth.
func (h *histogram) least() (lo, hi float64) {
	lo, hi = min(float64(h.lo), 0), max(float64(h.hi), 0)
	best := h.squared(lo, hi)
	for range 2 {
		for _, end := range []*float64{&hi, &lo} {
			full := *end
			found := full
			for k := 39; k >= 4; k-- {
				*end = full * float64(k) / 40
				if e := h.squared(lo, hi); e < best {
					best, found = e, *end
				}
			}
			*end = found
		}
	}
	return lo, hi
}

// squared is the squared error of codes of a range.
func (h *histogram) squared(lo, hi float64) float64 {
	c := affine(rewrite.Range{Lo: float32(lo), Hi: float32(hi)})
	e := 0.0
	for i, n := range h.count {
		if n == 0 {
			continue
		}
		x := h.middle(i)
		d := x - float64(c.real(float32(x)))
		if x >= lo && x <= hi { // anywhere within a step
			d = float64(c.scale) / math.Sqrt(12)
		}
		e += n * d * d
	}
	return e
}

// code is 8-bit codes by scale and zero point.
type code struct {
	scale float32
	zero  float64
}

// affine are the codes that reach over a range and have zero, as [rewrite.Apply] makes them.
func affine(r rewrite.Range) code {
	lo, hi := min(float64(r.Lo), 0), max(float64(r.Hi), 0)
	scale := float32((hi - lo) / 255)
	if !(scale >= math.SmallestNonzeroFloat32*(1<<24)) {
		return code{1, 0}
	}
	return code{scale, min(max(math.RoundToEven(-128-lo/float64(scale)), -128), 127)}
}

// real is what the code of a number stands for.
func (c code) real(x float32) float32 {
	q := min(max(math.RoundToEven(float64(x)/float64(c.scale))+c.zero, -128), 127)
	return float32((q - c.zero) * float64(c.scale))
}

// Ranges finds from where to where the values that layers read and make reach on data, by name.
func Ranges(ctx context.Context, m *graph.Model, layers []*weights.Layer, data *samples.Set, rule RangeRule, threads int) (map[string]rewrite.Range, error) {
	g := m.Main()
	out := map[string]rewrite.Range{}
	if err := bodyRanges(ctx, m, layers, data, rule, threads, out); err != nil {
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
			ids = append(ids, ends(g, n)...)
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

// ends are the outputs of a node, and of the function behind it that runs with it.
func ends(g *graph.Graph, node int) []int {
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

// histograms counts the numbers of values over the data.
func histograms(ctx context.Context, m *graph.Model, data *samples.Set, ids []int, threads int, told func(run int)) (map[int]*histogram, error) {
	out := map[int]*histogram{}
	var x []float32
	err := pass(ctx, m, data, ids, threads, func(run int, v values) error {
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
			x = grown(&x, t.Len())
			fill(x, t)
			out[id].add(x)
		}
		if told != nil {
			told(run)
		}
		return nil
	})
	return out, err
}
