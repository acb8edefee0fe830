package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// widen keeps halves in float32 between operators. Operators compute halves in float32 and round what they
// make: between two of them the rounding and the way back are time, and nothing else. Inputs, outputs and
// constants stay as they are; what reads or makes them converts. Conversions in the file between such values and float32 that
// other operators make, or alone read, are left out.
func widen(g *Graph) {
	if g.model.Format != "onnx" || g.opts.Registry == nil || g.opts.Registry.Widen == nil {
		return
	}
	w := &widening{g: g, wide: make([]bool, len(g.Values)), readers: make([][]int, len(g.Values))}
	if w.candidates(); !slices.Contains(w.wide, true) {
		return
	}
	for again := true; again; {
		again = false
		for i := range g.Tasks {
			again = w.refuse(i) || again
		}
	}
	w.apply()
	g.Settle()
}

// computes lists operators that go through float32 for halves. All others move elements, or work on their bits:
// to widen these for their sake costs what it saves.
var computes = map[string]bool{
	"Add": true, "Attention": true, "AveragePool": true, "BatchNormalization": true, "BiasGelu": true, "Clip": true, "Conv": true,
	"ConvTranspose": true, "Div": true, "Einsum": true, "Elu": true, "Erf": true, "Exp": true, "FastGelu": true, "FusedConv": true,
	"FusedGemm": true, "FusedMatMul": true, "Gelu": true, "Gemm": true, "GlobalAveragePool": true, "GroupNormalization": true,
	"HardSigmoid": true, "HardSwish": true, "InstanceNormalization": true, "LRN": true, "LayerNormalization": true, "LeakyRelu": true,
	"Log": true, "LogSoftmax": true, "MatMul": true, "MaxPool": true, "Mish": true, "Mul": true, "PRelu": true, "Pow": true,
	"RMSNormalization": true, "ReduceMean": true, "ReduceSum": true, "Resize": true, "Sigmoid": true, "SimplifiedLayerNormalization": true,
	"SkipLayerNormalization": true, "SkipSimplifiedLayerNormalization": true, "Softmax": true, "Softplus": true, "Sqrt": true, "Sub": true,
	"Sum": true, "Swish": true, "Tanh": true,
}

// widening is the pass at work on a graph.
type widening struct {
	g       *Graph
	wide    []bool // by value id
	readers [][]int
	uses    []int
}

// half tells whether a value is known to hold halves.
func (w *widening) half(id int) bool {
	return id >= 0 && w.g.Values[id] != nil && w.g.Values[id].Type.IsHalf()
}

// candidates are halves that one operator makes and others read.
func (w *widening) candidates() {
	g := w.g
	w.uses = g.readers()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		shape := t.shaped()
		for _, id := range t.Node.Inputs {
			switch {
			case id >= 0 && shape:
				w.uses[id]--
			case id >= 0:
				w.readers[id] = append(w.readers[id], i)
			}
		}
	}
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State != Runs {
			continue
		}
		for _, id := range t.Node.Outputs {
			// Readers beyond those in this graph need the file's type.
			if w.half(id) {
				w.wide[id] = w.inside(id)
			}
		}
	}
}

// shaped tells whether a task has read a shape, which is that of a twin as well, and nothing else.
func (t *Task) shaped() bool { return t.State == Folded && t.Def.ShapeOnly }

// inside tells whether a value is made in each run, and read in this graph alone.
func (w *widening) inside(id int) bool {
	return !w.g.Fixed[id] && !w.g.Graph.Values[id].Variable && w.uses[id] > 0 && w.uses[id] == len(w.readers[id])
}

// converts tells whether task i is a conversion that is left out: to float32, for readers in this graph alone, or from float32
// that another operator makes.
func (w *widening) converts(i int) bool {
	g, t := w.g, &w.g.Tasks[i]
	n := t.Node
	if !w.reads(i) || n.Domain != graph.ONNX || n.Op != "Cast" || len(n.Inputs) != 1 || len(n.Outputs) != 1 {
		return false
	}
	x, y := g.value(n.Inputs[0]), g.value(n.Outputs[0])
	switch {
	case x == nil || y == nil:
		return false
	case x.Type.IsHalf() && y.Type == tensor.Float32:
		return w.inside(n.Outputs[0]) && !slices.ContainsFunc(w.readers[n.Outputs[0]], func(k int) bool { return !w.reads(k) })
	}
	return x.Type == tensor.Float32 && y.Type.IsHalf() && g.maker[n.Inputs[0]] > 0 && !g.Fixed[n.Inputs[0]]
}

// reads tells whether task i can read another value of the same type and shape.
func (w *widening) reads(i int) bool {
	t := &w.g.Tasks[i]
	n := t.Node
	return t.State == Runs && !t.Dynamic && !t.asIs && !t.Lowered && t.Def != nil && !t.Def.Stateful && !t.Def.ShapeOnly &&
		(n.Domain == graph.ONNX || n.Domain == graph.Microsoft) && len(Bodies(n)) == 0
}

// refuse takes the values of task i out that it cannot have in float32, or whose gain it would eat up. It
// reports whether there were any.
func (w *widening) refuse(i int) bool {
	t := &w.g.Tasks[i]
	ids := slices.Concat(t.Node.Inputs, t.Node.Outputs)
	is := func(id int) bool { return id >= 0 && w.wide[id] }
	if t.shaped() || !slices.ContainsFunc(ids, is) || w.converts(i) || w.takes(i) {
		return false
	}
	for _, id := range ids {
		if is(id) {
			w.wide[id] = false
		}
	}
	return true
}

// takes tells whether task i computes in float32 what it computes in halves.
func (w *widening) takes(i int) bool {
	g := w.g
	t := &g.Tasks[i]
	n := t.Node
	if !w.reads(i) {
		return false
	}
	for _, id := range n.Outputs {
		if id >= 0 && !w.half(id) {
			return false
		}
	}
	if !computes[n.Op] && !w.pays(n) {
		return false
	}
	c := t.Call
	c.Out = slices.Clone(c.Out)
	for k, x := range c.Out {
		if x != nil {
			c.Out[k] = &tensor.Tensor{}
		}
	}
	if Guard(func() error { return inferWide(t.Def, &c) }) != nil {
		return false
	}
	for k, x := range c.Out {
		if x != nil && (x.Type != tensor.Float32 || !slices.Equal(x.Shape, t.Call.Out[k].Shape)) {
			return false
		}
	}
	return true
}

// pays tells whether a node that moves elements has more of them in float32 than it must convert.
func (w *widening) pays(n *graph.Node) bool {
	wide, narrow := 0, 0
	for _, id := range slices.Concat(n.Inputs, n.Outputs) {
		switch {
		case !w.half(id):
		case w.wide[id]:
			wide += w.g.Values[id].Len()
		default:
			narrow += w.g.Values[id].Len()
		}
	}
	return wide > narrow
}

// apply lets tasks read and make twins in float32.
func (w *widening) apply() {
	g := w.g
	g.half = map[int]tensor.Type{}
	twin := make([]int, len(w.wide)) // one plus what is read and made instead of a value
	for id, wide := range w.wide {
		if !wide && w.half(id) {
			g.half[id] = g.Values[id].Type
		}
	}
	left := make([][]int, len(w.wide)) // by value id: conversions that its first reader stands for
	conversions := false
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused || t.shaped() {
			continue
		}
		m := *t.Node
		changed := false
		names := func(ids []int) []int {
			out := slices.Clone(ids)
			for k, id := range ids {
				if id < 0 {
					continue
				}
				if twin[id] == 0 && w.wide[id] {
					twin[id] = 1 + g.temporary(g.Graph.Values[id].Name, tensor.Float32)
				}
				if twin[id] > 0 {
					out[k], changed = twin[id]-1, true
				}
			}
			return out
		}
		if w.converts(i) && (w.wide[m.Inputs[0]] || w.wide[m.Outputs[0]]) {
			from, to := m.Inputs[0], m.Outputs[0]
			twin[to] = 1 + names(m.Inputs)[0]
			left[to] = append(left[from], i)
			left[from], conversions = nil, true
			continue
		}
		if m.Inputs, m.Outputs = names(m.Inputs), names(m.Outputs); !changed {
			continue
		}
		var with []int
		for _, id := range t.Node.Inputs {
			if id >= 0 {
				with = append(with, left[id]...)
				left[id] = nil
			}
		}
		g.replace(i, &m, with...)
		t.Lowered, t.wide = true, true
	}
	if conversions {
		w.alike()
	}
}

// alike lets tasks in float32 be wide where conversions are left out, so that what matches several of them finds them alike.
func (w *widening) alike() {
	for i := range w.g.Tasks {
		t := &w.g.Tasks[i]
		n := t.Node
		float := func(id int) bool {
			x := w.g.value(id)
			return x != nil && x.Type == tensor.Float32
		}
		if w.reads(i) && slices.ContainsFunc(n.Outputs, float) && !slices.ContainsFunc(n.Inputs, w.half) {
			t.wide, t.settled = true, false
		}
	}
}

// inWide is an operator whose halves are widened before it and rounded after it, where the graph has halves.
func (g *Graph) inWide(d *op.Def) *op.Def {
	w := *d
	w.Prepare = g.opts.Registry.Widen(d.Prepare)
	w.Infer = func(c *op.Call) error {
		err := inferWide(d, c)
		for k, x := range c.Out {
			if x != nil && x.Type == tensor.Float32 {
				if h, ok := g.half[c.Node.Outputs[k]]; ok {
					x.Type = h
				}
			}
		}
		return err
	}
	return &w
}

// few bounds halves that shapes may depend on: limits, factors, axes.
const few = 64

// inferWide infers an operator as if what it reads in halves were float32.
func inferWide(d *op.Def, c *op.Call) error {
	v := *c
	v.In = slices.Clone(c.In)
	for i, x := range v.In {
		if x == nil || !x.Type.IsHalf() {
			continue
		}
		f := &tensor.Tensor{Type: tensor.Float32, Shape: x.Shape}
		if x.Known() && x.Len() <= few {
			f.Alloc()
			tensor.Read(tensor.Of[float32](f), x, 0)
		}
		v.In[i] = f
	}
	return d.Infer(&v)
}
