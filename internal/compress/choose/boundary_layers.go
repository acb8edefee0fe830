package choose

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// BoundaryLayers returns the layers that plans keep unchanged by default, with the causes: the
// first layer in operator order, and those that produce a model output without another layer in
// between. A single layer counts as neither. Control flow subgraphs are searched too: each branch
// of an If has its own boundary layers.
func BoundaryLayers(m *graph.Model, layers []study.Layer) map[int]study.Cause {
	e := &boundaryFinder{m: m, out: map[int]study.Cause{}, of: map[[2]int][]int{}, seen: map[[2]int]bool{}, open: make([]bool, len(m.Graphs))}
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
	e.markHeads(0, m.Main().Outputs)
	e.markFirst(0)
	return e.out
}

type boundaryFinder struct {
	m    *graph.Model
	out  map[int]study.Cause
	of   map[[2]int][]int // layers by graph and node
	seen map[[2]int]bool
	open []bool // graphs already searched for the first layer
}

// bodies returns the subgraphs that a node runs, in order of their attributes' names.
func (e *boundaryFinder) bodies(n *graph.Node) []int {
	return slices.DeleteFunc(weights.Subgraphs(n), func(g int) bool { return g <= 0 || g >= len(e.m.Graphs) })
}

// markHeads marks the layers that produce values of a graph. It returns the values that the graph
// reads from outside and that reach these values without a layer in between: ids of captured
// values in the outer graph, and whether inputs are among them.
func (e *boundaryFinder) markHeads(at int, from []int) (outer []int, inputs bool) {
	g := e.m.Graphs[at]
	made := weights.Producers(g)
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
			more, ins := e.markHeads(b, e.m.Graphs[b].Outputs)
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

// markFirst marks the first layer of a graph. If that is inside a control flow operator, it is
// the first layer of each branch of an If, or of the first subgraph of others. It is false if
// such a layer is absent.
func (e *boundaryFinder) markFirst(at int) bool {
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
			if e.markFirst(b) {
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
