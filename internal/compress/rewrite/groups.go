package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Group are layers of which channels or filters can be taken out, with what becomes smaller by that.
type Group struct {
	// Layers are positions in the list of layers: those that all have to be asked for it.
	Layers []int
	// Nodes are all whose operands become smaller, by position and rising.
	Nodes []int
}

// Groups are the layers that lose filters or channels together, by the first layer of each. Layers that cannot lose any, those of
// bodies of control flow, and depthwise ones, which follow what they read, are in none.
func Groups(m *graph.Model, layers []*weights.Layer, s study.Structure) []Group {
	p := newPruner(m, make([]Change, 0, len(layers)))
	at := map[int]int{} // layers by constant
	for i, l := range layers {
		if l.Graph == 0 {
			at[l.Value] = i
		}
		p.changes = append(p.changes, Change{Layer: l, Change: study.Change{Structure: s}})
	}
	first := make([]int, len(layers)) // of the layers that a layer goes with
	for i := range first {
		first[i] = i
	}
	root := func(i int) int {
		for first[i] != i {
			i = first[i]
		}
		return i
	}
	nodes := map[int]map[int]bool{} // by layer
	seen := map[lane]bool{}
	for i, l := range layers {
		if l.Graph != 0 || l.Channels == 1 && l.Groups > 1 {
			continue
		}
		for _, x := range p.unitLanes(i) {
			if seen[x] {
				continue
			}
			all, ok := p.l.class(x)
			for _, y := range all {
				seen[y] = true
			}
			if !ok {
				continue
			}
			makers, readers := p.askers(all)
			ask := makers
			if s == study.Channel {
				ask = readers
			}
			if len(readers) == 0 || len(ask) == 0 {
				continue
			}
			a := root(i)
			for _, v := range ask {
				if k, ok := at[v]; ok {
					b := root(k)
					a, first[max(a, b)] = min(a, b), min(a, b)
				}
			}
			if nodes[i] == nil {
				nodes[i] = map[int]bool{}
			}
			for _, y := range all {
				if y.value >= 0 {
					for _, n := range p.l.readers[y.value] {
						nodes[i][n] = true
					}
				}
			}
		}
	}
	return gather(nodes, root, len(layers), p.l.g)
}

// gather makes groups of what was found layer by layer.
func gather(nodes map[int]map[int]bool, root func(i int) int, n int, g *graph.Graph) (out []Group) {
	by := map[int]int{}
	touched := map[int]bool{}
	for i := range n {
		touched[root(i)] = touched[root(i)] || len(nodes[i]) > 0
	}
	for i := range n {
		r := root(i)
		if !touched[r] {
			continue
		}
		k, ok := by[r]
		if !ok {
			k = len(out)
			by[r], out = k, append(out, Group{})
		}
		out[k].Layers = append(out[k].Layers, i)
		for at := range nodes[i] {
			if !weights.SeesShape(g.Nodes[at]) {
				out[k].Nodes = append(out[k].Nodes, at)
			}
		}
	}
	for k := range out {
		slices.Sort(out[k].Nodes)
		out[k].Nodes = slices.Compact(out[k].Nodes)
	}
	return out
}

// unitLanes are the lanes of a layer's units.
func (p *pruner) unitLanes(i int) (out []lane) {
	l := p.changes[i].Layer
	n := l.Rows
	if p.changes[i].Structure == study.Channel {
		n = l.Channels
	}
	for k := range n {
		if x, ok := p.lane(i, k); ok {
			out = append(out, x)
		}
	}
	return out
}

// askers are the constants of the layers that make lanes, and of those that read them; none of either where a layer's weights cannot go.
func (p *pruner) askers(all []lane) (makers, readers []int) {
	for _, x := range all {
		l := p.by[x.value]
		if l == nil {
			continue
		}
		s := p.spots[x.value]
		list := &readers
		switch {
		case l.Mixed || l.Fixed != "" && l.Fixed != study.AllZero || x.axis != s.rowAxis && x.axis != s.colAxis:
			return nil, nil
		case x.axis == s.rowAxis && l.Channels == 1 && l.Groups > 1:
			continue // follows
		case x.axis == s.rowAxis:
			list = &makers
		}
		if !slices.Contains(*list, x.value) {
			*list = append(*list, x.value)
		}
	}
	return makers, readers
}
