package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// fuseLogisticProducts lets a LOGISTIC of float32 that a MUL multiplies by its input write the
// product, as SiLU does. Both roundings stay. Integers use tables.
func fuseLogisticProducts(g *Graph) {
	if g.model.ONNX() {
		return
	}
	m := &matcher{g: g, uses: g.readers(), domain: graph.TFLite}
	for i := range g.Tasks {
		if !m.is(i, "MUL", 2) {
			continue
		}
		n := g.Tasks[i].Node
		if n.Attrs.Str("fused_activation_function", "NONE") != "NONE" || m.float32Value(n.Outputs[0]) == nil {
			continue
		}
		for k, x := range n.Inputs {
			m.begin(i)
			y := m.float32Value(x)
			f := m.producer(n.Inputs[1-k], "LOGISTIC", 1)
			if y == nil || f == nil || f.Inputs[0] != x || !slices.Equal(y.Shape, g.Values[n.Outputs[0]].Shape) {
				continue
			}
			g.replace(i, &graph.Node{
				Index: n.Index, Name: n.Name, Domain: n.Domain, Function: n.Function, Op: f.Op, Version: f.Version, Inputs: []int{x}, Outputs: n.Outputs,
				Attrs: graph.Attrs{op.AttrTimesInput: true},
			}, m.taken...)
			g.Tasks[i].Lowered = true
			break
		}
	}
	g.InferAll()
}
