package sparsify

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// Flops is Sparsify's count of operations, nil if it has none. Its defects are reproduced:
//   - convolutions count a multiply-accumulate once, matrix multiplications twice;
//   - grouped convolutions are divided by the groups a second time, and the bias of 1-D and 3-D
//     convolutions counts the last two dimensions of the output;
//   - matrix multiplications with weights count one row, whatever the batch or sequence length;
//   - a convolution or pooling without the attribute kernel_shape has no count.
//
// Unknown dimensions count as 1.
func Flops(n *Node) *float64 {
	var in, out []int64
	if len(n.InputShapes) > 0 {
		in = n.InputShapes[0].ints()
	}
	if len(n.OutputShapes) > 0 {
		out = n.OutputShapes[0].ints()
	}
	kernel, haveKernel := integers(n.Attributes["kernel_shape"])
	switch n.OpType {
	case "Add", "Mul", "Div", "Sub", "Clip", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "BatchNormalization":
		if out != nil {
			return new(product(out))
		}
	case "GlobalAveragePool", "GlobalMaxPool":
		if in != nil {
			return new(product(in))
		}
	case "MaxPool", "AveragePool":
		if out != nil && haveKernel {
			return new(product(out) * product(kernel))
		}
	case "Conv":
		if out != nil && haveKernel && len(n.WeightShape) > 1 {
			return new(conv(n, kernel, out))
		}
	case "Gemm":
		if n.WeightShape != nil {
			return new(2*product(n.WeightShape.ints()) + bias(n))
		}
	case "MatMul":
		return matmul(n, out)
	}
	return nil
}

func conv(n *Node, kernel, out []int64) float64 {
	f := product(kernel) * float64(n.WeightShape.ints()[1]) * product(out)
	if g, ok := integers(n.Attributes["group"]); ok && len(g) == 1 && g[0] > 1 {
		f /= float64(g[0])
	}
	if len(out) > 1 {
		f += bias(n) * product(out[len(out)-2:])
	}
	return f
}

// matmul counts two inputs as a matrix multiplication, even if one comes from transposed weights,
// and a single input as a row times weights.
func matmul(n *Node, out []int64) *float64 {
	if len(n.InputShapes) > 1 {
		a, b := n.InputShapes[0].ints(), n.InputShapes[1].ints()
		if len(out) < 2 || len(a) < 2 || len(b) < 2 || a[len(a)-1] != b[len(b)-2] {
			return nil
		}
		k := a[len(a)-1]
		return new(product(out[:len(out)-2]) * float64(a[len(a)-2]) * float64(b[len(b)-1]) * float64(2*k-1))
	}
	if len(n.InputShapes) == 0 || n.WeightShape == nil {
		return nil
	}
	return new(2 * product(n.WeightShape.ints()))
}

// bias is the number of elements of the bias, 0 for none.
func bias(n *Node) float64 {
	if n.BiasShape == nil {
		return 0
	}
	return product(n.BiasShape.ints())
}

func product(s []int64) float64 {
	p := 1.0
	for _, d := range s {
		p *= float64(d)
	}
	return p
}

// integers parses an attribute that is an integer or a list of integers.
func integers(v jsonx.Raw) (out []int64, ok bool) {
	if string(v) == "null" {
		return nil, false
	}
	if len(v) > 0 && v[0] != '[' {
		v = slices.Concat(jsonx.Raw("["), v, jsonx.Raw("]"))
	}
	err := jsonx.Unmarshal(v, &out)
	return out, err == nil && len(out) > 0
}
