package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// widenFloat16 keeps float16 and bfloat16 values in float32 between operators. Operators compute
// them in float32 and round their results, so between two of them the rounding and the conversion
// back only cost time. Inputs, outputs and constants keep their type; their readers and writers
// convert. Casts in the file between such values and float32 values that other operators write,
// or only they read, are removed. A Cast to 16 bits and back without a computation between stays:
// it is there to round.
func widenFloat16(g *Graph) {
	if !g.model.ONNX() || g.opts.Registry == nil || g.opts.Registry.Widen == nil {
		return
	}
	w := &widening{g: g, wide: make([]bool, len(g.Values)), readers: make([][]int, len(g.Values))}
	if w.candidates(); !slices.Contains(w.wide, true) {
		return
	}
	for again := true; again; {
		again = w.keepRounding()
		for i := range g.Tasks {
			again = w.refuse(i) || again
		}
	}
	w.apply()
	g.InferAll()
}

// computesInFloat32 lists operators that compute float16 in float32. All others move elements, or
// work on their bits: widening these alone costs what it saves.
var computesInFloat32 = map[string]bool{
	"Add": true, "Attention": true, "AveragePool": true, "BatchNormalization": true, "BiasGelu": true, "Clip": true, "Conv": true,
	"ConvTranspose": true, "Div": true, "Einsum": true, "Elu": true, "Erf": true, "Exp": true, "FastGelu": true, "FusedConv": true,
	"FusedGemm": true, "FusedMatMul": true, "Gelu": true, "Gemm": true, "GlobalAveragePool": true, "GroupNormalization": true,
	"HardSigmoid": true, "HardSwish": true, "InstanceNormalization": true, "LRN": true, "LayerNormalization": true, "LeakyRelu": true,
	"Log": true, "LogSoftmax": true, "MatMul": true, "MaxPool": true, "Mish": true, "Mul": true, "PRelu": true, "Pow": true,
	"RMSNormalization": true, "ReduceMean": true, "ReduceSum": true, "Resize": true, "Sigmoid": true, "SimplifiedLayerNormalization": true,
	"SkipLayerNormalization": true, "SkipSimplifiedLayerNormalization": true, "Softmax": true, "Softplus": true, "Sqrt": true, "Sub": true,
	"Sum": true, "Swish": true, "Tanh": true,
}

// widening is the state of the pass for a graph.
type widening struct {
	g       *Graph
	wide    []bool // by value id
	readers [][]int
	uses    []int
}

// half reports whether a value is known to be float16 or bfloat16.
func (w *widening) half(id int) bool {
	return id >= 0 && w.g.Values[id] != nil && w.g.Values[id].Type.IsHalf()
}

// candidates marks the 16-bit values that one operator writes and others read.
func (w *widening) candidates() {
	g := w.g
	w.uses = g.readers()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		shape := t.readsShapeOnly()
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
			// Readers outside this graph need the file's type.
			if w.half(id) {
				w.wide[id] = w.internal(id)
			}
		}
	}
}

// readsShapeOnly reports whether a task reads only a shape, which the float32 twin has too.
func (t *Task) readsShapeOnly() bool { return t.State == Folded && t.Def.ShapeOnly }

// internal reports whether a value is computed in each run, and read in this graph only.
func (w *widening) internal(id int) bool {
	return !w.g.Fixed[id] && !w.g.Graph.Values[id].Variable && w.uses[id] > 0 && w.uses[id] == len(w.readers[id])
}

// converts reports whether task i is a Cast that can be removed: to float32, for readers in this
// graph only, or from a float32 value that another operator writes.
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
		return w.internal(n.Outputs[0]) && !slices.ContainsFunc(w.readers[n.Outputs[0]], func(k int) bool { return !w.reads(k) })
	}
	return x.Type == tensor.Float32 && y.Type.IsHalf() && g.maker[n.Inputs[0]] > 0 && !g.Fixed[n.Inputs[0]]
}

// reads reports whether task i can read another value of the same type and shape.
func (w *widening) reads(i int) bool {
	t := &w.g.Tasks[i]
	n := t.Node
	return t.State == Runs && !t.Dynamic && !t.final && !t.Lowered && t.Def != nil && !t.Def.Stateful && !t.Def.ShapeOnly &&
		(n.Domain == graph.ONNX || n.Domain == graph.Microsoft) && len(Bodies(n)) == 0
}

// refuse unmarks the values of task i that it cannot handle in float32, or for which the
// conversion costs more than it saves. It reports whether there were any.
func (w *widening) refuse(i int) bool {
	t := &w.g.Tasks[i]
	ids := slices.Concat(t.Node.Inputs, t.Node.Outputs)
	is := func(id int) bool { return id >= 0 && w.wide[id] }
	if t.readsShapeOnly() || !slices.ContainsFunc(ids, is) || w.converts(i) || w.computesWide(i) {
		return false
	}
	for _, id := range ids {
		if is(id) {
			w.wide[id] = false
		}
	}
	return true
}

// keepRounding unmarks the values that no task computes in float32 or from such values: they are
// converted to 16 bits and back. It reports whether there were any.
func (w *widening) keepRounding() (any bool) {
	computed := make([]bool, len(w.wide))
	for again := true; again; {
		again = false
		for i := range w.g.Tasks {
			t := &w.g.Tasks[i]
			ids := slices.DeleteFunc(slices.Concat(t.Node.Inputs, t.Node.Outputs), func(id int) bool { return id < 0 || !w.wide[id] })
			is := computesInFloat32[t.Node.Op] || slices.ContainsFunc(ids, func(id int) bool { return computed[id] })
			if w.converts(i) {
				// What was of 16 bits before is not rounded again.
				before := w.g.maker[t.Node.Inputs[0]] - 1
				is = before >= 0 && w.converts(before) && w.half(w.g.Tasks[before].Node.Inputs[0]) && computed[w.g.Tasks[before].Node.Inputs[0]]
			}
			if t.State != Runs || !is {
				continue
			}
			for _, id := range ids {
				again = again || !computed[id]
				computed[id] = true
			}
		}
	}
	for id := range w.wide {
		if w.wide[id] && !computed[id] {
			w.wide[id], any = false, true
		}
	}
	return any
}

// computesWide reports whether task i can compute its 16-bit values in float32.
func (w *widening) computesWide(i int) bool {
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
	if !computesInFloat32[n.Op] && !w.moveIsCheaper(n) {
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

// moveIsCheaper reports whether a node that moves elements has more of them in float32 than it
// must convert.
func (w *widening) moveIsCheaper(n *graph.Node) bool {
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

// apply lets tasks read and write float32 twins.
func (w *widening) apply() {
	g := w.g
	g.float16Twins = map[int]tensor.Type{}
	twin := make([]int, len(w.wide)) // one plus the float32 twin of a value
	for id, wide := range w.wide {
		if !wide && w.half(id) {
			g.float16Twins[id] = g.Values[id].Type
		}
	}
	left := make([][]int, len(w.wide)) // by value id: conversions fused into its first reader
	conversions := false
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused || t.readsShapeOnly() {
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
		w.markWide()
	}
}

// markWide marks float32 tasks as wide where conversions are removed, so that patterns over
// several tasks match.
func (w *widening) markWide() {
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

// widened wraps an operator so that its 16-bit inputs are widened before it and its outputs
// rounded after it, where the graph has 16-bit values.
func (g *Graph) widened(d *op.Def) *op.Def {
	w := *d
	w.Prepare = g.opts.Registry.Widen(d.Prepare)
	w.Infer = func(c *op.Call) error {
		err := inferWide(d, c)
		for k, x := range c.Out {
			if x != nil && x.Type == tensor.Float32 {
				if h, ok := g.float16Twins[c.Node.Outputs[k]]; ok {
					x.Type = h
				}
			}
		}
		return err
	}
	return &w
}

// maxShapeElements bounds 16-bit inputs that shapes may depend on: limits, factors, axes.
const maxShapeElements = 64

// inferWide infers an operator as if its 16-bit inputs were float32.
func inferWide(d *op.Def, c *op.Call) error {
	v := *c
	v.In = slices.Clone(c.In)
	for i, x := range v.In {
		if x == nil || !x.Type.IsHalf() {
			continue
		}
		f := &tensor.Tensor{Type: tensor.Float32, Shape: x.Shape}
		if x.Known() && x.Len() <= maxShapeElements {
			f.Alloc()
			tensor.Read(tensor.Of[float32](f), x, 0)
		}
		v.In[i] = f
	}
	return d.Infer(&v)
}
