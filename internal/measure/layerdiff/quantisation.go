package layerdiff

import (
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// resultScale is the operand with the scale of the result, by operator of ONNX; the zero point
// follows it.
var resultScale = map[string]int{
	"QuantizeLinear": 1, "QLinearConv": 6, "QLinearMatMul": 6, "QLinearAdd": 6, "QLinearMul": 6, "QGemm": 7,
	"QLinearAveragePool": 3, "QLinearGlobalAveragePool": 3, "QLinearSigmoid": 3, "QLinearLeakyRelu": 3, "QLinearSoftmax": 3,
	"QLinearConcat": 0, "QLinearWhere": 7, "QLinearReduceMean": 3,
}

// moves are operators whose result has the quantisation of their first operand.
var moves = map[string]bool{
	"Reshape": true, "Transpose": true, "MaxPool": true, "Flatten": true, "Squeeze": true, "Unsqueeze": true, "Slice": true, "Split": true,
	"Gather": true, "Identity": true, "Expand": true, "Tile": true, "DepthToSpace": true, "SpaceToDepth": true, "Resize": true, "Concat": true,
}

// quant returns the quantisation of a value, nil if it has none or it is not known. TFLite files
// declare it; ONNX files have it in the operators that make or read the value.
func (v *view) quant(id int) *tensor.Quant { return v.quantOf(id, 0) }

// mostMoves bounds how many operators that move elements are followed.
const mostMoves = 32

func (v *view) quantOf(id, depth int) *tensor.Quant {
	if q := v.g.Values[id].Quant; q != nil && usable(q) {
		return q
	}
	if !v.m.ONNX() || depth > mostMoves {
		return nil
	}
	for _, r := range v.readers[id] {
		if n := v.g.Nodes[r]; n.Op == "DequantizeLinear" && len(n.Inputs) > 1 && n.Inputs[0] == id {
			if q := v.scaleAt(n, 1); q != nil {
				return q
			}
		}
	}
	if v.maker[id] == 0 {
		return nil
	}
	n := v.g.Nodes[v.maker[id]-1]
	if at, ok := resultScale[n.Op]; ok && n.Outputs[0] == id {
		return v.scaleAt(n, at)
	}
	if moves[n.Op] && len(n.Inputs) > 0 && n.Inputs[0] >= 0 {
		return v.quantOf(n.Inputs[0], depth+1)
	}
	return nil
}

// scaleAt returns the scale and the zero point of a node, nil unless both are constants.
func (v *view) scaleAt(n *graph.Node, at int) *tensor.Quant {
	constant := func(k int) *tensor.Tensor {
		if k >= len(n.Inputs) || n.Inputs[k] < 0 {
			return nil
		}
		return v.g.Values[n.Inputs[k]].Const
	}
	scale, zero := constant(at), constant(at+1)
	if !scale.Known() || !scale.Type.IsFloat() || scale.Len() == 0 || at+1 < len(n.Inputs) && n.Inputs[at+1] >= 0 && !zero.Known() {
		return nil
	}
	q := &tensor.Quant{Scale: make([]float32, scale.Len()), Zero: make([]int64, scale.Len()), Axis: n.Attrs.Int("axis", 1)}
	tensor.Read(q.Scale, scale, 0)
	if zero != nil && zero.Type.IsInteger() && zero.Len() == scale.Len() {
		tensor.Read(q.Zero, zero, 0)
	}
	if len(q.Scale) > 1 && (q.Axis < 0 || strings.HasPrefix(n.Op, "QLinear")) || !usable(q) {
		return nil
	}
	return q
}

// usable reports whether values can be converted by a quantisation.
func usable(q *tensor.Quant) bool {
	if len(q.Scale) == 0 || len(q.Zero) < len(q.Scale) || q.Block > 0 || q.Axis < 0 {
		return false
	}
	for _, s := range q.Scale {
		if !(s > 0) || s > 1e30 {
			return false
		}
	}
	return true
}
