package choose

import (
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/study"
)

// Ends returns layers that plans leave as they are unless told otherwise: the first one, in the
// order of the operators, and those that an output of the model comes from without another layer
// between, with their reasons. Where there is only one layer it is neither.
func Ends(m *graph.Model, layers []study.Layer) map[int]study.Cause {
	out := map[int]study.Cause{}
	if len(layers) < 2 {
		return out
	}
	g := m.Main()
	of := map[int][]int{} // layers by node
	first := 0
	for i, l := range layers {
		if l.Node < layers[first].Node {
			first = i
		}
		of[l.Node] = append(of[l.Node], i)
		for _, n := range l.Nodes {
			if n != l.Node {
				of[n] = append(of[n], i)
			}
		}
	}
	made := make([]int, len(g.Values))
	for i := range made {
		made[i] = -1
	}
	for _, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 {
				made[id] = n.Index
			}
		}
	}
	seen := make([]bool, len(g.Nodes))
	next := append([]int(nil), g.Outputs...)
	for len(next) > 0 {
		id := next[len(next)-1]
		next = next[:len(next)-1]
		if id < 0 || made[id] < 0 || seen[made[id]] {
			continue
		}
		n := g.Nodes[made[id]]
		seen[n.Index] = true
		if ls := of[n.Index]; len(ls) > 0 {
			for _, i := range ls {
				out[i] = study.Head
			}
			continue
		}
		next = append(next, n.Inputs...)
	}
	out[first] = study.First
	return out
}
