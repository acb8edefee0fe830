package cortexm

import (
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// Terms of the cycle model. Target files use these names for coefficients.
const (
	Call       = iota // one inference: entry, copying of inputs and outputs
	Op                // one operator: dispatch and set-up
	ConvMAC           // multiply-accumulate of a convolution with a window
	ConvGather        // element copied into the column buffer of a convolution
	// position of a window: of each pixel where it is gathered, of each output in plain C
	ConvWindow
	ConvOutput      // output of a convolution: requantise, clamp, store
	PointMAC        // multiply-accumulate of a 1x1 convolution
	PointGather     // input of a 1x1 convolution read and widened
	PointOutput     // output of a 1x1 convolution
	DepthwiseMAC    // multiply-accumulate of a depthwise convolution
	DepthwiseOutput // output of a depthwise convolution
	DenseMAC        // multiply-accumulate of a fully connected layer
	DenseOutput     // output of a fully connected layer
	PoolElement     // element under the windows of a pooling layer
	Element         // output of an element-wise operator
	TableElement    // output of softmax, logistic, tanh and the like
	MoveElement     // element copied, padded or joined
	PlainMAC        // multiply-accumulate of a kernel in plain C beside optimised ones
	PlainElement    // output of an element-wise operator in plain C
	PlainTable      // output of a transcendental operator in plain C
	PlainReduce     // input of a reduction in plain C
	PlainMove       // element reordered in plain C, an index computed for each
	Terms
)

// Names of the terms.
var Names = chip.TermNames

// Vector holds an amount of each term.
type Vector [Terms]float64

// Plus adds two vectors.
func (v Vector) Plus(w Vector) Vector {
	for i := range v {
		v[i] += w[i]
	}
	return v
}

// Dot returns the dot product: cycles, for work and coefficients.
func (v Vector) Dot(w Vector) float64 {
	s := 0.0
	for i := range v {
		s += v[i] * w[i]
	}
	return s
}

// Type is a class of element types with its own kernels.
type Type int

// Classes of element types.
const (
	Int8  Type = iota // 8-bit integers, signed or not
	Int16             // activations of 16 bits with weights of 8
	Float
	types
)

// String returns the name of the class for reasons.
func (t Type) String() string { return [types]string{"int8", "int16", "float32"}[t] }

// Layer is the work of one operator.
type Layer struct {
	// Work in all terms, for a runtime that computes every channel.
	Work Vector
	// Live is Work without channels whose weights are all zero, for runtimes that prune them.
	Live Vector
	// MACs is the number of multiply-accumulates.
	MACs float64
	// Kernel names the kind of kernel.
	Kernel string
	// WeightBytes is the size of the weights, Passes how often a convolution reads them.
	WeightBytes, Passes float64
	// Type is the class of types that the operator computes in. FromFloat is set for operators on
	// integers that read floating point: quantisation.
	Type      Type
	FromFloat bool
	// positions is the number of kernel window positions over all pixels.
	positions float64
	// Missing says why the work is unknown, nil if it is known.
	Missing *chip.Missing
}

// Conv describes a convolution with a kh x kw kernel and ci input channels that produces oh x ow
// x co outputs. It is for networks without a file; share is the part of multiply-accumulates in
// nonzero channels.
func Conv(oh, ow, kh, kw, ci, co int, share float64) Layer {
	l := Layer{}
	pixels := float64(oh * ow)
	outs, taps := pixels*float64(co), float64(kh*kw*ci)
	l.MACs = outs * taps
	l.WeightBytes, l.Passes = taps*float64(co), max(1, pixels)
	l.Work[Op], l.Live[Op] = 1, 1
	if kh*kw == 1 {
		l.Kernel = "pointwise"
		l.Work[PointMAC], l.Work[PointOutput] = l.MACs, outs
		l.Work[PointGather], l.Live[PointGather] = pixels*float64(ci), pixels*float64(ci)*min(1, share)
		l.Live[PointMAC], l.Live[PointOutput] = l.MACs*share, outs*min(1, share)
		return l
	}
	l.Kernel = "conv"
	windows := pixels * float64(kh*kw)
	l.Work[ConvMAC], l.Work[ConvOutput], l.Work[ConvGather], l.Work[ConvWindow] = l.MACs, outs, pixels*taps, windows
	l.Live[ConvMAC], l.Live[ConvOutput], l.Live[ConvGather], l.Live[ConvWindow] = l.MACs*share, outs*min(1, share), pixels*taps, windows
	l.positions = outs * float64(kh*kw)
	return l
}

// InPlainC returns the layer with the cost of the reference kernels' loops. They gather nothing,
// compute every window position anew for each output, and skip positions in the padding, so that
// the share inside of multiply-accumulates remains.
func (l Layer) InPlainC(inside float64) Layer {
	for _, v := range []*Vector{&l.Work, &l.Live} {
		v[ConvGather], v[PointGather] = 0, 0
		for _, k := range []int{ConvMAC, PointMAC, DepthwiseMAC} {
			v[k] *= inside
		}
		if v[ConvWindow] > 0 {
			v[ConvWindow] = l.positions
		}
	}
	return l
}

// Depthwise describes a depthwise convolution with c output channels.
func Depthwise(oh, ow, kh, kw, c int, share float64) Layer {
	l := Layer{Kernel: "depthwise"}
	outs := float64(oh * ow * c)
	l.MACs = outs * float64(kh*kw)
	l.WeightBytes, l.Passes = float64(kh*kw*c), float64(oh*ow)
	l.Work[Op], l.Work[DepthwiseMAC], l.Work[DepthwiseOutput] = 1, l.MACs, outs
	l.Live[Op], l.Live[DepthwiseMAC], l.Live[DepthwiseOutput] = 1, l.MACs*share, outs*share
	return l
}

// Dense describes a fully connected layer applied to the given number of row vectors.
func Dense(rows, in, out int) Layer {
	l := Layer{Kernel: "dense", MACs: float64(rows * in * out), WeightBytes: float64(in * out), Passes: float64(rows)}
	l.Work[Op], l.Work[DenseMAC], l.Work[DenseOutput] = 1, l.MACs, float64(rows*out)
	l.Live = l.Work
	return l
}

// Each describes an operator that costs the term for n elements.
func Each(term int, kernel string, n int) Layer {
	l := Layer{Kernel: kernel}
	l.Work[Op], l.Work[term] = 1, float64(n)
	l.Live = l.Work
	return l
}

// Layers returns the work of each node of g, in order, as the kernels do it.
func Layers(m *graph.Model, g *graph.Graph, k Kernels) []Layer {
	dead := deadChannels(g)
	integer, gone := plan.Quantised(g)
	out := make([]Layer, len(g.Nodes))
	for i, n := range g.Nodes {
		if gone[n] {
			out[i] = Layer{Kernel: "none"} // part of the adjacent integer operator
			continue
		}
		out[i] = layer(m, g, n, dead, k, integer[n])
	}
	return out
}

func layer(m *graph.Model, g *graph.Graph, n *graph.Node, dead map[int][]bool, k Kernels, integer bool) Layer {
	in, outs := count.Declared(g, n.Inputs), count.Declared(g, n.Outputs)
	if n.Domain == graph.TFLiteCustom {
		return unknown(n, chip.MissingOperator, "a custom operator, whose work is not known")
	}
	float := !integer && floats(n, in, outs)
	var l Layer
	ok := recurrent[n.Op]
	if !ok {
		l, ok = weighted(n, in, outs, dead)
	}
	if !ok {
		l = simple(n, in, outs, k.optimised(n.Op, float), k.folds() || n.Domain != graph.TFLite)
	}
	w := count.Count(m, g, n, in, outs)
	if l.Missing != nil {
		// Operators without a rule still have a known number of multiply-accumulates.
		if w.MACs == nil || *w.MACs == 0 {
			return l
		}
		l = Layer{Kernel: "products in plain C"}
		l.Work = Vector{Op: 1, PlainMAC: float64(*w.MACs)}
		l.Live = l.Work
	}
	if recurrent[n.Op] {
		if w.MACs == nil {
			return unknown(n, chip.MissingShape, "its work is not known")
		}
		l = gates(*w.MACs, outs, k.optimised(n.Op, float))
	}
	if w.MACs != nil {
		l.MACs = float64(*w.MACs)
	}
	l.Type = typeOf(n, in, float)
	l.FromFloat = (n.Op == "QUANTIZE" || n.Op == "QuantizeLinear") && len(in) > 0 && in[0] != nil && in[0].Type.IsFloat()
	if float {
		l.WeightBytes *= 4
	}
	if (float || k.Family == reference) && w.MACsExecuted != nil && l.MACs > 0 && !k.folds() {
		l = l.InPlainC(float64(*w.MACsExecuted) / l.MACs)
	}
	if !float && l.Kernel == "depthwise" && dilated(n) && k.Family == cmsisNN {
		// CMSIS-NN leaves dilated depthwise convolutions to plain C.
		l.Work = Vector{Op: 1, PlainMAC: l.MACs}
		l.Live, l.Kernel = l.Work, "dilated depthwise in plain C"
	}
	return l
}

// floats reports whether a node computes in floating point. Conversions between floating point
// and integers count by their output; operators on quantised elements have floats only as scales.
func floats(n *graph.Node, in, out []*tensor.Tensor) bool {
	switch n.Op {
	case "QUANTIZE", "QuantizeLinear":
		return false
	case "DEQUANTIZE", "DequantizeLinear":
		return true
	}
	if strings.HasPrefix(n.Op, "QLinear") {
		return false
	}
	for _, t := range append(out[:len(out):len(out)], in...) {
		if t != nil && t.Type.IsFloat() {
			return true
		}
	}
	return false
}

// typeOf returns the class of types that a node computes in: 16-bit activations have their own
// kernels.
func typeOf(n *graph.Node, in []*tensor.Tensor, float bool) Type {
	switch {
	case float:
		return Float
	case len(in) > 0 && in[0] != nil && in[0].Type == tensor.Int16, len(in) > 2 && n.Op == "TRANSPOSE_CONV" && in[2] != nil && in[2].Type == tensor.Int16:
		return Int16
	}
	return Int8
}

func dilated(n *graph.Node) bool {
	return n.Attrs.Int("dilation_h_factor", 1) > 1 || n.Attrs.Int("dilation_w_factor", 1) > 1
}

// recurrent operators are matrix multiplications with some elementwise work.
var recurrent = map[string]bool{
	"SVDF": true, "UNIDIRECTIONAL_SEQUENCE_LSTM": true, "UNIDIRECTIONAL_SEQUENCE_RNN": true, "RNN": true,
	"LSTM": true, "GRU": true,
}

// gates describes a recurrent layer by its multiply-accumulates. An LSTM looks up five tables for
// each of its outputs.
func gates(macs int64, out []*tensor.Tensor, optimised bool) Layer {
	n := 0
	if y := dims(out, 0); y != nil {
		n = tensor.Elements(y)
	}
	l := Layer{Kernel: "recurrent", MACs: float64(macs)}
	if !optimised {
		l.Work = Vector{Op: 1, PlainMAC: l.MACs}
		l.Live = l.Work
		return l
	}
	l.Work[Op], l.Work[DenseMAC], l.Work[DenseOutput], l.Work[TableElement] = 1, l.MACs, float64(4*n), float64(5*n)
	l.Live = l.Work
	return l
}

// dims returns the shape of operand i, nil if it is absent or unknown.
func dims(list []*tensor.Tensor, i int) []int {
	if i < 0 || i >= len(list) || list[i] == nil {
		return nil
	}
	if _, err := tensor.CheckShape(tensor.Int8, list[i].Shape); err != nil {
		return nil // dynamic, or larger than any memory
	}
	if list[i].Shape == nil {
		return []int{}
	}
	return list[i].Shape
}

func unknown(n *graph.Node, code chip.MissingCode, why string) Layer {
	return Layer{Missing: &chip.Missing{Code: code, Text: n.Key() + ": " + why}}
}

// weighted handles operators with a weight matrix; ok is false for others.
func weighted(n *graph.Node, in, out []*tensor.Tensor, dead map[int][]bool) (l Layer, ok bool) {
	d := kernels[n.Op]
	if d == "" {
		return Layer{}, false
	}
	xi, wi := 0, 1
	switch n.Op {
	case "TRANSPOSE_CONV":
		xi = 2
	case "QLinearConv", "QLinearMatMul":
		wi = 3
	}
	x, w, y := dims(in, xi), dims(in, wi), dims(out, 0)
	if x == nil || w == nil || y == nil {
		return unknown(n, chip.MissingShape, "its shapes are not known"), true
	}
	live := channels(n, wi, dead)
	switch d {
	case "conv", "transpose":
		return convolution(n, x, w, y, live), true
	case "depthwise":
		if len(w) != 4 || len(y) != 4 {
			return unknown(n, chip.MissingOperator, "not a two-dimensional convolution"), true
		}
		return Depthwise(y[0]*y[1], y[2], w[1], w[2], y[3], live.out), true
	}
	if len(w) < 2 || len(y) == 0 {
		return unknown(n, chip.MissingOperator, "not a matrix product"), true
	}
	k := w[len(w)-1]
	if n.Domain != graph.TFLite && n.Attrs.Int("transB", 0) == 0 {
		k = w[len(w)-2]
	}
	cols := y[len(y)-1]
	return Dense(tensor.Elements(y)/max(1, cols), k, cols), true
}

// kernels maps operators with weights to kinds of kernels.
var kernels = map[string]string{
	"CONV_2D": "conv", "Conv": "conv", "QLinearConv": "conv", "ConvInteger": "conv",
	"DEPTHWISE_CONV_2D": "depthwise", "TRANSPOSE_CONV": "transpose",
	"FULLY_CONNECTED": "dense", "BATCH_MATMUL": "dense", "MatMul": "dense", "Gemm": "dense",
	"QLinearMatMul": "dense", "MatMulInteger": "dense",
}

func convolution(n *graph.Node, x, w, y []int, live share) Layer {
	if len(w) != 4 || len(y) != 4 || len(x) != 4 {
		return unknown(n, chip.MissingOperator, "not a two-dimensional convolution")
	}
	if n.Domain != graph.TFLite { // NCHW, weights OIHW
		groups := n.Attrs.Int("group", 1)
		if groups == x[1] && w[1] == 1 && groups > 1 {
			return Depthwise(y[0]*y[2], y[3], w[2], w[3], y[1], live.out)
		}
		return Conv(y[0]*y[2], y[3], w[2], w[3], w[1], y[1], live.both)
	}
	if n.Op == "TRANSPOSE_CONV" {
		// Work is proportional to the input pixels.
		l := Conv(x[0]*x[1], x[2], w[1], w[2], x[3], y[3], 1)
		l.Kernel = "transposed conv"
		return l
	}
	return Conv(y[0]*y[1], y[2], w[1], w[2], w[3], y[3], live.both)
}
