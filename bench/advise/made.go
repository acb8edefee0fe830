package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// stacks writes models of four matrix multiplications with ReLU behind them, for factors of layers
// that few models consist of: rows of the data and width of the matrices.
func stacks(dir string) (files []string, err error) {
	for _, s := range [][2]int{{1, 256}, {1, 1024}, {16, 256}, {16, 1024}, {128, 256}, {128, 768}} {
		g := &graph.Graph{Name: "stack"}
		value := func(t tensor.Type, c *tensor.Tensor, shape ...int) int {
			id := len(g.Values)
			g.Values = append(g.Values, &graph.Value{ID: id, Name: fmt.Sprintf("v%d", id), Type: t, Shape: shape, HasShape: true, Const: c, Offset: -1})
			return id
		}
		x := value(tensor.Float32, nil, s[0], s[1])
		g.Inputs = []int{x}
		for range 4 {
			w := tensor.New(tensor.Float32, s[1], s[1])
			tensor.Fill(w, func(i int) float64 { return math.Sin(float64(i*i)) / 16 })
			for _, n := range []*graph.Node{{Op: "MatMul", Inputs: []int{x, value(tensor.Float32, w, s[1], s[1])}}, {Op: "Relu"}} {
				if n.Inputs == nil {
					n.Inputs = []int{x}
				}
				x = value(tensor.Float32, nil, s[0], s[1])
				n.Index, n.Version, n.Outputs, n.Name = len(g.Nodes), 17, []int{x}, fmt.Sprintf("%s_%d", n.Op, len(g.Nodes))
				g.Nodes = append(g.Nodes, n)
			}
		}
		g.Outputs = []int{x}
		b, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, fmt.Sprintf("matmul_%dx%d.onnx", s[0], s[1]))
		if err := os.WriteFile(file, b, 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
