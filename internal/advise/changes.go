package advise

import (
	"slices"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/study"
)

// quantised returns a model with the weights of all layers that keep accepts in another format. It
// is nil if no layer can have it. Ranges of activations follow from synthetic inputs.
func quantised(m *graph.Model, feed inputs.Options, format study.Format, keep func(*weights.Layer) bool) (*graph.Model, error) {
	m = weights.ExpandConstantOfShape(m, feed.MaxBytes)
	layers, err := layersOf(m, feed)
	if err != nil {
		return nil, err
	}
	var changes []rewrite.Change
	for _, l := range layers {
		if keep(l) {
			changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: format}})
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	out, effects, err := rewrite.Apply(m, changes, rewrite.Options{})
	if err != nil {
		return nil, err
	}
	for i := range effects {
		if effects[i].Cause == "" {
			return out, nil
		}
	}
	return nil, nil
}

// layersOf lists the layers with weights of a model, with the shapes of its inputs.
func layersOf(m *graph.Model, feed inputs.Options) ([]*weights.Layer, error) {
	p, err := planned(m, feed)
	if err != nil {
		return nil, err
	}
	return weights.All(p.Shaped(), func(id int) []int {
		if t := p.Main.Known(id); id < len(m.Main().Values) && t != nil && !slices.ContainsFunc(t.Shape, func(d int) bool { return d < 0 }) {
			return t.Shape
		}
		return nil
	}), nil
}

// planned plans a model with the shapes of its inputs.
func planned(m *graph.Model, feed inputs.Options) (*plan.Plan, error) {
	ins, _, err := inputs.Shapes(m, feed)
	if err != nil {
		return nil, err
	}
	return plan.Make(m, ins, plan.Options{Registry: operators.Registry(), MaxBytes: feed.MaxBytes})
}

// outputShapes are the shapes of the outputs, nil for those that are not known.
func outputShapes(m *graph.Model, feed inputs.Options) (out [][]int, err error) {
	p, err := planned(m, feed)
	if err != nil {
		return nil, err
	}
	for _, id := range m.Main().Outputs {
		var shape []int
		if t := p.Main.Known(id); t != nil {
			shape = t.Shape
		}
		out = append(out, shape)
	}
	return out, nil
}
