package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/runtime/op"
)

// channelsLast lets operators on 8-bit quantised values exchange feature maps in channels-last
// order. Convolutions compute in this order and would otherwise transpose before and after.
// Shapes stay those of the file.
func channelsLast(g *Graph) { g.chooseNHWC() }

// chooseNHWC selects the channels-last feature maps again. It returns the first task that has
// changed, or the number of tasks.
func (g *Graph) chooseNHWC() int {
	first := len(g.Tasks)
	if g.Outer != nil || !g.any(func(t *Task) bool { return t.nhwcSupport() != op.NHWCNever }) {
		return first
	}
	l := &nhwcPass{g: g, nhwc: make([]bool, len(g.Values)), support: make([]op.NHWCSupport, len(g.Tasks))}
	l.candidates()
	for again := true; again; {
		again = false
		for i := range g.Tasks {
			again = l.refuse(i) || again
		}
	}
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if last := [2]bool{l.any(t.Node.Inputs), l.any(t.Node.Outputs)}; t.State == Runs && last != t.nhwc {
			t.nhwc, t.settled, t.Ready = last, false, false
			first = min(first, i)
		}
	}
	g.InferAll()
	return first
}

// nhwcSupport returns a task's support for channels-last order.
func (t *Task) nhwcSupport() op.NHWCSupport {
	if t.State != Runs || t.Dynamic || t.Def == nil || t.Def.NHWC == nil {
		return op.NHWCNever
	}
	way := op.NHWCNever
	if Guard(func() error { way = t.Def.NHWC(&t.Call); return nil }) != nil {
		return op.NHWCNever
	}
	return way
}

// nhwcPass is the state of the pass for a graph.
type nhwcPass struct {
	g       *Graph
	nhwc    []bool           // by value id
	support []op.NHWCSupport // by task
}

// featureMap reports whether a value is an 8-bit quantised feature map that changes from run to
// run.
func (l *nhwcPass) featureMap(id int) bool {
	if id < 0 || l.g.Fixed[id] {
		return false
	}
	x := l.g.Values[id]
	return x != nil && is8Bit(x.Type) && len(x.Shape) == 4 && !slices.ContainsFunc(x.Shape, func(n int) bool { return n <= 0 })
}

// candidates marks the feature maps that one operator of the graph writes and others read.
func (l *nhwcPass) candidates() {
	g := l.g
	uses := g.readers()
	read := make([]int, len(g.Values))
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		l.support[i] = t.nhwcSupport()
		for _, id := range t.Node.Inputs {
			if id >= 0 {
				read[id]++
			}
		}
	}
	for i := range g.Tasks {
		if l.support[i] == op.NHWCNever {
			continue
		}
		for _, id := range g.Tasks[i].Node.Outputs {
			l.nhwc[max(id, 0)] = l.featureMap(id) && uses[id] > 0 && uses[id] == read[id] && !g.Graph.Values[id].Variable
		}
	}
}

// any reports whether at least one of the values is channels-last.
func (l *nhwcPass) any(ids []int) bool {
	return slices.ContainsFunc(ids, func(id int) bool { return id >= 0 && l.nhwc[id] })
}

// all reports whether the values include feature maps and all of these are channels-last.
func (l *nhwcPass) all(ids []int) bool {
	return l.any(ids) && !slices.ContainsFunc(ids, func(id int) bool { return l.featureMap(id) && !l.nhwc[id] })
}

// refuse unmarks the feature maps of task i that it cannot handle in channels-last order. It
// reports whether there were any.
func (l *nhwcPass) refuse(i int) bool {
	t := &l.g.Tasks[i]
	if t.State == Fused {
		return false
	}
	in, out := l.any(t.Node.Inputs), l.any(t.Node.Outputs)
	wholeIn, wholeOut := l.all(t.Node.Inputs), l.all(t.Node.Outputs)
	switch l.support[i] {
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
				l.nhwc[id] = false
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
