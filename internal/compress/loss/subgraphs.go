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

// recordCalls records the inputs of all runs of subgraphs on the data, as samples of the subgraph
// as a model. A subgraph that did not run has no entry; one that would need more than limit bytes
// is listed in full instead.
func recordCalls(ctx context.Context, m *graph.Model, bodies []int, data *samples.Set, threads, limit int) (of map[int]*samples.Set, full map[int]bool, err error) {
	of, full = map[int]*samples.Set{}, map[int]bool{}
	if len(bodies) == 0 {
		return of, full, nil
	}
	ins, kept := map[int][]int{}, map[int][][]*tensor.Tensor{}
	for _, g := range bodies {
		ins[g] = weights.Body(m, g).Main().Inputs
	}
	bytes := map[int]int{}
	o := exactOptions(threads)
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
		of[g] = data.WithInputs(list)
	}
	return of, full, err
}

// subgraphsOf lists the subgraphs that have layers or their twins.
func subgraphsOf(layers []*weights.Layer) []int {
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

// subgraphErrors finds the output errors of layers in subgraphs, on the inputs that the subgraphs
// get when the model runs on the data. A layer of several graphs is measured in the first one
// that runs.
func (j *Job) subgraphErrors(ctx context.Context) error {
	var wanted []*weights.Layer
	for i, l := range j.Layers {
		if l.Graph > 0 && len(j.missingChanges(i)) > 0 {
			wanted = append(wanted, l)
		}
	}
	bodies := subgraphsOf(wanted)
	of, full, err := recordCalls(ctx, j.Model, bodies, j.Data, j.Threads, j.limit())
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
		if err := part.mainGraphErrors(ctx); err != nil {
			return err
		}
	}
	for i, l := range j.Layers {
		if l.Graph == 0 || done[i] {
			continue
		}
		why := study.NotRun
		if slices.ContainsFunc(subgraphsOf([]*weights.Layer{l}), func(g int) bool { return full[g] }) {
			why = study.NoMemory
		}
		if err := j.reportCause(i, j.missingChanges(i), why); err != nil {
			return err
		}
	}
	return nil
}

// subgraphRanges adds the ranges of layers in subgraphs.
func subgraphRanges(ctx context.Context, m *graph.Model, layers []*weights.Layer, data *samples.Set, rule RangeRule, threads int, out map[string]rewrite.Range) error {
	bodies := subgraphsOf(layers)
	of, _, err := recordCalls(ctx, m, bodies, data, threads, defaultMaxBytes)
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
