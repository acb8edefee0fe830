package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// net is a small ONNX model under construction. Nodes read its last value.
type net struct {
	g    *graph.Graph
	last int
}

func newNet(t tensor.Type, shape ...int) *net {
	n := &net{g: &graph.Graph{Name: "made"}}
	n.last = n.value(t, nil, shape...)
	n.g.Inputs = []int{n.last}
	return n
}

func (n *net) value(t tensor.Type, c *tensor.Tensor, shape ...int) int {
	id := len(n.g.Values)
	n.g.Values = append(n.g.Values, &graph.Value{ID: id, Name: fmt.Sprintf("v%d", id), Type: t, Shape: shape, HasShape: shape != nil, Const: c, Offset: -1})
	return id
}

func (n *net) constant(f func(i int) float64, shape ...int) int {
	c := tensor.New(tensor.Float32, shape...)
	tensor.Fill(c, f)
	return n.value(tensor.Float32, c, shape...)
}

func (n *net) weights(shape ...int) int {
	return n.constant(func(i int) float64 { return math.Sin(float64(i*i)) / 16 }, shape...)
}

func (n *net) node(op string, attrs graph.Attrs, more ...int) *net {
	out := n.value(tensor.Float32, nil)
	n.g.Nodes = append(n.g.Nodes, &graph.Node{
		Index: len(n.g.Nodes), Name: fmt.Sprintf("%s_%d", op, len(n.g.Nodes)), Op: op, Version: 17,
		Inputs: append([]int{n.last}, more...), Outputs: []int{out}, Attrs: attrs,
	})
	n.last = out
	return n
}

func (n *net) write(file string) error {
	n.g.Outputs = []int{n.last}
	b, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{n.g}})
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// shown writes a model for each rule that fires for few models.
func shown(dir string) (files []string, err error) {
	one := func(int) float64 { return 1 }
	turn := func(perm ...int64) graph.Attrs { return graph.Attrs{"perm": perm} }
	transposes := newNet(tensor.Float32, 1, 32, 64, 64)
	for range 3 {
		transposes.node("Conv", nil, transposes.weights(32, 32, 1, 1)).node("Transpose", turn(0, 2, 3, 1)).node("Sigmoid", nil).node("Transpose", turn(0, 3, 1, 2))
	}
	transposes.node("Relu", nil)
	norms := newNet(tensor.Float32, 256, 64)
	for range 4 {
		norms.node("MatMul", nil, norms.weights(64, 64))
		v := norms.g.Values[norms.last]
		v.Shape, v.HasShape = []int{256, 64}, true
		norms.node("BatchNormalization", nil, norms.constant(one, 64), norms.constant(one, 64), norms.constant(one, 64), norms.constant(one, 64))
	}
	const length, width = 64, 128
	decoder := newNet(tensor.Int64, 1, length)
	tokens := decoder.last
	decoder.last = decoder.weights(512, width)
	decoder.node("Gather", nil, tokens)
	for range 3 {
		x := decoder.last
		k := decoder.node("Transpose", turn(0, 2, 1)).last
		decoder.last = x
		decoder.node("MatMul", nil, k).node("Trilu", graph.Attrs{"upper": int64(0)}).node("Softmax", nil).node("MatMul", nil, x).node("MatMul", nil, decoder.weights(width, 4*width)).node("Relu", nil).node("MatMul", nil, decoder.weights(4*width, width))
	}
	decoder.node("MatMul", nil, decoder.weights(width, 512))
	// 65 outputs take five tiles of 16, 64 take four.
	tiles := newNet(tensor.Float32, 512, 65)
	for range 6 {
		tiles.node("MatMul", nil, tiles.weights(65, 65)).node("Relu", nil)
	}
	tiles.node("MatMul", nil, tiles.weights(65, 16))
	all := moreMade()
	maps.Copy(all, map[string]*net{
		"made_tiles.onnx":      tiles,
		"made_transposes.onnx": transposes, "made_batch_norm.onnx": norms, "made_decoder.onnx": decoder,
	})
	for name, n := range all {
		file := filepath.Join(dir, name)
		if err := n.write(file); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
