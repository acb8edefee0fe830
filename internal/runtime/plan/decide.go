package plan

import "github.com/opmeter/opmeter/internal/model/tensor"

// mostDeciding bounds inputs whose elements are looked at: shapes, lengths and axes
// are short.
const mostDeciding = 1 << 12

// decide finds shapes that elements of inputs decide, by a plan in which these
// elements are constants. Of it nothing but shapes is kept: a node that it computes
// once is computed in every run.
func (g *Graph) decide(in []*tensor.Tensor) {
	if !g.any(func(t *Task) bool { return t.Dynamic }) {
		return
	}
	some := false
	var d *Graph
	for k, id := range g.File.Inputs {
		x := in[k]
		if x == nil || !x.Known() || !x.Type.IsInteger() || x.Len() > mostDeciding || g.File.Values[id].Variable {
			continue
		}
		if d == nil {
			var err error
			if d, err = seeded(g.model, g.File, in, g.Outer, g.opts, Host{}); err != nil {
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
		if t := d.Values[id]; whole(t) && !whole(g.Values[id]) {
			g.claims[id] = describe(t)
		}
	}
}

// Known is what the plan knows of a value: type and shape, dimensions that are not
// known -1; nil for nothing.
func (g *Graph) Known(id int) *tensor.Tensor { return g.seen([]int{id})[0] }
