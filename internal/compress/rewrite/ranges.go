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

// ranges finds from where to where values reach: as given, else on made inputs.
type ranges struct {
	m     *graph.Model // the whole
	graph int          // of the values
	given map[string]Range
	made  map[int]Range // on made inputs, nil before they were run
}

// RangeName is what a value's range is called in [Options]: its name, in bodies with the position of the graph.
func RangeName(name string, graph int) string {
	if graph == 0 {
		return name
	}
	return fmt.Sprintf("%s@%d", name, graph)
}

// madeRuns is how many made inputs ranges come from.
const madeRuns = 4

// What runs and plans on made inputs may take: of memory, and in loops without a known end. A model beyond that tells
// its ranges and shapes itself or not at all.
const (
	madeBytes = 2 << 30
	madeLoop  = 10 * time.Second
)

// of is the range of a value of the graph; false where the value could not be computed.
func (r *ranges) of(id int) (Range, bool) {
	g := r.m.Graphs[r.graph]
	if id >= len(g.Values) {
		return Range{}, false
	}
	if x, ok := r.given[RangeName(g.Values[id].Name, r.graph)]; ok {
		return x, x.Lo <= x.Hi && !math.IsInf(float64(x.Hi-x.Lo), 0)
	}
	if r.made == nil {
		r.made = map[int]Range{}
		for seed := range uint64(madeRuns) {
			r.run(seed + 1)
		}
	}
	x, ok := r.made[id]
	return x, ok
}

// run widens the ranges by those of one inference. What does not run leaves none.
func (r *ranges) run(seed uint64) {
	in, _, err := inputs.Inputs(r.m, inputs.Options{Seed: seed, MaxBytes: madeBytes})
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

// widen widens the ranges by the values of a run.
func (r *ranges) widen(value func(id int) *tensor.Tensor) {
	for id, v := range r.m.Graphs[r.graph].Values {
		x := value(id)
		if v.Const != nil || !x.Known() || x.Type != tensor.Float32 || x.Len() == 0 {
			continue
		}
		lo, hi := reach(tensor.Of[float32](x))
		if lo > hi {
			continue
		}
		if have, ok := r.made[id]; ok {
			lo, hi = min(lo, have.Lo), max(hi, have.Hi)
		}
		r.made[id] = Range{lo, hi}
	}
}

// reach is the least and the largest finite number.
func reach(x []float32) (lo, hi float32) {
	lo, hi = math.MaxFloat32, -math.MaxFloat32
	for _, v := range x {
		if v-v == 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return lo, hi
}

// planned gives the shapes of a main graph's values for made inputs, or those that the file declares; nil
// where neither tells.
func planned(m *graph.Model) func(id int) []int {
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
	in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1, MaxBytes: madeBytes})
	if err != nil {
		return of
	}
	for i, x := range in {
		shapes[g.Inputs[i]] = shapeOf(x.Shape)
	}
	p, err := plan.Make(m, in, plan.Options{Registry: operators.Registry(), KeepAll: true, Exact: true, MaxBytes: madeBytes})
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

// shapeOf is a shape that is not nil, which stands for an unknown one.
func shapeOf(s []int) []int { return append([]int{}, s...) }
