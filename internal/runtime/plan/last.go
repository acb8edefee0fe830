package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// channelsLast lets operators on 8-bit codes hand pictures on with their channels last in memory: convolutions compute so, and would
// have to exchange rows and columns before and after. Shapes stay those of the file.
func channelsLast(g *Graph) { g.relast() }

// relast chooses the pictures anew. It returns the first task that has changed, or the number of tasks.
func (g *Graph) relast() int {
	first := len(g.Tasks)
	if g.Outer != nil || !g.any(func(t *Task) bool { return t.lasts() != op.NHWCNever }) {
		return first
	}
	l := &lasting{g: g, last: make([]bool, len(g.Values)), ways: make([]op.NHWCSupport, len(g.Tasks))}
	l.candidates()
	for again := true; again; {
		again = false
		for i := range g.Tasks {
			again = l.refuse(i) || again
		}
	}
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if last := [2]bool{l.any(t.Node.Inputs), l.any(t.Node.Outputs)}; t.State == Runs && last != t.last {
			t.last, t.settled, t.Ready = last, false, false
			first = min(first, i)
		}
	}
	g.Settle()
	return first
}

// lasts is the way of a task.
func (t *Task) lasts() op.NHWCSupport {
	if t.State != Runs || t.Dynamic || t.Def == nil || t.Def.NHWC == nil {
		return op.NHWCNever
	}
	way := op.NHWCNever
	if Guard(func() error { way = t.Def.NHWC(&t.Call); return nil }) != nil {
		return op.NHWCNever
	}
	return way
}

// lasting is the pass at work on a graph.
type lasting struct {
	g    *Graph
	last []bool           // by value id
	ways []op.NHWCSupport // by task
}

// picture tells whether a value is one of 8-bit codes that changes from run to run.
func (l *lasting) picture(id int) bool {
	if id < 0 || l.g.Fixed[id] {
		return false
	}
	x := l.g.Values[id]
	return x != nil && small(x.Type) && len(x.Shape) == 4 && !slices.ContainsFunc(x.Shape, func(n int) bool { return n <= 0 })
}

// candidates are pictures that one operator makes and others of the graph read.
func (l *lasting) candidates() {
	g := l.g
	uses := g.readers()
	read := make([]int, len(g.Values))
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		l.ways[i] = t.lasts()
		for _, id := range t.Node.Inputs {
			if id >= 0 {
				read[id]++
			}
		}
	}
	for i := range g.Tasks {
		if l.ways[i] == op.NHWCNever {
			continue
		}
		for _, id := range g.Tasks[i].Node.Outputs {
			l.last[max(id, 0)] = l.picture(id) && uses[id] > 0 && uses[id] == read[id] && !g.Graph.Values[id].Variable
		}
	}
}

// any tells whether a picture among values has its channels last.
func (l *lasting) any(ids []int) bool {
	return slices.ContainsFunc(ids, func(id int) bool { return id >= 0 && l.last[id] })
}

// all tells whether there are pictures among values, all with their channels last.
func (l *lasting) all(ids []int) bool {
	return l.any(ids) && !slices.ContainsFunc(ids, func(id int) bool { return l.picture(id) && !l.last[id] })
}

// refuse takes the pictures of task i out that it cannot have so. It reports whether there were any.
func (l *lasting) refuse(i int) bool {
	t := &l.g.Tasks[i]
	if t.State == Fused {
		return false
	}
	in, out := l.any(t.Node.Inputs), l.any(t.Node.Outputs)
	wholeIn, wholeOut := l.all(t.Node.Inputs), l.all(t.Node.Outputs)
	switch l.ways[i] {
	case op.NHWCAny:
		in, out = in && !wholeIn, out && !wholeOut
	case op.NHWCOutOnly:
		out = out && !wholeOut
	case op.NHWCAll, op.NHWCBoth:
		if wholeIn && wholeOut {
			return false
		}
	}
	if !in && !out {
		return false
	}
	clear := func(ids []int) {
		for _, id := range ids {
			if id >= 0 {
				l.last[id] = false
			}
		}
	}
	if in {
		clear(t.Node.Inputs)
	}
	if out {
		clear(t.Node.Outputs)
	}
	return true
}
