package rewrite

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// lanes knows which lanes of a model go together.
type lanes struct {
	m       *graph.Model
	g       *graph.Graph
	shape   func(id int) []int
	readers [][]int // nodes by value, its maker among them
	bonds   [][]bond
	blind   []map[[2]int]bool
	free    []map[lane]bool
	ties    map[int][]int // nodes of what is no tensor
	frozen  []bool        // values whose lanes others see
}

func newLanes(m *graph.Model, shape func(id int) []int) *lanes {
	g := m.Main()
	l := &lanes{m: m, g: g, shape: shape, readers: make([][]int, len(g.Values)), ties: map[int][]int{}, frozen: make([]bool, len(g.Values))}
	tie := -1
	heads := heads(g, shape)
	for i, n := range g.Nodes {
		b := &bonds{g: g, shape: shape, n: n, heads: -1, tie: &tie, blind: map[[2]int]bool{}, free: map[lane]bool{}}
		if a, ok := heads[n]; ok {
			b.heads = a
		}
		first := tie
		if known(n, shape) {
			b.find()
		}
		for t := first - 1; t >= tie; t-- {
			l.ties[t] = []int{i}
		}
		l.bonds, l.blind, l.free = append(l.bonds, b.list), append(l.blind, b.blind), append(l.free, b.free)
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
		// A state that one operator alone has may become smaller with it.
		own := v.Variable && len(l.readers[id]) == 1 && strings.HasSuffix(g.Nodes[l.readers[id][0]].Op, "DIRECTIONAL_SEQUENCE_LSTM")
		l.frozen[id] = l.frozen[id] || v.Variable && !own || v.Scratch
	}
	return l
}

// known reports whether the shapes of all operands are.
func known(n *graph.Node, shape func(id int) []int) bool {
	return !slices.ContainsFunc(slices.Concat(n.Inputs, n.Outputs), func(id int) bool { return id >= 0 && shape(id) == nil })
}

// class lists all lanes that go with one; false where something keeps one of them.
func (l *lanes) class(first lane) (all []lane, ok bool) {
	seen := map[lane]bool{first: true}
	all = []lane{first}
	for i := 0; i < len(all); i++ {
		at := all[i]
		nodes := l.ties[at.value]
		if at.value >= 0 {
			if l.frozen[at.value] {
				return nil, false
			}
			nodes = l.readers[at.value]
		}
		for _, k := range nodes {
			n := l.g.Nodes[k]
			if weights.SeesShape(n) && at.value >= 0 && slices.Contains(n.Inputs, at.value) {
				continue
			}
			held := l.blind[k][[2]int{at.value, at.axis}] || l.free[k][at]
			for j := range l.bonds[k] {
				next, touches := l.bonds[k][j].from(at)
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

// spots say where the rows and columns of a layer lie in its constant: an axis for each and the place there,
// -1 where no axis tells them apart.
type spots struct {
	rowAxis, colAxis int
	row, col         []int // place of each row along rowAxis, of each input channel along colAxis
}

// rows are those at a place: several where a matrix for each direction or batch lies along another axis.
func (s *spots) rows(at int) (out []int) {
	for r, p := range s.row {
		if p == at {
			out = append(out, r)
		}
	}
	return out
}

func spotsOf(l *weights.Layer) spots {
	s := spots{rowAxis: -1, colAxis: -1}
	s.rowAxis, s.row = along(l, l.Row, l.Col, true)
	channels := make([]int, l.Channels)
	for c := range channels {
		channels[c] = l.Col[c*l.Taps]
	}
	rest := slices.Clone(l.Row)
	for _, t := range l.Col[:l.Taps] {
		rest = append(rest, t-l.Col[0])
	}
	s.colAxis, s.col = along(l, channels, rest, false)
	return s
}

// along is the axis along which offsets differ, each at a place of its own, or with several as many at each place, and others do not; -1
// where there is none.
func along(l *weights.Layer, offsets, others []int, several bool) (axis int, at []int) {
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
