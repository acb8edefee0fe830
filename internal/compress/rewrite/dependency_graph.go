package rewrite

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// dependencyGraph has the channel dependencies of a model.
type dependencyGraph struct {
	m            *graph.Model
	g            *graph.Graph
	shape        func(id int) []int
	readers      [][]int // nodes by value, producer included
	dependencies [][]dependency
	broadcast    []map[[2]int]bool
	independent  []map[axisIndex]bool
	virtualNodes map[int][]int // nodes of virtual values
	frozen       []bool        // values that are visible outside of the graph
}

func newDependencyGraph(m *graph.Model, shape func(id int) []int) *dependencyGraph {
	g := m.Main()
	l := &dependencyGraph{m: m, g: g, shape: shape, readers: make([][]int, len(g.Values)), virtualNodes: map[int][]int{}, frozen: make([]bool, len(g.Values))}
	tie := -1
	heads := attentionHeads(g, shape)
	for i, n := range g.Nodes {
		b := &dependencyFinder{g: g, shape: shape, n: n, headAxis: -1, lastVirtual: &tie, broadcast: map[[2]int]bool{}, independent: map[axisIndex]bool{}}
		if a, ok := heads[n]; ok {
			b.headAxis = a
		}
		first := tie
		if shapesKnown(n, shape) {
			b.find()
		}
		for t := first - 1; t >= tie; t-- {
			l.virtualNodes[t] = []int{i}
		}
		l.dependencies, l.broadcast, l.independent = append(l.dependencies, b.list), append(l.broadcast, b.broadcast), append(l.independent, b.independent)
		for _, id := range slices.Concat(n.Inputs, n.Outputs) {
			if id >= 0 && !slices.Contains(l.readers[id], i) {
				l.readers[id] = append(l.readers[id], i)
			}
		}
	}
	for _, id := range slices.Concat(g.Inputs, g.Outputs) {
		if id >= 0 {
			l.frozen[id] = true
		}
	}
	for _, b := range m.Graphs[1:] {
		if b.Parent == g {
			for _, c := range b.Captures {
				l.frozen[c.Outer] = true
			}
		}
	}
	for id, v := range g.Values {
		// A state used by a single operator may shrink with it.
		own := v.Variable && len(l.readers[id]) == 1 && strings.HasSuffix(g.Nodes[l.readers[id][0]].Op, "DIRECTIONAL_SEQUENCE_LSTM")
		l.frozen[id] = l.frozen[id] || v.Variable && !own || v.Scratch
	}
	return l
}

// shapesKnown reports whether the shapes of all operands are known.
func shapesKnown(n *graph.Node, shape func(id int) []int) bool {
	return !slices.ContainsFunc(slices.Concat(n.Inputs, n.Outputs), func(id int) bool { return id >= 0 && shape(id) == nil })
}

// closure lists all indices that must be removed together with one. It is false where one of them
// must stay.
func (l *dependencyGraph) closure(first axisIndex) (all []axisIndex, ok bool) {
	seen := map[axisIndex]bool{first: true}
	all = []axisIndex{first}
	for i := 0; i < len(all); i++ {
		at := all[i]
		nodes := l.virtualNodes[at.value]
		if at.value >= 0 {
			if l.frozen[at.value] {
				return nil, false
			}
			nodes = l.readers[at.value]
		}
		for _, k := range nodes {
			n := l.g.Nodes[k]
			if weights.ReadsShapeOnly(n) && at.value >= 0 && slices.Contains(n.Inputs, at.value) {
				continue
			}
			held := l.broadcast[k][[2]int{at.value, at.axis}] || l.independent[k][at]
			for j := range l.dependencies[k] {
				next, touches := l.dependencies[k][j].linked(at)
				held = held || touches
				for _, x := range next {
					if !seen[x] {
						seen[x] = true
						all = append(all, x)
					}
				}
			}
			if !held {
				return nil, false
			}
		}
	}
	return all, true
}

// axisLayout says where the rows and columns of a layer are in its constant: an axis for each and
// the index on it, -1 where no axis distinguishes them.
type axisLayout struct {
	rowAxis, colAxis int
	row, col         []int // index of each row on rowAxis, of each input channel on colAxis
}

// rows returns the rows at an index: several where an additional axis holds a matrix per
// direction or batch.
func (s *axisLayout) rows(at int) (out []int) {
	for r, p := range s.row {
		if p == at {
			out = append(out, r)
		}
	}
	return out
}

func axisLayoutOf(l *weights.Layer) axisLayout {
	s := axisLayout{rowAxis: -1, colAxis: -1}
	s.rowAxis, s.row = axisAlong(l, l.Row, l.Col, true)
	channels := make([]int, l.Channels)
	for c := range channels {
		channels[c] = l.Col[c*l.Taps]
	}
	rest := slices.Clone(l.Row)
	for _, t := range l.Col[:l.Taps] {
		rest = append(rest, t-l.Col[0])
	}
	s.colAxis, s.col = axisAlong(l, channels, rest, false)
	return s
}

// axisAlong returns the axis along which offsets differ and others do not, -1 if absent.
// Each offset has its own index; with several, each index may have the same number of offsets.
func axisAlong(l *weights.Layer, offsets, others []int, several bool) (axis int, at []int) {
	stride := 1
	for a := len(l.Const.Shape) - 1; a >= 0; a-- {
		d := l.Const.Shape[a]
		place := func(e int) int { return e / stride % d }
		n := len(offsets) / max(d, 1)
		if (n == 1 || n > 1 && several && d > 1) && n*d == len(offsets) && !slices.ContainsFunc(others, func(e int) bool { return place(e) != 0 }) {
			at = make([]int, len(offsets))
			seen := make([]int, d)
			for i, e := range offsets {
				at[i] = place(e)
				seen[at[i]]++
			}
			if !slices.ContainsFunc(seen, func(k int) bool { return k != n }) {
				return a, at
			}
		}
		stride *= d
	}
	return -1, nil
}
