package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/study"
)

// Group is a group of layers whose channels or filters must be removed together, and the nodes
// that become smaller.
type Group struct {
	// Layers are positions in the list of layers. All of them have to be changed together.
	Layers []int
	// Nodes are the positions of all nodes whose operands become smaller, ascending.
	Nodes []int
}

// OtherMembers returns the layers of a group except one, nil for none.
func OtherMembers(layers []int, l int) []int {
	if len(layers) < 2 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(layers), func(k int) bool { return k == l })
}

// Groups lists the groups of layers that lose filters or channels together, ordered by their
// first layer. Layers that cannot lose any, layers of control flow subgraphs, and depthwise
// layers (which follow their inputs) are in no group.
func Groups(m *graph.Model, layers []*weights.Layer, s study.Structure) []Group {
	p := newPruner(m, make([]Change, 0, len(layers)))
	at := map[int]int{} // layers by constant
	for i, l := range layers {
		if l.Graph == 0 {
			at[l.Value] = i
		}
		p.changes = append(p.changes, Change{Layer: l, Change: study.Change{Structure: s}})
	}
	first := make([]int, len(layers)) // union-find parents
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
	seen := map[axisIndex]bool{}
	for i, l := range layers {
		if l.Graph != 0 || l.Channels == 1 && l.Groups > 1 {
			continue
		}
		for _, x := range p.unitIndices(i) {
			if seen[x] {
				continue
			}
			all, ok := p.deps.closure(x)
			for _, y := range all {
				seen[y] = true
			}
			if !ok {
				continue
			}
			makers, readers := p.makersAndReaders(all)
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
					for _, n := range p.deps.readers[y.value] {
						nodes[i][n] = true
					}
				}
			}
		}
	}
	return buildGroups(nodes, root, len(layers), p.deps.g)
}

// buildGroups collects the results by layer into groups.
func buildGroups(nodes map[int]map[int]bool, root func(i int) int, n int, g *graph.Graph) (out []Group) {
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
			if !weights.ReadsShapeOnly(g.Nodes[at]) {
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

// unitIndices lists the axis indices of a layer's units.
func (p *pruner) unitIndices(i int) (out []axisIndex) {
	l := p.changes[i].Layer
	n := l.Rows
	if p.changes[i].Structure == study.Channel {
		n = l.Channels
	}
	for k := range n {
		if x, ok := p.unitIndex(i, k); ok {
			out = append(out, x)
		}
	}
	return out
}

// makersAndReaders returns the constants of the layers that produce indices, and of those that
// read them; neither where the weights of a layer cannot be removed.
func (p *pruner) makersAndReaders(all []axisIndex) (makers, readers []int) {
	for _, x := range all {
		l := p.by[x.value]
		if l == nil {
			continue
		}
		s := p.axes[x.value]
		list := &readers
		switch {
		case l.MixedLayouts || l.Fixed != "" && l.Fixed != study.AllZero || x.axis != s.rowAxis && x.axis != s.colAxis:
			return nil, nil
		case x.axis == s.rowAxis && l.Channels == 1 && l.Groups > 1:
			continue // depthwise, follows its input
		case x.axis == s.rowAxis:
			list = &makers
		}
		if !slices.Contains(*list, x.value) {
			*list = append(*list, x.value)
		}
	}
	return makers, readers
}
