package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// readQuantisedWeights finds MatMul nodes whose constant weights come from DequantizeLinear and
// lets them read the quantised values: as float32 the weights would take four or eight times the
// memory.
func readQuantisedWeights(g *Graph) {
	if !g.model.ONNX() {
		return
	}
	uses := g.readers()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		n := t.Node
		if t.State != Runs || t.final || t.Dynamic || n.Domain != graph.ONNX || n.Op != "MatMul" || len(n.Inputs) < 2 || n.Inputs[0] < 0 || n.Inputs[1] < 0 {
			continue
		}
		j := g.maker[n.Inputs[1]] - 1
		if j < 0 || uses[n.Inputs[1]] != 1 || !g.isQuantisedMatrix(j) || g.Fixed[n.Inputs[0]] {
			continue
		}
		d := g.Tasks[j].Node
		in := []int{n.Inputs[0], d.Inputs[0], d.Inputs[1], -1, -1}
		if len(d.Inputs) > 2 {
			in[3] = d.Inputs[2]
		}
		if len(n.Inputs) > 2 {
			in[4] = n.Inputs[2]
		}
		g.replace(i, &graph.Node{
			Index: n.Index, Name: n.Name, Function: n.Function, Domain: graph.Own, Op: "CodesMatMul", Version: 1, Inputs: in, Outputs: n.Outputs,
			Attrs: graph.Attrs{"block_size": int64(d.Attrs.Int("block_size", 0))},
		}, j)
		t.Lowered = true
	}
	g.InferAll()
}

// isQuantisedMatrix reports whether task j dequantises a constant [K, N] matrix with scales per
// block of rows, per column or per tensor.
func (g *Graph) isQuantisedMatrix(j int) bool {
	t := &g.Tasks[j]
	n := t.Node
	if converts(n) <= 0 || n.Domain != graph.ONNX || t.State != Runs && t.State != Folded || t.final || t.Lowered || len(n.Inputs) < 2 ||
		slices.ContainsFunc(n.Inputs[:2], func(id int) bool { return id < 0 }) {
		return false
	}
	for _, id := range n.Inputs {
		if id >= 0 && (!g.Fixed[id] || !g.Values[id].Known()) {
			return false
		}
	}
	w, s := g.Values[n.Inputs[0]], g.Values[n.Inputs[1]]
	switch w.Type {
	case tensor.Int4, tensor.Uint4, tensor.Int8, tensor.Uint8:
	default:
		return false
	}
	if w.Rank() != 2 || s.Type != tensor.Float32 && !s.Type.IsHalf() {
		return false
	}
	axis := n.Attrs.Int("axis", 1)
	if axis < 0 {
		axis += 2
	}
	if block := n.Attrs.Int("block_size", 0); block > 0 {
		return axis == 0 && s.Rank() == 2 && s.Shape[1] == w.Shape[1]
	}
	return s.Len() == 1 || axis == 1 && s.Rank() == 1 && s.Shape[0] == w.Shape[1]
}
