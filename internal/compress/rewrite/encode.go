package rewrite

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/read/onnx"
	"github.com/opmeter/opmeter/internal/read/tflite"
)

// Encode writes a model as a file of its format, with all constants inside: names, metadata, signatures and operator
// sets as the model has them. A model that has more than the 2 GiB of such a file is an error that says what would help. Sparse constants are written dense, without the DENSIFY that
// would unpack them.
func Encode(m *graph.Model) ([]byte, error) {
	total := int64(0)
	for _, g := range m.Graphs {
		for _, v := range g.Values {
			total += int64(v.Const.Held())
		}
	}
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("%s: %d bytes of constants, and a file with all of them inside holds 2 GiB: store more layers in fewer bits, or take out channels", m.ShortName(), total)
	}
	switch m.Format {
	case "tflite":
		return tflite.Encode(dense(m))
	case "onnx":
		return onnx.Encode(m)
	}
	return nil, fmt.Errorf("a model of format %q cannot be written", m.Format)
}

// dense is a TFLite model without DENSIFY of constants, which are dense in memory.
func dense(m *graph.Model) *graph.Model {
	unpacks := func(g *graph.Graph, n *graph.Node) bool {
		return n.Domain == graph.TFLite && n.Op == "DENSIFY" && len(n.Inputs) == 1 && n.Inputs[0] >= 0 && g.Values[n.Inputs[0]].Const != nil
	}
	if !slices.ContainsFunc(m.Main().Nodes, func(n *graph.Node) bool { return unpacks(m.Main(), n) }) {
		return m
	}
	e := newEdit(m)
	for _, n := range m.Main().Nodes {
		if !unpacks(e.g, n) || e.outside(n.Outputs[0]) {
			continue
		}
		for _, at := range e.readers(n.Outputs[0]) {
			r := e.node(at)
			for k, id := range r.Inputs {
				if id == n.Outputs[0] {
					r.Inputs[k] = n.Inputs[0]
				}
			}
		}
	}
	return e.finish() // leaves out what nobody reads any more
}
