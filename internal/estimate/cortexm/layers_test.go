package cortexm_test

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// operand is a value of a graph of one node.
type operand struct {
	kind  tensor.Type
	shape []int // nil where it is not known
	data  []int8
}

func i8(shape ...int) operand  { return operand{kind: tensor.Int8, shape: shape} }
func i16(shape ...int) operand { return operand{kind: tensor.Int16, shape: shape} }
func f32(shape ...int) operand { return operand{kind: tensor.Float32, shape: shape} }

// add puts a value into a graph.
func add(g *graph.Graph, o operand) int {
	v := &graph.Value{ID: len(g.Values), Type: o.kind, Shape: o.shape, HasShape: o.shape != nil}
	if o.data != nil {
		v.Const = tensor.From(tensor.Int8, o.shape, o.data)
	}
	g.Values = append(g.Values, v)
	return v.ID
}

// single makes a model of one node.
func single(domain, op string, attrs graph.Attrs, in, out []operand) *graph.Model {
	g := &graph.Graph{}
	n := &graph.Node{Op: op, Domain: domain, Attrs: attrs, Version: 13}
	for _, o := range in {
		n.Inputs = append(n.Inputs, add(g, o))
	}
	for _, o := range out {
		n.Outputs = append(n.Outputs, add(g, o))
	}
	g.Nodes = []*graph.Node{n}
	return &graph.Model{Graphs: []*graph.Graph{g}}
}

func of(o ...operand) []operand { return o }

var (
	cmsis  = cortexm.Kernels{Family: "tflm-cmsis-nn", Tier: "dsp"}
	helium = cortexm.Kernels{Family: "tflm-cmsis-nn", Tier: "mve"}
	plain  = cortexm.Kernels{Family: "tflm-reference"}
	cube   = cortexm.Kernels{Family: "x-cube-ai"}
)

// TestLayer states what operators are reduced to. Sizes are small primes, so that no
// figure comes out for two reasons.
func TestLayer(t *testing.T) {
	t.Parallel()
	const lite, on = graph.TFLite, graph.ONNX
	type work = cortexm.Vector
	same := graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1)}
	dilation := func(h, w int) graph.Attrs {
		return graph.Attrs{"padding": "VALID", "stride_h": int64(1), "stride_w": int64(1), "dilation_h_factor": int64(h), "dilation_w_factor": int64(w)}
	}
	conv := work{cortexm.Op: 1, cortexm.ConvMAC: 20 * 7 * 18, cortexm.ConvGather: 20 * 18, cortexm.ConvWindow: 20 * 6, cortexm.ConvOutput: 20 * 7}
	depthwise := work{cortexm.Op: 1, cortexm.DepthwiseMAC: 20 * 7 * 6, cortexm.DepthwiseOutput: 20 * 7}
	dense := func(rows, in, out float64) work {
		return work{cortexm.Op: 1, cortexm.DenseMAC: rows * in * out, cortexm.DenseOutput: rows * out}
	}
	for _, c := range []struct {
		name, domain, op string
		attrs            graph.Attrs
		kernels          cortexm.Kernels
		in, out          []operand
		kernel           string
		kind             cortexm.Type
		work             work
	}{
		{"convolution", lite, "CONV_2D", same, cmsis, of(i8(1, 4, 5, 3), i8(7, 3, 2, 3)), of(i8(1, 4, 5, 7)), "conv", cortexm.Int8, conv},
		{"convolution, 16 bits", lite, "CONV_2D", same, cmsis, of(i16(1, 4, 5, 3), i8(7, 3, 2, 3)), of(i16(1, 4, 5, 7)), "conv", cortexm.Int16, conv},
		{"two images", lite, "CONV_2D", same, cmsis, of(i8(2, 2, 5, 3), i8(7, 3, 2, 3)), of(i8(2, 2, 5, 7)), "conv", cortexm.Int8, conv},
		{"groups", lite, "CONV_2D", same, cmsis, of(i8(1, 4, 5, 6), i8(7, 3, 2, 3)), of(i8(1, 4, 5, 7)), "conv", cortexm.Int8, conv},
		{"1x1", lite, "CONV_2D", same, cmsis, of(i8(1, 4, 5, 3), i8(7, 1, 1, 3)), of(i8(1, 4, 5, 7)), "pointwise", cortexm.Int8, work{cortexm.Op: 1, cortexm.PointMAC: 20 * 3 * 7, cortexm.PointGather: 20 * 3, cortexm.PointOutput: 20 * 7}},
		// Three rows meet 2+3+3+2 of their 12 places, two columns 2+2+2+2+1 of 10.
		{"plain C leaves padding out", lite, "CONV_2D", same, plain, of(i8(1, 4, 5, 3), i8(7, 3, 2, 3)), of(i8(1, 4, 5, 7)), "conv", cortexm.Int8, work{cortexm.Op: 1, cortexm.ConvMAC: 10 * 9 * 3 * 7, cortexm.ConvWindow: 20 * 6 * 7, cortexm.ConvOutput: 20 * 7}},
		{"floats leave padding out", lite, "CONV_2D", same, cmsis, of(f32(1, 4, 5, 3), f32(7, 3, 2, 3)), of(f32(1, 4, 5, 7)), "conv", cortexm.Float, work{cortexm.Op: 1, cortexm.ConvMAC: 10 * 9 * 3 * 7, cortexm.ConvWindow: 20 * 6 * 7, cortexm.ConvOutput: 20 * 7}},
		{"the tool that folds has float kernels of its own", lite, "CONV_2D", same, cube, of(f32(1, 4, 5, 3), f32(7, 3, 2, 3)), of(f32(1, 4, 5, 7)), "conv", cortexm.Float, conv},
		{"channels first", on, "Conv", graph.Attrs{"pads": []int64{1, 0, 1, 1}}, cmsis, of(i8(1, 3, 4, 5), i8(7, 3, 3, 2)), of(i8(1, 7, 4, 5)), "conv", cortexm.Int8, conv},
		{"channels first, two images", on, "Conv", graph.Attrs{"pads": []int64{1, 0, 1, 1}}, cmsis, of(i8(2, 3, 2, 5), i8(7, 3, 3, 2)), of(i8(2, 7, 2, 5)), "conv", cortexm.Int8, conv},
		{"quantised, weights fourth", on, "QLinearConv", graph.Attrs{"pads": []int64{1, 0, 1, 1}}, cmsis, of(i8(1, 3, 4, 5), f32(), i8(), i8(7, 3, 3, 2), f32(), i8(), f32(), i8()), of(i8(1, 7, 4, 5)), "conv", cortexm.Int8, conv},
		{"quantised sum", graph.Microsoft, "QLinearAdd", nil, cmsis, of(i8(3, 7), f32(), i8(), i8(3, 7), f32(), i8(), f32(), i8()), of(i8(3, 7)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.Element: 21}},
		{"a group a channel", on, "Conv", graph.Attrs{"group": int64(7), "pads": []int64{1, 0, 1, 1}}, cmsis, of(i8(1, 7, 4, 5), i8(7, 1, 3, 2)), of(i8(1, 7, 4, 5)), "depthwise", cortexm.Int8, depthwise},
		{"a group a channel, two images", on, "Conv", graph.Attrs{"group": int64(7), "pads": []int64{1, 0, 1, 1}}, cmsis, of(i8(2, 7, 2, 5), i8(7, 1, 3, 2)), of(i8(2, 7, 2, 5)), "depthwise", cortexm.Int8, depthwise},
		{"one channel in one group is not a depthwise", on, "Conv", graph.Attrs{"pads": []int64{0, 0, 0, 0}}, cmsis, of(i8(1, 1, 4, 5), i8(7, 1, 1, 1)), of(i8(1, 7, 4, 5)), "pointwise", cortexm.Int8, work{cortexm.Op: 1, cortexm.PointMAC: 140, cortexm.PointGather: 20, cortexm.PointOutput: 140}},
		{"two groups of channels are not depthwise", on, "Conv", graph.Attrs{"group": int64(2)}, cmsis, of(i8(1, 4, 4, 5), i8(6, 2, 1, 1)), of(i8(1, 6, 4, 5)), "pointwise", cortexm.Int8, work{cortexm.Op: 1, cortexm.PointMAC: 20 * 2 * 6, cortexm.PointGather: 40, cortexm.PointOutput: 120}},

		{"depthwise", lite, "DEPTHWISE_CONV_2D", same, cmsis, of(i8(1, 4, 5, 7), i8(1, 3, 2, 7)), of(i8(1, 4, 5, 7)), "depthwise", cortexm.Int8, depthwise},
		{"depthwise, two images", lite, "DEPTHWISE_CONV_2D", same, cmsis, of(i8(2, 2, 5, 7), i8(1, 3, 2, 7)), of(i8(2, 2, 5, 7)), "depthwise", cortexm.Int8, depthwise},
		{"depthwise, plain C", lite, "DEPTHWISE_CONV_2D", same, plain, of(i8(1, 4, 5, 7), i8(1, 3, 2, 7)), of(i8(1, 4, 5, 7)), "depthwise", cortexm.Int8, work{cortexm.Op: 1, cortexm.DepthwiseMAC: 10 * 9 * 7, cortexm.DepthwiseOutput: 140}},
		{"dilated rows go to plain C", lite, "DEPTHWISE_CONV_2D", dilation(2, 1), cmsis, of(i8(1, 8, 6, 7), i8(1, 3, 2, 7)), of(i8(1, 4, 5, 7)), "dilated depthwise in plain C", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainMAC: 840}},
		{"dilated columns go to plain C", lite, "DEPTHWISE_CONV_2D", dilation(1, 2), cmsis, of(i8(1, 6, 7, 7), i8(1, 3, 2, 7)), of(i8(1, 4, 5, 7)), "dilated depthwise in plain C", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainMAC: 840}},
		{"floats are plain C anyhow", lite, "DEPTHWISE_CONV_2D", dilation(2, 1), cmsis, of(f32(1, 8, 6, 7), f32(1, 3, 2, 7)), of(f32(1, 4, 5, 7)), "depthwise", cortexm.Float, depthwise},
		{"dilated elsewhere", lite, "DEPTHWISE_CONV_2D", dilation(2, 1), cube, of(i8(1, 8, 6, 7), i8(1, 3, 2, 7)), of(i8(1, 4, 5, 7)), "depthwise", cortexm.Int8, depthwise},
		{"a dilated convolution", lite, "CONV_2D", dilation(2, 1), cmsis, of(i8(1, 8, 6, 3), i8(7, 3, 2, 3)), of(i8(1, 4, 5, 7)), "conv", cortexm.Int8, conv},

		// Every pixel of the input goes through the window, to every channel of the output.
		{"transposed", lite, "TRANSPOSE_CONV", graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2)}, cmsis, of(i8(4), i8(7, 3, 2, 5), i8(1, 3, 4, 5)), of(i8(1, 7, 8, 7)), "transposed conv", cortexm.Int8, work{cortexm.Op: 1, cortexm.ConvMAC: 12 * 6 * 5 * 7, cortexm.ConvGather: 12 * 6 * 5, cortexm.ConvWindow: 12 * 6, cortexm.ConvOutput: 12 * 7}},
		{"transposed, 16 bits", lite, "TRANSPOSE_CONV", graph.Attrs{"padding": "VALID", "stride_h": int64(2), "stride_w": int64(2)}, cmsis, of(i8(4), i8(7, 3, 2, 5), i16(2, 3, 2, 5)), of(i16(2, 7, 4, 7)), "transposed conv", cortexm.Int16, work{cortexm.Op: 1, cortexm.ConvMAC: 12 * 6 * 5 * 7, cortexm.ConvGather: 12 * 6 * 5, cortexm.ConvWindow: 12 * 6, cortexm.ConvOutput: 12 * 7}},

		{"dense", lite, "FULLY_CONNECTED", nil, cmsis, of(i8(3, 11), i8(5, 11)), of(i8(3, 5)), "dense", cortexm.Int8, dense(3, 11, 5)},
		{"a product of batches", lite, "BATCH_MATMUL", nil, cmsis, of(i8(2, 3, 11), i8(2, 5, 11)), of(i8(2, 3, 5)), "dense", cortexm.Int8, dense(6, 11, 5)},
		{"matrices", on, "MatMul", nil, cmsis, of(i8(2, 3, 11), i8(11, 5)), of(i8(2, 3, 5)), "dense", cortexm.Int8, dense(6, 11, 5)},
		{"the right one transposed", on, "Gemm", graph.Attrs{"transB": int64(1)}, cmsis, of(i8(3, 11), i8(5, 11)), of(i8(3, 5)), "dense", cortexm.Int8, dense(3, 11, 5)},
		{"the right one as it is", on, "Gemm", nil, cmsis, of(i8(3, 11), i8(11, 5)), of(i8(3, 5)), "dense", cortexm.Int8, dense(3, 11, 5)},
		{"matrices, quantised", on, "QLinearMatMul", nil, cmsis, of(i8(3, 11), f32(), i8(), i8(11, 5), f32(), i8(), f32(), i8()), of(i8(3, 5)), "dense", cortexm.Int8, dense(3, 11, 5)},

		{"pooling", lite, "MAX_POOL_2D", graph.Attrs{"filter_height": int64(3), "filter_width": int64(2)}, cmsis, of(i8(1, 6, 6, 5)), of(i8(1, 2, 3, 5)), "pool", cortexm.Int8, work{cortexm.Op: 1, cortexm.PoolElement: 30 * 6}},
		{"all of a image", on, "GlobalAveragePool", nil, cmsis, of(i8(1, 5, 6, 7)), of(i8(1, 5, 1, 1)), "pool", cortexm.Int8, work{cortexm.Op: 1, cortexm.PoolElement: 210}},
		{"mean, plain C", lite, "MEAN", nil, cmsis, of(i8(1, 5, 6, 7), i8(2)), of(i8(1, 7)), "reduction", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainReduce: 210}},
		{"mean, a kernel of its own", lite, "MEAN", nil, cortexm.Kernels{Family: "tflm-esp-nn"}, of(i8(1, 5, 6, 7), i8(2)), of(i8(1, 7)), "reduction", cortexm.Int8, work{cortexm.Op: 1, cortexm.PoolElement: 210}},
		{"softmax", lite, "SOFTMAX", nil, cmsis, of(i8(3, 7)), of(i8(3, 7)), "transcendental", cortexm.Int8, work{cortexm.Op: 1, cortexm.TableElement: 21}},
		{"softmax, plain C", lite, "SOFTMAX", nil, plain, of(i8(3, 7)), of(i8(3, 7)), "transcendental", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainTable: 21}},
		{"a sum", lite, "ADD", nil, cmsis, of(i8(3, 7), i8(7)), of(i8(3, 7)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.Element: 21}},
		{"a difference has no kernel", lite, "SUB", nil, cmsis, of(i8(3, 7), i8(7)), of(i8(3, 7)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainElement: 21}},
		{"a sum of floats has none", lite, "ADD", nil, cmsis, of(f32(3, 7), f32(7)), of(f32(3, 7)), "element-wise", cortexm.Float, work{cortexm.Op: 1, cortexm.PlainElement: 21}},
		{"a larger one", lite, "MAXIMUM", nil, cmsis, of(i8(21), i8(21)), of(i8(21)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainElement: 21}},
		{"a larger one with Helium", lite, "MAXIMUM", nil, helium, of(i8(21), i8(21)), of(i8(21)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.Element: 21}},
		{"the same of ONNX", on, "Max", nil, helium, of(i8(21), i8(21)), of(i8(21)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.Element: 21}},
		{"Helium of other kernels", lite, "MAXIMUM", nil, cortexm.Kernels{Family: "tflm-esp-nn", Tier: "mve"}, of(i8(21), i8(21)), of(i8(21)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainElement: 21}},
		{"an unknown family has kernels for everything", lite, "SUB", nil, cortexm.Kernels{Family: "vendor"}, of(i8(21), i8(21)), of(i8(21)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.Element: 21}},
		{"copies cost the same everywhere", lite, "CONCATENATION", nil, plain, of(i8(3, 7), i8(3, 4)), of(i8(3, 11)), "copy", cortexm.Int8, work{cortexm.Op: 1, cortexm.MoveElement: 33}},
		{"an index each", lite, "TRANSPOSE", nil, cmsis, of(i8(3, 7), i8(2)), of(i8(7, 3)), "reorder", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainMove: 21}},
		{"an index each with Helium", lite, "TRANSPOSE", nil, helium, of(i8(3, 7), i8(2)), of(i8(7, 3)), "reorder", cortexm.Int8, work{cortexm.Op: 1, cortexm.MoveElement: 21}},
		{"all outputs", lite, "SPLIT", nil, cmsis, of(i8(1), i8(3, 7)), of(i8(3, 2), i8(3, 4), i8(3, 1)), "reorder", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainMove: 21}},
		{"nothing moves", lite, "SQUEEZE", nil, cmsis, of(i8(1, 21)), of(i8(21)), "view", cortexm.Int8, work{cortexm.Op: 1}},
		{"to integers", lite, "QUANTIZE", nil, cmsis, of(f32(21)), of(i8(21)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainElement: 21}},
		{"to floats", lite, "DEQUANTIZE", nil, cmsis, of(i8(21)), of(f32(21)), "element-wise", cortexm.Float, work{cortexm.Op: 1, cortexm.PlainElement: 21}},
		{"a constant is folded by the tool", lite, "ADD", nil, cube, of(operand{tensor.Int8, []int{2}, []int8{1, 2}}), of(i8(2)), "view", cortexm.Int8, work{cortexm.Op: 1}},
		{"and not by an interpreter", lite, "ADD", nil, cmsis, of(operand{tensor.Int8, []int{2}, []int8{1, 2}}), of(i8(2)), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.Element: 2}},
		{"constants of ONNX are folded on the way", on, "Add", nil, cmsis, of(operand{tensor.Int8, []int{2}, []int8{1, 2}}), of(i8(2)), "view", cortexm.Int8, work{cortexm.Op: 1}},
		{"a single number", lite, "ADD", nil, cmsis, of(i8([]int{}...), i8([]int{}...)), of(operand{kind: tensor.Int8, shape: []int{}}), "element-wise", cortexm.Int8, work{cortexm.Op: 1, cortexm.Element: 1}},

		// A step of a cell of 4 units with 3 inputs, as batch of 2: the products of both
		// matrices, 4 gates an output, 5 tables.
		{"a recurrent cell", on, "LSTM", nil, cube, of(i8(1, 2, 3), i8(1, 16, 3), i8(1, 16, 4)), of(i8(1, 1, 2, 4)), "recurrent", cortexm.Int8, work{cortexm.Op: 1, cortexm.DenseMAC: 2 * 16 * 7, cortexm.DenseOutput: 4 * 8, cortexm.TableElement: 5 * 8}},
		{"a recurrent cell in plain C", on, "LSTM", nil, plain, of(i8(1, 2, 3), i8(1, 16, 3), i8(1, 16, 4)), of(i8(1, 1, 2, 4)), "recurrent", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainMAC: 2 * 16 * 7}},
		{"products without a rule", on, "Einsum", graph.Attrs{"equation": "ij,jk->ik"}, cmsis, of(i8(3, 11), i8(11, 5)), of(i8(3, 5)), "products in plain C", cortexm.Int8, work{cortexm.Op: 1, cortexm.PlainMAC: 165}},
	} {
		m := single(c.domain, c.op, c.attrs, c.in, c.out)
		l := cortexm.Layers(m, m.Main(), c.kernels)[0]
		if l.Missing != nil {
			t.Errorf("%s: %s", c.name, l.Missing.Text)
			continue
		}
		if l.Kernel != c.kernel || l.Type != c.kind || l.Work != c.work || l.Live != c.work {
			t.Errorf("%s: %q in %v, %v (live %v), want %q in %v, %v", c.name, l.Kernel, l.Type, l.Work, l.Live, c.kernel, c.kind, c.work)
		}
	}
}

// TestUnknownWork has operators whose work cannot be told, and why.
func TestUnknownWork(t *testing.T) {
	t.Parallel()
	none := operand{kind: tensor.Int8}
	for _, c := range []struct {
		name, domain, op string
		in, out          []operand
		want             chip.MissingCode
	}{
		{"custom", graph.TFLiteCustom, "ADD", of(i8(2)), of(i8(2)), chip.MissingOperator},
		{"no such operator", graph.TFLite, "NEW", of(i8(2)), of(i8(2)), chip.MissingOperator},
		{"output of a sum", graph.TFLite, "ADD", of(i8(2)), of(none), chip.MissingShape},
		{"no output", graph.TFLite, "ADD", of(i8(2)), nil, chip.MissingShape},
		{"input of a convolution", graph.TFLite, "CONV_2D", of(none, i8(7, 3, 2, 3)), of(i8(1, 4, 5, 7)), chip.MissingShape},
		{"weights", graph.TFLite, "CONV_2D", of(i8(1, 4, 5, 3), none), of(i8(1, 4, 5, 7)), chip.MissingShape},
		{"no weights", graph.TFLite, "CONV_2D", of(i8(1, 4, 5, 3)), of(i8(1, 4, 5, 7)), chip.MissingShape},
		{"output of a convolution", graph.TFLite, "CONV_2D", of(i8(1, 4, 5, 3), i8(7, 3, 2, 3)), of(none), chip.MissingShape},
		{"an open dimension", graph.TFLite, "ADD", of(i8(2)), of(i8(-1, 2)), chip.MissingShape},
		{"weights of three dimensions", graph.TFLite, "CONV_2D", of(i8(1, 4, 5, 3), i8(7, 3, 2)), of(i8(1, 4, 5, 7)), chip.MissingOperator},
		{"input of three dimensions", graph.TFLite, "CONV_2D", of(i8(4, 5, 3), i8(7, 3, 2, 3)), of(i8(4, 5, 7)), chip.MissingOperator},
		{"depthwise weights of three dimensions", graph.TFLite, "DEPTHWISE_CONV_2D", of(i8(1, 4, 5, 7), i8(3, 2, 7)), of(i8(1, 4, 5, 7)), chip.MissingOperator},
		{"depthwise output of three dimensions", graph.TFLite, "DEPTHWISE_CONV_2D", of(i8(4, 5, 7), i8(1, 3, 2, 7)), of(i8(4, 5, 7)), chip.MissingOperator},
		{"a recurrent cell", graph.ONNX, "LSTM", of(none, none, none), of(none), chip.MissingShape},
		{"elements on which it depends", graph.TFLite, "UNIQUE", of(i8(2)), of(i8(2)), chip.MissingOperator},
	} {
		m := single(c.domain, c.op, nil, c.in, c.out)
		l := cortexm.Layers(m, m.Main(), cmsis)[0]
		if l.Missing == nil || l.Missing.Code != c.want || l.Missing.Text == "" || l.Work != (cortexm.Vector{}) {
			t.Errorf("%s: %+v, want %q", c.name, l, c.want)
		}
	}
}

// TestWeightsInMemory states how many bytes of weights are read and how often: convolutions
// read them for each pixel.
func TestWeightsInMemory(t *testing.T) {
	t.Parallel()
	same := graph.Attrs{"padding": "SAME", "stride_h": int64(1), "stride_w": int64(1)}
	for _, c := range []struct {
		name, op      string
		in, out       []operand
		bytes, passes float64
	}{
		{"convolution", "CONV_2D", of(i8(1, 4, 5, 3), i8(7, 3, 2, 3)), of(i8(1, 4, 5, 7)), 126, 20},
		{"of floats", "CONV_2D", of(f32(1, 4, 5, 3), f32(7, 3, 2, 3)), of(f32(1, 4, 5, 7)), 4 * 126, 20},
		{"of one pixel", "CONV_2D", of(i8(1, 1, 1, 3), i8(7, 3, 2, 3)), of(i8(1, 1, 1, 7)), 126, 1},
		{"depthwise", "DEPTHWISE_CONV_2D", of(i8(1, 4, 5, 7), i8(1, 3, 2, 7)), of(i8(1, 4, 5, 7)), 42, 20},
		{"dense", "FULLY_CONNECTED", of(i8(3, 11), i8(5, 11)), of(i8(3, 5)), 55, 3},
		{"a sum", "ADD", of(i8(5)), of(i8(5)), 0, 0},
	} {
		m := single(graph.TFLite, c.op, same, c.in, c.out)
		if l := cortexm.Layers(m, m.Main(), cmsis)[0]; l.WeightBytes != c.bytes || l.Passes != c.passes {
			t.Errorf("%s: %v bytes %v times, want %v and %v", c.name, l.WeightBytes, l.Passes, c.bytes, c.passes)
		}
	}
}

// TestShares states what remains of layers when a share of their channels is zero: an
// output that is zero has no products and is not stored, but the window is gathered for
// the others. A share over one, which a fit may ask for, is of products only.
func TestShares(t *testing.T) {
	t.Parallel()
	type work = cortexm.Vector
	for _, c := range []struct {
		name string
		l    cortexm.Layer
		live work
		macs float64
	}{
		{"window", cortexm.Conv(2, 3, 3, 1, 4, 8, 0.25), work{cortexm.Op: 1, cortexm.ConvMAC: 144, cortexm.ConvOutput: 12, cortexm.ConvGather: 72, cortexm.ConvWindow: 18}, 576},
		{"1x1", cortexm.Conv(2, 3, 1, 1, 4, 8, 0.25), work{cortexm.Op: 1, cortexm.PointMAC: 48, cortexm.PointOutput: 12, cortexm.PointGather: 6}, 192},
		{"depthwise", cortexm.Depthwise(2, 3, 3, 1, 8, 0.25), work{cortexm.Op: 1, cortexm.DepthwiseMAC: 36, cortexm.DepthwiseOutput: 12}, 144},
		{"window, more", cortexm.Conv(2, 3, 3, 1, 4, 8, 2), work{cortexm.Op: 1, cortexm.ConvMAC: 1152, cortexm.ConvOutput: 48, cortexm.ConvGather: 72, cortexm.ConvWindow: 18}, 576},
		{"1x1, more", cortexm.Conv(2, 3, 1, 1, 4, 8, 2), work{cortexm.Op: 1, cortexm.PointMAC: 384, cortexm.PointOutput: 48, cortexm.PointGather: 24}, 192},
	} {
		if c.l.Live != c.live || c.l.MACs != c.macs {
			t.Errorf("%s: live %v of %v, want %v of %v", c.name, c.l.Live, c.l.MACs, c.live, c.macs)
		}
	}
}

// TestZeroChannels finds channels without weights: the first axis of a convolution, the
// last of a depthwise one, through which zeros pass on to the next layer.
func TestZeroChannels(t *testing.T) {
	t.Parallel()
	// Four outputs of two inputs, the first and the last zero.
	first := operand{tensor.Int8, []int{4, 1, 1, 2}, []int8{0, 0, 1, 0, 0, -3, 0, 0}}
	// Depthwise 1x2 of four channels: the second is zero.
	second := operand{tensor.Int8, []int{1, 1, 2, 4}, []int8{1, 0, 0, 1, 0, 0, 1, 1}}
	// Two outputs of four inputs, none zero.
	third := operand{tensor.Int8, []int{2, 1, 1, 4}, []int8{1, 1, 1, 1, 0, 1, 0, 1}}
	g := &graph.Graph{}
	w := add(g, first)
	x := add(g, i8(1, 1, 5, 2))
	a, b, c := add(g, i8(1, 1, 5, 4)), add(g, i8(1, 1, 5, 4)), add(g, i8(1, 1, 5, 2))
	attrs := graph.Attrs{"padding": "SAME"}
	g.Nodes = []*graph.Node{
		{Op: "CONV_2D", Domain: graph.TFLite, Attrs: attrs, Inputs: []int{x, w}, Outputs: []int{a}},
		{Op: "DEPTHWISE_CONV_2D", Domain: graph.TFLite, Attrs: attrs, Inputs: []int{a, add(g, second)}, Outputs: []int{b}},
		{Op: "CONV_2D", Domain: graph.TFLite, Attrs: attrs, Inputs: []int{b, add(g, third)}, Outputs: []int{c}},
	}
	m := &graph.Model{Graphs: []*graph.Graph{g}}
	l := cortexm.Layers(m, g, cmsis)
	// Of the first, half of 5*8 products; of the second, the third channel alone of 5*8;
	// of the third, those of one input of four.
	got := []float64{l[0].Live[cortexm.PointMAC], l[1].Live[cortexm.DepthwiseMAC], l[2].Live[cortexm.PointMAC], l[2].Live[cortexm.PointGather]}
	if want := []float64{20, 10, 10, 5}; !slices.Equal(got, want) {
		t.Errorf("live %v, want %v", got, want)
	}
	if got := []float64{l[0].MACs, l[1].MACs, l[2].MACs}; !slices.Equal(got, []float64{40, 40, 40}) {
		t.Errorf("all %v, want 40 each", got)
	}
	// Zeros of another type or of weights that are not known are not looked for.
	g.Values[w].Const = nil
	if l := cortexm.Layers(m, g, cmsis); l[0].Live[cortexm.PointMAC] != 40 || l[1].Live[cortexm.DepthwiseMAC] != 30 {
		t.Errorf("unknown weights: live %v and %v, want 40 and 30", l[0].Live, l[1].Live)
	}
}

// TestOptimised lists which operators have kernels of their own, as the makers publish
// them.
func TestOptimised(t *testing.T) {
	t.Parallel()
	for family, has := range map[string][]string{
		"tflm-cmsis-nn":  {"ADD", "MUL", "SOFTMAX"},
		"tflm-esp-nn":    {"ADD", "MUL", "SOFTMAX", "RELU", "RELU6", "PRELU", "HARD_SWISH"},
		"tflm-andes-nn":  {"ADD", "MUL", "SOFTMAX", "RELU", "RELU6", "LOGISTIC", "TANH"},
		"tflm-reference": nil,
	} {
		for _, op := range []string{"ADD", "MUL", "SOFTMAX", "RELU", "RELU6", "PRELU", "HARD_SWISH", "LOGISTIC", "TANH", "SUB", "EXP"} {
			l := cortexm.Describe(op, 9, cortexm.Kernels{Family: family})
			own := l.Work[cortexm.Element] + l.Work[cortexm.TableElement]
			if plain := l.Work[cortexm.PlainElement] + l.Work[cortexm.PlainTable]; own+plain != 9 || (own == 9) != slices.Contains(has, op) {
				t.Errorf("%s, %s: %v elements in a kernel of its own, %v in plain C", family, op, own, plain)
			}
		}
	}
}
