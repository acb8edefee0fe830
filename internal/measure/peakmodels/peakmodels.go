// Package peakmodels makes small models that measure the peak rates of an engine: its matrix
// multiplication for each element type, and its memory bandwidth for large tensors. A roofline of
// that engine needs them, as internal/measure/machine/peaks measures them for opmeter's own
// engine.
package peakmodels

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// Kind says what a model measures.
type Kind string

// Kinds of models.
const (
	Float32 Kind = "float32" // float32 matrix multiplication
	Int8    Kind = "int8"    // 8-bit integer matrix multiplication
	Memory  Kind = "memory"  // reads a float32 tensor and writes another
)

// Kinds lists all kinds.
var Kinds = []Kind{Float32, Int8, Memory}

// Size returns the size that shows the peak. For a matrix multiplication it is the number of rows
// and columns: large enough to make the overhead of an inference negligible, small enough for the
// caches. For memory it is the number of elements, which exceed any cache.
func Size(k Kind) int {
	if k == Memory {
		return 32 << 20 // 128 MiB in, 128 MiB out
	}
	return 512
}

// Maximum sizes of matrices and tensors.
const (
	maxProduct = 4096
	maxTensor  = 1 << 28
)

// Model is a model of a kind.
type Model struct {
	Kind Kind
	// Data is the content of the file.
	Data []byte
	// Ops is the number of operations of an inference, a multiply-accumulate being two; 0 for
	// memory.
	Ops float64
	// Bytes is the minimum number of bytes that an inference reads and writes.
	Bytes float64
	// Input is the only input.
	Input string
	DType string
	Shape []int
}

// Make makes the model of a kind for a format, "onnx" or "tflite", in a size such as [Size]
// returns. Weights are integers from -4 to 4, so that integer results are exact in any order of
// additions.
func Make(format string, k Kind, n int) (*Model, error) {
	switch {
	case format != "onnx" && format != "tflite":
		return nil, fmt.Errorf("format %q is neither onnx nor tflite", format)
	case n < 1 || k == Memory && n > maxTensor || k != Memory && n > maxProduct:
		return nil, fmt.Errorf("size %d of %s", n, k)
	}
	m := &Model{Kind: k, Input: "x", DType: "float32", Shape: []int{n, n}}
	g := &graph.Graph{Name: "ceiling", Inputs: []int{0}}
	value := func(name string, t tensor.Type, shape ...int) *graph.Value {
		v := &graph.Value{ID: len(g.Values), Name: name, Type: t, Shape: shape, HasShape: true, Offset: -1}
		g.Values = append(g.Values, v)
		return v
	}
	lite := format == "tflite"
	switch k {
	case Float32, Int8:
		m.Ops = 2 * float64(n) * float64(n) * float64(n)
		in, weights, out := tensor.Float32, tensor.Float32, tensor.Float32
		size := 12.0
		if k == Int8 {
			in, weights, out = tensor.Int8, tensor.Int8, tensor.Int8
			size, m.DType = 3, "int8"
			if !lite { // MatMulInteger
				in, out = tensor.Uint8, tensor.Int32
				size, m.DType = 6, "uint8"
			}
		}
		m.Bytes = size * float64(n) * float64(n)
		x := value("x", in, n, n)
		w := value("w", weights, n, n)
		w.Const = tensor.New(weights, n, n)
		tensor.Fill(w.Const, weight)
		y := value("y", out, n, n)
		node := &graph.Node{Op: "MatMul", Inputs: []int{0, 1}, Outputs: []int{2}}
		if k == Int8 {
			node.Op = "MatMulInteger"
		}
		if lite {
			node.Op, node.Domain, node.Version = "FULLY_CONNECTED", graph.TFLite, 4
			node.Inputs = []int{0, 1, -1}
			node.Attrs = graph.Attrs{"fused_activation_function": "NONE", "weights_format": "DEFAULT", "keep_num_dims": false, "asymmetric_quantize_inputs": false}
			if k == Int8 {
				x.Quant = &tensor.Quant{Scale: []float32{1}, Zero: []int64{0}}
				w.Quant = &tensor.Quant{Scale: []float32{1}, Zero: []int64{0}}
				y.Quant = &tensor.Quant{Scale: []float32{float32(max(n/8, 1))}, Zero: []int64{0}}
			}
		}
		g.Nodes, g.Outputs = []*graph.Node{node}, []int{2}
	case Memory:
		m.Bytes, m.Shape = 8*float64(n), []int{n}
		value("x", tensor.Float32, n)
		value("y", tensor.Float32, n)
		node := &graph.Node{Op: "Relu", Inputs: []int{0}, Outputs: []int{1}}
		if lite {
			node.Op, node.Domain, node.Version = "RELU", graph.TFLite, 1
		}
		g.Nodes, g.Outputs = []*graph.Node{node}, []int{1}
	default:
		return nil, fmt.Errorf("kind %q", k)
	}
	whole := &graph.Model{Format: format, Graphs: []*graph.Graph{g}, IRVersion: 7, Opsets: map[string]int{"": 13}}
	var err error
	if lite {
		m.Data, err = tflite.Encode(whole)
	} else {
		m.Data, err = onnx.Encode(whole)
	}
	return m, err
}

// weight returns element i of the weights, from -4 to 4 in pseudo-random order.
func weight(i int) float64 { return float64((uint32(i)*2654435761)>>16%9) - 4 }
