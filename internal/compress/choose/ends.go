package choose

import (
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/study"
)

// Ends returns layers that plans leave as they are unless told otherwise: the first one, in the
// order of the operators, and those that an output of the model comes from without another layer
// between, with their reasons. Where there is only one layer it is neither. Bodies of control flow are
// looked through: of an If each branch has ends of its own.
func Ends(m *graph.Model, layers []study.Layer) map[int]study.Cause {
	e := &edges{m: m, out: map[int]study.Cause{}, of: map[[2]int][]int{}, seen: map[[2]int]bool{}, open: make([]bool, len(m.Graphs))}
	if len(layers) < 2 {
		return e.out
	}
	for i, l := range layers {
		nodes := l.Nodes
		if len(nodes) == 0 {
			nodes = []int{l.Node}
		}
		for _, n := range nodes {
			e.of[[2]int{l.Graph, n}] = append(e.of[[2]int{l.Graph, n}], i)
		}
	}
	e.heads(0, m.Main().Outputs)
	e.first(0)
	return e.out
}

type edges struct {
	m    *graph.Model
	out  map[int]study.Cause
	of   map[[2]int][]int // layers by graph and node
	seen map[[2]int]bool
	open []bool // graphs that the first layer is looked for in
}

// bodies are the graphs that a node runs, in order of their attributes' names.
func (e *edges) bodies(n *graph.Node) (out []int) {
	for _, name := range slices.Sorted(maps.Keys(n.Attrs)) {
		switch a := n.Attrs[name].(type) {
		case graph.GraphRef:
			out = append(out, int(a))
		case []graph.GraphRef:
			for _, g := range a {
				out = append(out, int(g))
			}
		}
	}
	return slices.DeleteFunc(out, func(g int) bool { return g <= 0 || g >= len(e.m.Graphs) })
}

// heads marks the layers that values of a graph come from. It reports the values that the graph reads from outside which they
// come from without a layer between: captured ones by their ids there, and whether inputs are among them.
func (e *edges) heads(at int, from []int) (outer []int, inputs bool) {
	g := e.m.Graphs[at]
	made := make([]*graph.Node, len(g.Values))
	for _, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 {
				made[id] = n
			}
		}
	}
	captured := map[int]int{}
	for _, c := range g.Captures {
		captured[c.Inner] = c.Outer
	}
	next := slices.Clone(from)
	for len(next) > 0 {
		id := next[len(next)-1]
		next = next[:len(next)-1]
		if id < 0 {
			continue
		}
		n := made[id]
		if n == nil {
			if o, ok := captured[id]; ok {
				outer = append(outer, o)
			}
			inputs = inputs || slices.Contains(g.Inputs, id)
			continue
		}
		if e.seen[[2]int{at, n.Index}] {
			continue
		}
		e.seen[[2]int{at, n.Index}] = true
		if ls := e.of[[2]int{at, n.Index}]; len(ls) > 0 {
			for _, i := range ls {
				e.out[i] = study.Head
			}
			continue
		}
		bodies := e.bodies(n)
		through := len(bodies) == 0
		for _, b := range bodies {
			more, ins := e.heads(b, e.m.Graphs[b].Outputs)
			if through = through || ins; e.m.Graphs[b].Parent == g {
				next = append(next, more...)
			}
		}
		if through {
			next = append(next, n.Inputs...)
		}
	}
	return outer, inputs
}

// first marks the first layer of a graph, or those of the bodies that its first operator with some runs: of each branch of an If, of others
// of the first body. False where there is none.
func (e *edges) first(at int) bool {
	if e.open[at] {
		return false
	}
	e.open[at] = true
	for _, n := range e.m.Graphs[at].Nodes {
		if ls := e.of[[2]int{at, n.Index}]; len(ls) > 0 {
			e.out[ls[0]] = study.First
			return true
		}
		found := false
		for _, b := range e.bodies(n) {
			if e.first(b) {
				if found = true; n.Op != "If" && n.Op != "IF" {
					break
				}
			}
		}
		if found {
			return true
		}
	}
	return false
}
