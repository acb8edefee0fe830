package count

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Declared returns the values with the given ids as tensors, with types and shapes as declared in
// the file (for TFLite the stored shape where dimensions are unknown) and the elements of
// constants. This covers what can be counted without shape inference. Absent ids give nil.
func Declared(g *graph.Graph, ids []int) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(ids))
	for i, id := range ids {
		if id < 0 || id >= len(g.Values) {
			continue
		}
		v := g.Values[id]
		if v.Const != nil && !v.Variable {
			out[i] = v.Const
			continue
		}
		t := &tensor.Tensor{Type: v.Type, Shape: v.Shape, Quant: v.Quant, Elem: v.Elem}
		if v.Placeholder != nil {
			t.Shape = v.Placeholder
		}
		if !v.HasShape {
			t.Shape = []int{-1} // unknown, and not a scalar
		}
		out[i] = t
	}
	return out
}
