package plan

import "github.com/opmeter/opmeter/internal/model/tensor"

// maxShapeInput bounds the inputs whose elements are read, in elements: shapes, lengths and axes
// are short.
const maxShapeInput = 1 << 12

// decideShapes finds shapes that depend on elements of inputs, with a second plan in which these
// elements are constants. It keeps only the shapes of that plan: a node folded there still runs
// in every inference.
func (g *Graph) decideShapes(in []*tensor.Tensor) {
	if !g.any(func(t *Task) bool { return t.Dynamic }) {
		return
	}
	some := false
	var d *Graph
	for k, id := range g.File.Inputs {
		x := in[k]
		if x == nil || !x.Known() || !x.Type.IsInteger() || x.Len() > maxShapeInput || g.File.Values[id].Variable {
			continue
		}
		if d == nil {
			var err error
			if d, err = newGraph(g.model, g.File, in, g.Outer, g.opts, Host{}); err != nil {
				return
			}
		}
		d.Values[id], d.Fixed[id], some = x, true, true
	}
	if !some {
		return
	}
	d.apply()
	for id := range g.File.Values {
		if t := d.Values[id]; known(t) && !known(g.Values[id]) {
			g.claims[id] = describe(t)
		}
	}
}

// Known returns what the plan knows of a value: type and shape, with -1 for unknown dimensions;
// nil if nothing is known.
func (g *Graph) Known(id int) *tensor.Tensor { return g.describeAll([]int{id})[0] }
