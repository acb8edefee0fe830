package weights

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// Part returns a model of some nodes of the main graph, and of the nodes that compute constants for
// them. Values keep their ids; inputs are the values that it reads from outside.
func Part(m *graph.Model, nodes []int) (p *graph.Model, inputs []int) {
	g := m.Main()
	made := map[int]int{}
	for i, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 {
				made[id] = i
			}
		}
	}
	in := make([]bool, len(g.Nodes))
	known := map[int]bool{}
	var constant func(id int) bool
	constant = func(id int) bool {
		if id < 0 || g.Values[id].Const != nil {
			return true
		}
		at, ok := made[id]
		if !ok {
			return false
		}
		if c, seen := known[at]; seen {
			return c
		}
		known[at] = false
		c := len(Subgraphs(g.Nodes[at])) == 0 // these may read any value
		for _, id := range g.Nodes[at].Inputs {
			c = c && constant(id)
		}
		known[at] = c
		return c
	}
	var add func(at int)
	add = func(at int) {
		if in[at] {
			return
		}
		in[at] = true
		for _, id := range g.Nodes[at].Inputs {
			if id >= 0 && g.Values[id].Const == nil {
				if k, ok := made[id]; ok && constant(id) {
					add(k)
				}
			}
		}
	}
	part := *g
	part.Nodes, part.Inputs, part.Outputs = nil, nil, nil
	for _, k := range nodes {
		add(k)
		for _, id := range g.Nodes[k].Outputs {
			if id >= 0 {
				part.Outputs = append(part.Outputs, id)
			}
		}
	}
	have := map[int]bool{}
	for i, n := range g.Nodes {
		if !in[i] {
			continue
		}
		c := *n
		c.Index = len(part.Nodes)
		part.Nodes = append(part.Nodes, &c)
		for _, id := range n.Inputs {
			if v := max(id, 0); id >= 0 && !have[id] && g.Values[v].Const == nil && !g.Values[v].Variable && !g.Values[v].Scratch {
				part.Inputs = append(part.Inputs, id)
			}
		}
		for _, id := range n.Outputs {
			have[id] = true
		}
	}
	slices.Sort(part.Inputs)
	part.Inputs = slices.Compact(part.Inputs)
	out := *m
	out.Content, out.Close, out.Signatures = nil, nil, nil
	out.Graphs = slices.Clone(m.Graphs)
	out.Graphs[0] = &part
	return &out, part.Inputs
}
