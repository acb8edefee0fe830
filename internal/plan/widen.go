package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// widen keeps halves in float32 between operators. Operators compute halves in float32 and round what they
// make: between two of them the rounding and the way back are time, and nothing else. Inputs, outputs and
// constants stay as they are; what reads or makes them converts.
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
}

// half tells whether a value is known to hold halves.
func (w *widening) half(id int) bool {
	return id >= 0 && w.g.Values[id] != nil && w.g.Values[id].Type.IsHalf()
}

// candidates are halves that one operator makes and others read.
func (w *widening) candidates() {
	g := w.g
	uses := g.readers()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		for _, id := range t.Node.Inputs {
			if id >= 0 {
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
				w.wide[id] = !g.Fixed[id] && !g.Graph.Values[id].Variable && uses[id] > 0 && uses[id] == len(w.readers[id])
			}
		}
	}
}

// refuse takes the values of task i out that it cannot have in float32, or whose gain it would eat up. It
// reports whether there were any.
func (w *widening) refuse(i int) bool {
	t := &w.g.Tasks[i]
	ids := slices.Concat(t.Node.Inputs, t.Node.Outputs)
	is := func(id int) bool { return id >= 0 && w.wide[id] }
	if !slices.ContainsFunc(ids, is) || w.takes(i) {
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
	if t.State != Runs || t.Dynamic || t.asIs || t.Lowered || t.Def == nil || t.Def.Stateful || t.Def.OfShape ||
		n.Domain != graph.ONNX && n.Domain != graph.Microsoft || len(Bodies(n)) > 0 {
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
	twin := make([]int, len(w.wide))
	g.half = map[int]tensor.Type{}
	for id, wide := range w.wide {
		if wide {
			twin[id] = g.temporary(g.Graph.Values[id].Name, tensor.Float32)
		} else if w.half(id) {
			g.half[id] = g.Values[id].Type
		}
	}
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused {
			continue
		}
		m := *t.Node
		changed := false
		names := func(ids []int) []int {
			out := slices.Clone(ids)
			for k, id := range ids {
				if id >= 0 && w.wide[id] {
					out[k], changed = twin[id], true
				}
			}
			return out
		}
		if m.Inputs, m.Outputs = names(m.Inputs), names(m.Outputs); !changed {
			continue
		}
		g.replace(i, &m)
		t.Lowered, t.wide = true, true
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
