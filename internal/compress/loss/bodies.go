package loss

import (
	"context"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/study"
)

// calls are the runs of bodies on the data: what each read, as samples of the body as a model. A body that did not run has
// none; one of which more than limit bytes would have to be kept is among full instead.
func calls(ctx context.Context, m *graph.Model, bodies []int, data *samples.Set, threads, limit int) (of map[int]*samples.Set, full map[int]bool, err error) {
	of, full = map[int]*samples.Set{}, map[int]bool{}
	if len(bodies) == 0 {
		return of, full, nil
	}
	ins, kept := map[int][]int{}, map[int][][]*tensor.Tensor{}
	for _, g := range bodies {
		ins[g] = weights.Body(m, g).Main().Inputs
	}
	bytes := map[int]int{}
	o := whole(threads)
	o.Body = func(g int, value func(id int) *tensor.Tensor) {
		ids, ok := ins[g]
		if !ok || full[g] {
			return
		}
		var call []*tensor.Tensor
		for _, id := range ids {
			t := value(id)
			if t == nil || !t.Known() || t.Type.IsContainer() {
				return
			}
			call = append(call, t.Clone())
			bytes[g] += t.Held()
		}
		if kept[g] = append(kept[g], call); bytes[g] > limit/len(bodies) {
			full[g] = true
			delete(kept, g)
		}
	}
	err = runWith(ctx, m, data, o, func(int, *engine.Session) error { return nil })
	for g, list := range kept {
		of[g] = data.Of(list)
	}
	return of, full, err
}

// graphsOf are the bodies that have layers, or twins of some.
func graphsOf(layers []*weights.Layer) []int {
	in := map[int]bool{}
	for _, l := range layers {
		for _, x := range l.Readings() {
			if x.Graph > 0 {
				in[x.Graph] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}

// inBodies finds the errors of outputs of layers in bodies, on what the bodies read when the model runs on the data. A layer
// that several graphs have is judged where it runs first.
func (j *Job) inBodies(ctx context.Context) error {
	var wanted []*weights.Layer
	for i, l := range j.Layers {
		if l.Graph > 0 && len(j.wanted(i)) > 0 {
			wanted = append(wanted, l)
		}
	}
	bodies := graphsOf(wanted)
	of, full, err := calls(ctx, j.Model, bodies, j.Data, j.Threads, j.limit())
	if err != nil {
		return err
	}
	done := make([]bool, len(j.Layers))
	for _, g := range bodies {
		set := of[g]
		if set == nil || set.Runs() == 0 {
			continue
		}
		part := *j
		part.Model, part.Data, part.Shapes = weights.Body(j.Model, g), set, nil
		part.Layers = slices.Clone(j.Layers)
		mine := make([]bool, len(j.Layers))
		for i, l := range j.Layers {
			for _, x := range l.Readings() {
				if l.Graph > 0 && x.Graph == g && !done[i] {
					part.Layers[i], mine[i], done[i] = x.Local(), true, true
				}
			}
		}
		part.Skip = func(layer int, c study.Change) bool { return !mine[layer] || j.skips(layer, c) }
		if err := part.here(ctx); err != nil {
			return err
		}
	}
	for i, l := range j.Layers {
		if l.Graph == 0 || done[i] {
			continue
		}
		why := study.Unrun
		if slices.ContainsFunc(graphsOf([]*weights.Layer{l}), func(g int) bool { return full[g] }) {
			why = study.NoMemory
		}
		if err := j.causes(i, j.wanted(i), why); err != nil {
			return err
		}
	}
	return nil
}

// bodyRanges adds the ranges of layers in bodies.
func bodyRanges(ctx context.Context, m *graph.Model, layers []*weights.Layer, data *samples.Set, rule RangeRule, threads int, out map[string]rewrite.Range) error {
	bodies := graphsOf(layers)
	of, _, err := calls(ctx, m, bodies, data, threads, keptBytes)
	if err != nil {
		return err
	}
	for g, set := range of {
		var local []*weights.Layer
		for _, l := range layers {
			for _, x := range l.Readings() {
				if x.Graph == g {
					local = append(local, x.Local())
				}
			}
		}
		found, err := Ranges(ctx, weights.Body(m, g), local, set, rule, threads)
		if err != nil {
			return err
		}
		for name, r := range found {
			out[rewrite.RangeName(name, g)] = r
		}
	}
	return nil
}
