package engine

import (
	"math"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// fuse joins a clamping activation to the operator before it when nothing else
// reads the value between them, so that the clamp costs no pass over memory.
func (f *frame) fuse() {
	uses := f.countUses()
	maker := make([]int, len(f.g.Values)) // one plus the step that makes a value
	for i := range f.steps {
		n := f.steps[i].node
		if act, ok := f.activation(n); ok && len(n.Inputs) > 0 && n.Inputs[0] >= 0 && len(n.Outputs) == 1 {
			id := n.Inputs[0]
			if j := maker[id] - 1; j >= 0 && uses[id] == 1 && f.g.Values[id].Quant == nil && f.takes(&f.steps[j]) {
				st := &f.steps[j]
				// The step now writes the activation's output.
				m := *st.node
				m.Outputs = []int{n.Outputs[0]}
				st.node = &m
				st.call.Activation = act
				st.fused = append(st.fused, n)
				f.steps[i].state = Fused
				f.steps[i].call.Node = n
				continue
			}
		}
		for _, id := range n.Outputs {
			if id >= 0 {
				maker[id] = i + 1
			}
		}
	}
}

// takes reports whether a step can clamp its result in float32.
func (f *frame) takes(st *step) bool {
	n := st.node
	if st.state == Fused || st.call.Activation.On || len(n.Outputs) != 1 {
		return false
	}
	d := f.s.opts.Registry.Find(n.Domain, n.Op, n.Version)
	if d == nil || !d.Fuses {
		return false
	}
	// Only constants of the file tell the type this early.
	for _, id := range n.Inputs[1:] {
		if id >= 0 && f.vals[id] != nil && f.vals[id].Type != tensor.Float32 {
			return false
		}
	}
	v := f.g.Values[n.Outputs[0]]
	return v.Type == tensor.Float32 || v.Type == tensor.Invalid && len(n.Inputs) > 1 && n.Inputs[1] >= 0 && f.vals[n.Inputs[1]] != nil && f.vals[n.Inputs[1]].Type == tensor.Float32
}

// countUses counts the readers of each value; graph outputs and captured values
// count as more than one, because they must keep their own memory.
func (f *frame) countUses() []int {
	uses := make([]int, len(f.g.Values))
	for _, n := range f.g.Nodes {
		for _, id := range n.Inputs {
			if id >= 0 {
				uses[id]++
			}
		}
		for _, id := range f.captured(n) {
			uses[id] += 2
		}
	}
	for _, id := range f.g.Outputs {
		if id >= 0 {
			uses[id] += 2
		}
	}
	return uses
}

// activation tells whether a node is a clamp with known limits.
func (f *frame) activation(n *graph.Node) (op.Activation, bool) {
	inf := float32(math.Inf(1))
	switch {
	case n.Domain == graph.ONNX && n.Op == "Relu", n.Domain == graph.TFLite && n.Op == "RELU":
		return op.Activation{On: true, Min: 0, Max: inf}, true
	case n.Domain == graph.TFLite && n.Op == "RELU6":
		return op.Activation{On: true, Min: 0, Max: 6}, true
	case n.Domain == graph.ONNX && n.Op == "Clip" && n.Version < 11:
		return op.Activation{On: true, Min: n.Attrs.Float("min", -math.MaxFloat32), Max: n.Attrs.Float("max", math.MaxFloat32)}, true
	case n.Domain == graph.ONNX && n.Op == "Clip":
		a := op.Activation{On: true, Min: -inf, Max: inf}
		for i, p := range []*float32{&a.Min, &a.Max} {
			if i+1 >= len(n.Inputs) || n.Inputs[i+1] < 0 {
				continue
			}
			t := f.g.Values[n.Inputs[i+1]].Const
			if t == nil || t.Type != tensor.Float32 || t.Len() != 1 {
				return a, false
			}
			*p = tensor.Of[float32](t)[0]
		}
		return a, a.Min <= a.Max
	}
	return op.Activation{}, false
}
