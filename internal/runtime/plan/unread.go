package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// unread leaves out what nothing reads of outputs that an operator need not make: old exporters name all of them. A Dropout that
// does not train, and whose mask nothing reads, passes its input on.
func unread(g *Graph) {
	uses, identity := g.readers(), g.opts.Registry.Find(graph.ONNX, "Identity", 1) != nil
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State != Runs || t.asIs || t.Lowered {
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
			drop = nil // an operator of which nothing is read makes all that it made
		}
		c := *n
		if len(drop) > 0 {
			c.Outputs = slices.Clone(n.Outputs)
			for _, k := range drop {
				c.Outputs[k] = -1 // what is known of the value stays
			}
			for c.Outputs[len(c.Outputs)-1] < 0 {
				c.Outputs = c.Outputs[:len(c.Outputs)-1]
			}
		}
		if passes := identity && g.passesOn(&c); passes || len(drop) > 0 {
			if passes {
				c.Op, c.Version, c.Inputs, c.Attrs = "Identity", 1, c.Inputs[:1], nil
			}
			g.replace(i, &c)
		}
	}
	g.Settle()
}

// passesOn tells whether a node is a Dropout that gives its input and nothing else: since version 12 an input says whether it trains,
// before 7 an attribute.
func (g *Graph) passesOn(n *graph.Node) bool {
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
