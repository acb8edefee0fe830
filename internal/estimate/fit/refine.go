package fit

import (
	"math"
	"sort"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
)

// Settings of the fit, chosen by validation over sources.
type Settings struct {
	// EraShrink regularises the shared coefficients of an era towards the family's prior,
	// GroupShrink the coefficients of a core towards the era's: strongly, because most cores have
	// measurements of few networks.
	EraShrink, GroupShrink float64
	// TypedShrink replaces GroupShrink for floating point and 16-bit activations: their networks are
	// many where they were measured at all, and compilers make their cores differ more than
	// instructions do. Leaving out networks, boards and sources all err least with it.
	TypedShrink float64
	// BoardShrink regularises the coefficients of a board towards its target's: weakly, because
	// the rows come from the very board that is estimated.
	BoardShrink float64
	// BuildShrink regularises the coefficients of a build configuration towards the default
	// build's, scaled by the speeds of their kinds.
	BuildShrink float64
	// LayerWeight is the weight of a measured layer; a whole model has 1.
	LayerWeight float64
}

// Default settings.
var Default = Settings{EraShrink: 0.02, GroupShrink: 0.1, TypedShrink: 0.003, BoardShrink: 1e-4, BuildShrink: 0.02, LayerWeight: 0.1}

// Refine fits coefficients close to those of start, up to a free common factor. Outliers have
// less weight.
func Refine(rows []*Measurement, scale func(*Measurement) float64, start cortexm.Vector, shrink, layerWeight float64) cortexm.Vector {
	balance := weights(rows, layerWeight)
	ratios := make([]float64, 0, len(rows))
	say := make([]float64, 0, len(rows))
	for i, m := range rows {
		ratios = append(ratios, m.Cycles/Faster(start, scale(m)).Dot(m.Work))
		s := own(start, m.Work)
		say = append(say, balance[i]*s*s*s)
	}
	common := weightedMedian(ratios, say)
	start = Faster(start, common)
	sum := 0.0
	for _, w := range balance {
		sum += w
	}
	w := append([]float64(nil), balance...)
	var x []float64
	a := make([][]float64, len(rows))
	for i, m := range rows {
		a[i] = make([]float64, cortexm.Terms)
		own := Faster(start, scale(m))
		for k := range a[i] {
			a[i][k] = m.Work[k] * own[k] / m.Cycles
		}
	}
	for range 8 {
		x = leastSquares(a, w, shrink*min(sum, 12), 1)
		for i, row := range a {
			r := math.Abs(Dot(row, x) - 1)
			w[i] = balance[i] / max(1, r/0.1)
		}
	}
	// Relative least squares is biased to low predictions; correct the median.
	var res []float64
	for _, row := range a {
		res = append(res, 1/Dot(row, x))
	}
	level := weightedMedian(res, w)
	var out cortexm.Vector
	for k := range out {
		out[k] = start[k] * x[k]
	}
	return Faster(out, level)
}

// Follow fits coefficients that reproduce the rows as closely as non-negative costs can. Where
// the rows leave coefficients undetermined, they stay close to start, up to a common factor. All
// rows have equal weight: they come from the board in question.
func Follow(rows []*Measurement, start cortexm.Vector, shrink float64) cortexm.Vector {
	var ratios, say []float64
	for _, m := range rows {
		ratios = append(ratios, m.Cycles/start.Dot(m.Work))
		s := own(start, m.Work)
		say = append(say, s*s*s)
	}
	if f := weightedMedian(ratios, say); f > 0 && !math.IsNaN(f) {
		start = Faster(start, f)
	}
	a := make([][]float64, len(rows))
	w := make([]float64, len(rows))
	for i, m := range rows {
		a[i], w[i] = make([]float64, cortexm.Terms), 1
		for k := range a[i] {
			a[i][k] = m.Work[k] * start[k] / m.Cycles
		}
	}
	out := start
	for k, x := range leastSquares(a, w, shrink, 1) {
		out[k] *= x
	}
	return out
}

// Faster scales the cost of kernels. Call and operator overhead is unchanged: it is plain code on
// every core.
func Faster(v cortexm.Vector, factor float64) cortexm.Vector {
	for i := range v {
		if i != cortexm.Call && i != cortexm.Op {
			v[i] *= factor
		}
	}
	return v
}

// own returns the share of cycles other than call and operator overhead.
func own(v, work cortexm.Vector) float64 { return 1 - cortexm.Overhead(v, work) }

// Dot returns the dot product of a and the first len(a) elements of b.
func Dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// weights gives every network of a source the same total weight, however often it was measured,
// and layers less than models.
func weights(rows []*Measurement, layerWeight float64) []float64 {
	type key struct {
		source, model, core string
		layer               bool
	}
	n := map[key]float64{}
	of := func(m *Measurement) key {
		if m.Layer {
			return key{m.Source, m.Model, m.Core, true}
		}
		return key{m.Source, m.Model, m.Core, false}
	}
	for _, m := range rows {
		n[of(m)]++
	}
	out := make([]float64, len(rows))
	for i, m := range rows {
		out[i] = 1 / n[of(m)]
		if m.Layer {
			out[i] = layerWeight
		}
	}
	return out
}

// weightedMedian returns the value with half of the weight on either side.
func weightedMedian(v, w []float64) float64 {
	idx := make([]int, len(v))
	sum := 0.0
	for i := range idx {
		idx[i] = i
		sum += w[i]
	}
	sort.Slice(idx, func(a, b int) bool { return v[idx[a]] < v[idx[b]] })
	at := 0.0
	for n, i := range idx {
		at += w[i]
		if at > sum/2 || n == len(idx)-1 {
			return v[i]
		}
		if at == sum/2 {
			return math.Sqrt(v[i] * v[idx[n+1]])
		}
	}
	return 1
}
