package inputs

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// CheckBatch refuses a batch that the inputs have and no output: the model fixes its own, such as
// in the constant shape of a Reshape, so that it mixes the items. Figures for each item would be
// wrong. Outputs of unknown shape decide nothing.
func CheckBatch(p *plan.Plan, o Options) error {
	if o.Batch < 2 {
		return nil
	}
	g := p.Model.Main()
	changed := false
	for _, id := range g.Inputs {
		v := g.Values[id]
		changed = changed || len(o.Shapes[v.Name]) == 0 && len(v.Shape) > 0 && v.Shape[0] != o.Batch
	}
	kept := ""
	for _, id := range g.Outputs {
		t := p.Main.Known(id)
		if t == nil || len(t.Shape) == 0 || t.Shape[0] != 1 {
			return nil
		}
		for _, d := range t.Shape {
			if d < 0 || d == o.Batch { // a state has the batch behind its layers
				return nil
			}
		}
		if kept == "" {
			kept = fmt.Sprintf("output %s is %s", g.Values[id].Name, tensor.FormatShape(t.Shape))
		}
	}
	if !changed || kept == "" {
		return nil
	}
	return optionError("batch", "the model fixes a batch of 1 inside: %s with a batch of %d; export it with an open batch dimension", kept, o.Batch)
}
