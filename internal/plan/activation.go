package plan

import (
	"math"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/tensor"
)

// activations joins a clamping activation to the operator before it when nothing
// else reads the value between them.
func activations(g *Graph) {
	uses := g.readers()
	for i := range g.Tasks {
		u := &g.Tasks[i]
		n := u.Node
		act, ok := g.activation(n)
		if !ok || u.State != Runs || len(n.Inputs) == 0 || n.Inputs[0] < 0 || len(n.Outputs) != 1 {
			continue
		}
		id := n.Inputs[0]
		j := g.maker[id] - 1
		if j < 0 || uses[id] != 1 || g.Graph.Values[id].Quant != nil || !g.clamps(j) {
			continue
		}
		t := &g.Tasks[j]
		m := *t.Node
		m.Outputs = []int{n.Outputs[0]}
		t.act = act
		g.replace(j, &m, i)
	}
	g.Settle()
}

// clamps reports whether a task can clamp its result in float32.
func (g *Graph) clamps(i int) bool {
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.act.On || t.asIs || len(n.Outputs) != 1 || len(n.Inputs) == 0 || t.Def == nil || !t.Def.Fuses {
		return false
	}
	for _, id := range n.Inputs[1:] {
		if x := g.value(id); x != nil && x.Type != tensor.Invalid && x.Type != tensor.Float32 {
			return false
		}
	}
	if x := g.value(n.Outputs[0]); x != nil && x.Type != tensor.Invalid {
		return x.Type == tensor.Float32
	}
	// The type follows in the run: what the file says, or that of the weights.
	v := g.Graph.Values[n.Outputs[0]]
	w := (*tensor.Tensor)(nil)
	if len(n.Inputs) > 1 {
		w = g.value(n.Inputs[1])
	}
	return v.Type == tensor.Float32 || v.Type == tensor.Invalid && w != nil && w.Type == tensor.Float32
}

func (g *Graph) value(id int) *tensor.Tensor {
	if id < 0 {
		return nil
	}
	return g.Values[id]
}

// activation tells whether a node is a clamp with known limits.
func (g *Graph) activation(n *graph.Node) (activation.Clamp, bool) {
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
			if t.Type != tensor.Float32 || t.Len() != 1 {
				return a, false
			}
			*p = tensor.Of[float32](t)[0]
		}
		return a, a.Min <= a.Max
	}
	return activation.Clamp{}, false
}
