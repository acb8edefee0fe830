package plan

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// fuseActivations fuses a clamping activation into the operator before it when nothing else reads
// the value between them.
func fuseActivations(g *Graph) {
	uses := g.readers()
	for i := range g.Tasks {
		u := &g.Tasks[i]
		n := u.Node
		act, ok := g.clampOf(n)
		if !ok || u.State != Runs || len(n.Inputs) == 0 || n.Inputs[0] < 0 || len(n.Outputs) != 1 {
			continue
		}
		id := n.Inputs[0]
		j := g.maker[id] - 1
		if j < 0 || uses[id] != 1 || g.Graph.Values[id].Quant != nil {
			continue
		}
		if typ := g.clampType(j); typ == tensor.Invalid || !representable(typ, act.Min) || !representable(typ, act.Max) {
			continue
		}
		t := &g.Tasks[j]
		m := *t.Node
		m.Outputs = []int{n.Outputs[0]}
		t.act = act
		g.replace(j, &m, i)
	}
	g.InferAll()
}

// clampType returns the element type of the values that a task can clamp, Invalid if it cannot.
// It is float32; an ONNX float16 or bfloat16 type, which is computed in float32 and rounded, so
// that limits representable in that type are the same before and after rounding; or the 8-bit
// type of a quantised operator.
func (g *Graph) clampType(i int) tensor.Type {
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.act.On || t.final || len(n.Outputs) != 1 || len(n.Inputs) == 0 || t.Def == nil || !t.Def.Fuses {
		return tensor.Invalid
	}
	typ := tensor.Invalid
	if x := g.value(n.Outputs[0]); x != nil {
		typ = x.Type
	}
	if typ == tensor.Invalid {
		// The type is known only at run time: use the file's declaration, or the type of the
		// weights.
		typ = g.Graph.Values[n.Outputs[0]].Type
		if typ == tensor.Invalid && len(n.Inputs) > 1 {
			if w := g.value(n.Inputs[1]); w != nil {
				typ = w.Type
			}
		}
	}
	if is8Bit(typ) && (n.Op == "QLinearConv" || n.Op == "QLinearAdd" || n.Op == "QLinearMul") {
		return typ
	}
	if typ == tensor.Float32 && n.Op == "MatMulIntegerToFloat" { // of 8-bit operands
		return typ
	}
	// A value that rounds to zero may get the sign of the other zero: exact plans do not allow
	// that.
	if typ != tensor.Float32 && (!typ.IsHalf() || n.Domain == graph.TFLite || g.opts.Exact) {
		return tensor.Invalid
	}
	for _, id := range n.Inputs[1:] {
		if x := g.value(id); x != nil && x.Type != tensor.Invalid && x.Type != typ && !(t.wide && x.Type.IsHalf()) {
			return tensor.Invalid
		}
	}
	return typ
}

// representable reports whether a type can represent v exactly, or v is beyond the range of
// float32.
func representable(t tensor.Type, v float32) bool {
	if !t.IsHalf() || math.Abs(float64(v)) >= math.MaxFloat32 {
		return true
	}
	x := tensor.New(t)
	tensor.WriteFloat32(x, 0, []float32{v})
	return float32(tensor.At(x, 0)) == v
}

func (g *Graph) value(id int) *tensor.Tensor {
	if id < 0 {
		return nil
	}
	return g.Values[id]
}

// clampOf returns the clamp that a node computes, if its limits are known.
func (g *Graph) clampOf(n *graph.Node) (activation.Clamp, bool) {
	inf := float32(math.Inf(1))
	switch {
	case n.Domain == graph.ONNX && n.Op == "Relu", n.Domain == graph.TFLite && n.Op == "RELU":
		return activation.Clamp{On: true, Min: 0, Max: inf}, true
	case n.Domain == graph.TFLite && n.Op == "RELU6":
		return activation.Clamp{On: true, Min: 0, Max: 6}, true
	case n.Domain == graph.ONNX && n.Op == "Clip" && n.Version < 11:
		return activation.Clamp{On: true, Min: n.Attrs.Float("min", -math.MaxFloat32), Max: n.Attrs.Float("max", math.MaxFloat32)}, true
	case n.Domain == graph.ONNX && n.Op == "Clip":
		a := activation.Clamp{On: true, Min: -inf, Max: inf}
		for i, p := range []*float32{&a.Min, &a.Max} {
			if i+1 >= len(n.Inputs) || n.Inputs[i+1] < 0 {
				continue
			}
			id := n.Inputs[i+1]
			if !g.Fixed[id] || g.compute(id, g.opts.FoldBytes, 0) != nil {
				return a, false
			}
			t := g.Values[id]
			if t.Type != tensor.Float32 && !t.Type.IsHalf() && !is8Bit(t.Type) || t.Len() != 1 {
				return a, false
			}
			*p = float32(tensor.At(t, 0))
		}
		return a, a.Min <= a.Max
	}
	return activation.Clamp{}, false
}
