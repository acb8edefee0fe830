package mvp

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// lite converts an ONNX node to the TensorFlow Lite node that a converter would produce: channels
// last, int8 for operators between DequantizeLinear and QuantizeLinear. Unknown nodes are
// returned unchanged.
func lite(n *graph.Node, in, out []*tensor.Tensor, integer bool) (*graph.Node, []*tensor.Tensor, []*tensor.Tensor) {
	as := func(t *tensor.Tensor, shape []int) *tensor.Tensor {
		if t == nil {
			return nil
		}
		typ := t.Type
		if integer || typ == tensor.Uint8 {
			typ = tensor.Int8
		}
		return &tensor.Tensor{Type: typ, Shape: shape, Quant: t.Quant}
	}
	if len(in) == 0 || len(out) == 0 || in[0] == nil || out[0] == nil {
		return n, in, out
	}
	x, y := in[0].Shape, out[0].Shape
	wi := 1
	if n.Op == "QLinearConv" || n.Op == "QLinearMatMul" {
		wi = 3
	}
	l := &graph.Node{Index: n.Index, Domain: graph.TFLite, Attrs: graph.Attrs{}}
	switch n.Op {
	case "Conv", "QLinearConv":
		if len(x) != 4 || len(y) != 4 || len(in) <= wi || in[wi] == nil || len(in[wi].Shape) != 4 {
			return n, in, out
		}
		w := in[wi].Shape
		l.Op = "CONV_2D"
		filter := []int{w[0], w[2], w[3], w[1]}
		if g := n.Attrs.Int("group", 1); g > 1 && g == x[1] && w[1] == 1 {
			l.Op = "DEPTHWISE_CONV_2D"
			filter = []int{1, w[2], w[3], w[0]}
		}
		return l, []*tensor.Tensor{as(in[0], spatial(n, l, x, y, w[2:])), as(in[wi], filter)}, []*tensor.Tensor{as(out[0], last(y))}
	case "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool":
		if len(x) != 4 || len(y) != 4 {
			return n, in, out
		}
		k := n.Attrs.Ints("kernel_shape")
		if len(k) != 2 {
			k = x[2:]
		}
		l.Op = "AVERAGE_POOL_2D"
		if n.Op == "MaxPool" || n.Op == "GlobalMaxPool" {
			l.Op = "MAX_POOL_2D"
		}
		l.Attrs["filter_height"], l.Attrs["filter_width"] = int64(k[0]), int64(k[1])
		return l, []*tensor.Tensor{as(in[0], spatial(n, l, x, y, k))}, []*tensor.Tensor{as(out[0], last(y))}
	case "Gemm", "MatMul", "QLinearMatMul":
		if len(in) <= wi || in[wi] == nil || len(in[wi].Shape) != 2 || !in[wi].Known() && !integer {
			return n, in, out
		}
		w := slices.Clone(in[wi].Shape)
		if n.Attrs.Int("transB", 0) == 0 {
			w[0], w[1] = w[1], w[0]
		}
		l.Op = "FULLY_CONNECTED"
		return l, []*tensor.Tensor{as(in[0], x), as(in[wi], w)}, []*tensor.Tensor{as(out[0], y)}
	case "Add", "Mul", "QLinearAdd", "QLinearMul":
		second := 1
		if n.Op == "QLinearAdd" || n.Op == "QLinearMul" {
			second = 3
		}
		if len(in) <= second || in[second] == nil {
			return n, in, out
		}
		l.Op = map[string]string{"Add": "ADD", "Mul": "MUL", "QLinearAdd": "ADD", "QLinearMul": "MUL"}[n.Op]
		return l, []*tensor.Tensor{as(in[0], x), as(in[second], in[second].Shape)}, []*tensor.Tensor{as(out[0], y)}
	}
	return n, in, out
}

// spatial sets strides, dilations and padding, and returns the input's shape with channels last.
// Padding that is neither of TensorFlow's two kinds becomes part of the shape: a converter
// inserts a padding operator.
func spatial(n, l *graph.Node, x, y, kernel []int) []int {
	at := func(name string, i, def int) int {
		if v := n.Attrs.Ints(name); i < len(v) {
			return v[i]
		}
		return def
	}
	shape := last(x)
	same, total := true, 0
	for i := range 2 {
		stride, dilation := at("strides", i, 1), at("dilations", i, 1)
		l.Attrs[[]string{"stride_h", "stride_w"}[i]] = int64(stride)
		l.Attrs[[]string{"dilation_h_factor", "dilation_w_factor"}[i]] = int64(dilation)
		pad := at("pads", i, 0) + at("pads", i+2, 0)
		total += pad
		need := max((y[2+i]-1)*stride+(kernel[i]-1)*dilation+1-x[2+i], 0)
		same = same && pad == need && y[2+i] == ceilDiv(x[2+i], max(stride, 1))
	}
	l.Attrs["padding"] = "VALID"
	switch auto := n.Attrs.Str("auto_pad", "NOTSET"); {
	case auto == "SAME_UPPER", auto == "SAME_LOWER", total > 0 && same:
		l.Attrs["padding"] = "SAME"
	case total > 0:
		shape[1] += at("pads", 0, 0) + at("pads", 2, 0)
		shape[2] += at("pads", 1, 0) + at("pads", 3, 0)
	}
	return shape
}

// last converts a shape to channels last.
func last(s []int) []int { return []int{s[0], s[2], s[3], s[1]} }
