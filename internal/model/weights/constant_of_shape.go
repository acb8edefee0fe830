package weights

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// ExpandConstantOfShape replaces ConstantOfShape nodes of the main graph with a constant shape by
// constants. Such a node is an abbreviated constant; models published without their data have
// weights of this kind. At most limit bytes are created, 0 for no limit. The model is returned
// unchanged if this yields no additional layers.
func ExpandConstantOfShape(m *graph.Model, limit int) *graph.Model {
	consts := map[int]*tensor.Tensor{}
	most := int64(limit)
	if most == 0 {
		most = math.MaxInt64
	}
	for _, n := range m.Main().Nodes {
		if c := constantOfShape(m.Main(), n, most); c != nil {
			consts[n.Outputs[0]] = c
			most -= int64(len(c.Data))
		}
	}
	if len(consts) == 0 {
		return m
	}
	out := WithConstants(m, consts)
	g := out.Main()
	var nodes []*graph.Node
	for _, n := range g.Nodes {
		if len(n.Outputs) == 1 && consts[n.Outputs[0]] != nil {
			continue
		}
		c := *n
		c.Index = len(nodes)
		nodes = append(nodes, &c)
	}
	g.Nodes = nodes
	if len(Find(out, nil)) <= len(Find(m, nil)) {
		return m
	}
	return out
}

// constantOfShape returns the output of a node, nil where it is not a uniform constant, or
// exceeds most bytes.
func constantOfShape(g *graph.Graph, n *graph.Node, most int64) *tensor.Tensor {
	if n.Op != "ConstantOfShape" || n.Domain != graph.ONNX || len(n.Inputs) != 1 || len(n.Outputs) != 1 || n.Inputs[0] < 0 || slices.Contains(g.Outputs, n.Outputs[0]) {
		return nil
	}
	of := g.Values[n.Inputs[0]].Const
	if !of.Known() || of.Type != tensor.Int64 {
		return nil
	}
	dims, err := tensor.All[int64](of)
	if err != nil {
		return nil
	}
	value := tensor.From(tensor.Float32, []int{1}, []float32{0})
	if v := n.Attrs.Tensor("value"); v != nil {
		value = v
	}
	bits := int64(value.Type.Bits())
	if !value.Known() || value.Len() != 1 || bits < 8 {
		return nil
	}
	size, shape := bits/8, make([]int, len(dims))
	for i, d := range dims {
		if d <= 0 || size > most/d {
			return nil
		}
		size *= d
		shape[i] = int(d)
	}
	out := tensor.New(value.Type, shape...)
	for at := 0; at < len(out.Data); at += len(value.Data) {
		copy(out.Data[at:], value.Data)
	}
	return out
}
