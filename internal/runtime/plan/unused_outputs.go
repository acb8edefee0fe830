package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// dropUnused drops optional outputs that nothing reads, because old exporters name all of them. A
// Dropout in inference mode whose mask nothing reads passes its input on.
func dropUnused(g *Graph) {
	uses, identity := g.readers(), g.opts.Registry.Find(graph.ONNX, "Identity", 1) != nil
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State != Runs || t.final || t.Lowered {
			continue
		}
		n, drop := t.Node, []int(nil)
		for k, id := range n.Outputs {
			if id >= 0 && uses[id] == 0 && !g.Graph.Values[id].Variable && g.opts.Registry.OptionalOutput(n, k) {
				drop = append(drop, k)
			}
		}
		left := len(n.Outputs) - len(drop)
		for _, id := range n.Outputs {
			if id < 0 {
				left--
			}
		}
		if len(drop) == 0 || left == 0 {
			drop = nil // an operator without readers keeps all outputs
		}
		c := *n
		if len(drop) > 0 {
			c.Outputs = slices.Clone(n.Outputs)
			for _, k := range drop {
				c.Outputs[k] = -1 // the value's type and shape stay known
			}
			for c.Outputs[len(c.Outputs)-1] < 0 {
				c.Outputs = c.Outputs[:len(c.Outputs)-1]
			}
		}
		if passes := identity && g.isIdentityDropout(&c); passes || len(drop) > 0 {
			if passes {
				c.Op, c.Version, c.Inputs, c.Attrs = "Identity", 1, c.Inputs[:1], nil
			}
			g.replace(i, &c)
		}
	}
	g.InferAll()
}

// isIdentityDropout reports whether a node is a Dropout that only returns its input. Since
// version 12 an input selects training, before version 7 an attribute.
func (g *Graph) isIdentityDropout(n *graph.Node) bool {
	if n.Domain != graph.ONNX || n.Op != "Dropout" || len(n.Outputs) != 1 || len(n.Inputs) == 0 || n.Inputs[0] < 0 {
		return false
	}
	switch {
	case n.Version < 7:
		return n.Attrs.Bool("is_test", false)
	case n.Version < 12 || len(n.Inputs) < 3 || n.Inputs[2] < 0:
		return true
	}
	id := n.Inputs[2]
	x := g.Values[id]
	return g.Fixed[id] && x.Known() && x.Len() > 0 && x.Data[0] == 0
}
