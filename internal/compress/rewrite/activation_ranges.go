package rewrite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// activationRanges finds the ranges of values: as given, else on synthetic inputs.
type activationRanges struct {
	m         *graph.Model // the complete model
	graph     int          // graph of the values
	given     map[string]Range
	synthetic map[int]Range // on synthetic inputs, nil before they were run
}

// RangeName is the key of a value's range in [Options]: its name, in subgraphs with the position
// of the graph.
func RangeName(name string, graph int) string {
	if graph == 0 {
		return name
	}
	return fmt.Sprintf("%s@%d", name, graph)
}

// syntheticRuns is the number of runs on synthetic inputs.
const syntheticRuns = 4

// Limits of runs and plans on synthetic inputs: memory, and time of loops of unknown length. A
// model beyond them must declare its shapes; ranges must be given.
const (
	maxSyntheticBytes = 2 << 30
	maxLoopTime       = 10 * time.Second
)

// rangeOf returns the range of a value of the graph; false where the value could not be computed.
func (r *activationRanges) rangeOf(id int) (Range, bool) {
	g := r.m.Graphs[r.graph]
	if id >= len(g.Values) {
		return Range{}, false
	}
	if x, ok := r.given[RangeName(g.Values[id].Name, r.graph)]; ok {
		return x, x.Lo <= x.Hi && !math.IsInf(float64(x.Hi-x.Lo), 0)
	}
	if r.synthetic == nil {
		r.synthetic = map[int]Range{}
		for seed := range uint64(syntheticRuns) {
			r.run(seed + 1)
		}
	}
	x, ok := r.synthetic[id]
	return x, ok
}

// run extends the ranges by those of one inference. A run that fails adds nothing.
func (r *activationRanges) run(seed uint64) {
	in, _, err := inputs.Inputs(r.m, inputs.Options{Seed: seed, MaxBytes: maxSyntheticBytes})
	if err != nil {
		return
	}
	o := engine.Options{Registry: operators.Registry(), Threads: 1, KeepAll: true, Exact: true}
	if r.graph > 0 {
		o.Body = func(g int, value func(id int) *tensor.Tensor) {
			if g == r.graph {
				r.widen(value)
			}
		}
	}
	s, err := engine.New(r.m, in, o)
	if err != nil {
		return
	}
	defer s.Close()
	if err := s.Run(context.Background()); err == nil && r.graph == 0 {
		r.widen(s.Value)
	}
}

// widen extends the ranges by the values of a run.
func (r *activationRanges) widen(value func(id int) *tensor.Tensor) {
	for id, v := range r.m.Graphs[r.graph].Values {
		x := value(id)
		if v.Const != nil || !x.Known() || x.Type != tensor.Float32 || x.Len() == 0 {
			continue
		}
		lo, hi := MinMax(tensor.Of[float32](x))
		if lo > hi {
			continue
		}
		if have, ok := r.synthetic[id]; ok {
			lo, hi = min(lo, have.Lo), max(hi, have.Hi)
		}
		r.synthetic[id] = Range{lo, hi}
	}
}

// MinMax returns the smallest and the largest finite number.
func MinMax(x []float32) (lo, hi float32) {
	lo, hi = math.MaxFloat32, -math.MaxFloat32
	for _, v := range x {
		if v-v == 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return lo, hi
}

// knownShapes returns the shapes of a main graph's values for synthetic inputs, or the declared
// ones; nil where both are unknown.
func knownShapes(m *graph.Model) func(id int) []int {
	g := m.Main()
	shapes := make([][]int, len(g.Values))
	for id, v := range g.Values {
		switch {
		case v.Const != nil:
			shapes[id] = shapeOf(v.Const.Shape)
		case v.HasShape && !slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }):
			shapes[id] = shapeOf(v.Shape)
		}
	}
	of := func(id int) []int {
		if id < 0 || id >= len(shapes) {
			return nil
		}
		return shapes[id]
	}
	in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1, MaxBytes: maxSyntheticBytes})
	if err != nil {
		return of
	}
	for i, x := range in {
		shapes[g.Inputs[i]] = shapeOf(x.Shape)
	}
	p, err := plan.Make(m, in, plan.Options{Registry: operators.Registry(), KeepAll: true, Exact: true, MaxBytes: maxSyntheticBytes})
	if err != nil {
		return of
	}
	for _, st := range p.Main.Steps() {
		if st.Node == nil || st.Graph != 0 {
			continue
		}
		for i, id := range st.Node.Outputs {
			if id >= 0 && id < len(shapes) && i < len(st.Out) && st.Out[i] != nil {
				shapes[id] = shapeOf(st.Out[i].Shape)
			}
		}
	}
	return of
}

// shapeOf copies a shape to a non-nil slice; nil stands for an unknown shape.
func shapeOf(s []int) []int { return append([]int{}, s...) }
