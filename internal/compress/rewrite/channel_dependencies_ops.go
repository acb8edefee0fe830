package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// elementwise lists operators whose output elements depend only on the input elements at the same
// position, after broadcasting.
var elementwise = setOf(
	"Relu", "LeakyRelu", "PRelu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Elu", "Selu", "Celu", "Softplus", "Softsign", "Gelu", "FastGelu", "QuickGelu", "Mish", "Erf", "Exp", "Log", "Sqrt",
	"Reciprocal", "Abs", "Neg", "Floor", "Ceil", "Round", "Sin", "Cos", "Identity", "Dropout", "Cast", "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "Where", "Equal", "Less", "Greater", "Not", "And", "Or", "BiasGelu",
	"ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "PRELU", "LOGISTIC", "TANH", "ELU", "HARD_SWISH", "GELU", "EXP", "LOG", "SQRT", "RSQRT",
	"SQUARE", "ABS", "NEG", "FLOOR", "CEIL", "ROUND", "CAST", "POW", "QUANTIZE", "DEQUANTIZE", "DENSIFY",
)

func setOf(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// find lists the dependencies of a node. An axis without a dependency must keep all its indices.
func (b *dependencyFinder) find() {
	n, x, y := b.n, b.in(0), b.out(0)
	switch {
	case elementwise[n.Op]:
		for _, y := range n.Outputs { // Dropout has a mask output
			if y >= 0 {
				b.tieBroadcast(y, n.Inputs...)
			}
		}
	case n.Domain == graph.TFLite:
		b.tflite(x, y)
	default:
		b.onnx(x, y)
	}
}

// onnx lists the dependencies of ONNX operators.
func (b *dependencyFinder) onnx(x, y int) {
	b.onnxWeights(x, y)
	b.onnxQuantised(x, y)
	b.onnxMoves(x, y)
	b.onnxReductions(x, y)
}

// onnxWeights handles operators with weights.
func (b *dependencyFinder) onnxWeights(x, y int) {
	n := b.n
	groups := n.Attrs.Int("group", 1)
	switch n.Op {
	case "Conv", "FusedConv":
		b.tieConvolution(x, b.in(1), y, 1, 0, 1, groups, b.in(2))
		b.tieBroadcast(y, b.in(3))
	case "ConvTranspose":
		b.tieConvTranspose(x, b.in(1), y, groups, b.in(2))
	case "MatMul", "FusedMatMul", "Gemm", "FusedGemm":
		b.tieMatMul(x, b.in(1), y, n.Attrs.Bool("transA", false), n.Attrs.Bool("transB", false))
		b.tieBroadcast(y, b.in(2)) // bias of Gemm
	case "BatchNormalization":
		if len(n.Outputs) == 1 {
			b.tieAllAxes(x, y)
			b.tieVectors(y, 1, b.in(1), b.in(2), b.in(3), b.in(4))
		}
	case "InstanceNormalization":
		b.tieSame(x, 0, y, 0)
		b.tieSame(x, 1, y, 1)
		b.tieVectors(y, 1, b.in(1), b.in(2))
	case "LSTM", "GRU", "RNN", "DynamicQuantizeLSTM":
		b.tieRecurrent(x)
	case "Attention", "QAttention", "MultiHeadAttention":
		if n.Domain == graph.Microsoft {
			b.tieAttention(x, y)
		}
	}
}

// onnxQuantised handles operators on quantised values.
func (b *dependencyFinder) onnxQuantised(x, y int) {
	n := b.n
	switch n.Op {
	case "ConvInteger":
		b.tieConvolution(x, b.in(1), y, 1, 0, 1, n.Attrs.Int("group", 1), b.in(3))
	case "QLinearConv":
		b.tieConvolution(x, b.in(3), y, 1, 0, 1, n.Attrs.Int("group", 1), b.in(4), b.in(5), b.in(8))
	case "MatMulInteger":
		b.tieMatMul(x, b.in(1), y, false, false)
		b.tieVectors(b.in(1), b.rank(b.in(1))-1, b.in(3))
	case "QLinearMatMul":
		b.tieMatMul(x, b.in(3), y, false, false)
		b.tieVectors(b.in(3), b.rank(b.in(3))-1, b.in(4), b.in(5))
	case "QGemm":
		b.tieMatMul(x, b.in(3), y, n.Attrs.Bool("transA", false), n.Attrs.Bool("transB", false))
		b.tieBroadcast(y, b.in(6))
		b.tieVectors(y, 1, b.in(4), b.in(5))
	case "QuantizeLinear", "DequantizeLinear":
		a := b.axis("axis", 1, b.rank(x))
		if n.Attrs.Int("block_size", 0) > 0 { // blocks along the axis must stay complete
			b.tieAllAxes(x, y, a)
			b.tieAllAxes(b.in(1), y, a)
			b.tieAllAxes(b.in(2), y, a)
			break
		}
		b.tieAllAxes(x, y)
		b.tieVectors(y, a, b.in(1), b.in(2))
	case "DynamicQuantizeLinear", "QLinearLeakyRelu", "QLinearSigmoid":
		b.tieAllAxes(x, y)
	case "QLinearAdd", "QLinearMul":
		b.tieBroadcast(y, x, b.in(3))
	case "QLinearConcat":
		var ids []int
		for i := 2; i < len(n.Inputs); i += 3 {
			ids = append(ids, n.Inputs[i])
		}
		b.tieConcat(y, b.axis("axis", 1, b.rank(y)), ids...)
	}
}

// onnxMoves handles operators that move elements.
func (b *dependencyFinder) onnxMoves(x, y int) {
	n := b.n
	switch n.Op {
	case "Resize", "Upsample":
		b.tieResize(x, y)
	case "Concat":
		b.tieConcat(y, b.axis("axis", 1, b.rank(y)), n.Inputs...)
	case "Split":
		a := b.axis("axis", 0, b.rank(x))
		b.tieConcat(x, a, n.Outputs...)
	case "Transpose":
		perm := n.Attrs.Ints("perm")
		for i := range b.rank(y) {
			from := b.rank(y) - 1 - i
			if i < len(perm) {
				from = perm[i]
			}
			b.tieSame(x, from, y, i)
		}
	case "Flatten", "Reshape", "Squeeze", "Unsqueeze":
		b.tieReshape(x, y)
	case "Pad":
		pads := n.Attrs.Ints("pads")
		if pads == nil {
			pads = b.ints(1)
		}
		if r := b.rank(x); len(pads) == 2*r {
			for a := range r {
				b.tiePad(x, y, a, pads[a], pads[r+a], n.Attrs.Str("mode", "constant") == "constant")
			}
		}
	case "Slice":
		b.tieSlice(x, y, b.in(4), b.ints(3))
	case "Gather":
		b.tieGather(x, y)
	}
}

// onnxReductions handles pooling, normalisation and reductions.
func (b *dependencyFinder) onnxReductions(x, y int) {
	n := b.n
	switch n.Op {
	case "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "QLinearGlobalAveragePool", "QLinearAveragePool":
		if len(n.Outputs) == 1 && !n.Attrs.Bool("channels_last", false) {
			b.tieSame(x, 0, y, 0)
			b.tieSame(x, 1, y, 1)
		}
	case "Softmax", "LogSoftmax":
		if n.Version >= 13 {
			b.tieAllAxes(x, y, b.axis("axis", -1, b.rank(x)))
		} else {
			for a := range b.axis("axis", 1, b.rank(x)) {
				b.tieSame(x, a, y, a)
			}
		}
	case "LayerNormalization", "SimplifiedLayerNormalization":
		for a := range b.axis("axis", -1, b.rank(x)) {
			b.tieSame(x, a, y, a)
		}
	case "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd":
		axes := n.Attrs.Ints("axes")
		if axes == nil {
			axes = b.ints(1)
		}
		if axes != nil {
			b.tieReduce(x, y, axes, n.Attrs.Bool("keepdims", true))
		}
	}
}

// tiePad ties an axis to its padded counterpart. Constant padding can be reduced independently.
func (b *dependencyFinder) tiePad(x, y, axis, before, after int, constant bool) {
	n := b.dim(x, axis)
	if before < 0 || after < 0 || !constant && before+after > 0 || b.dim(y, axis) != before+n+after {
		return
	}
	b.tie(x, axis, y, axis, before, n, 1, n)
	for t := range before {
		b.independent[axisIndex{y, axis, t}] = true
	}
	for t := range after {
		b.independent[axisIndex{y, axis, before + n + t}] = true
	}
}

// tieConvTranspose ties the operands of an ONNX transposed convolution.
func (b *dependencyFinder) tieConvTranspose(x, w, y, groups, bias int) {
	b.tieSame(x, 0, y, 0)
	b.tieSame(x, 1, w, 0)
	switch outs := b.dim(w, 1); {
	case groups <= 1:
		b.tieSame(w, 1, y, 1)
	case b.dim(w, 0) == groups: // one channel per group
		b.tie(w, 0, y, 1, 0, groups*outs, outs, groups)
	default:
		return
	}
	b.tieVectors(y, 1, bias)
}

// tieResize ties the axes that keep their size.
func (b *dependencyFinder) tieResize(x, y int) {
	for a, d := range b.shape(x) {
		if b.dim(y, a) == d && a < 2 {
			b.tieSame(x, a, y, a)
		}
	}
}

// tieSlice ties the axes that are copied completely and in order. The strides are a constant
// operand, for the listed axes or for all.
func (b *dependencyFinder) tieSlice(x, y, strides int, axes []int) {
	steps := slices.Repeat([]int{1}, b.rank(x))
	list := constInts(b.g, strides)
	if strides >= 0 && list == nil || b.rank(x) != b.rank(y) {
		return
	}
	for i, s := range list {
		a := i
		if i < len(axes) {
			a = (axes[i] + len(steps)) % max(len(steps), 1)
		}
		if a < len(steps) {
			steps[a] = s
		}
	}
	for a, s := range steps {
		if s == 1 && b.dim(x, a) == b.dim(y, a) {
			b.tieSame(x, a, y, a)
		}
	}
}

// tieGather ties the axes other than the gather axis.
func (b *dependencyFinder) tieGather(x, y int) {
	a, more := b.axis("axis", 0, b.rank(x)), b.rank(b.in(1))
	for k := range b.rank(x) {
		switch {
		case k < a:
			b.tieSame(x, k, y, k)
		case k > a:
			b.tieSame(x, k, y, k-1+more)
		}
	}
}

func (b *dependencyFinder) tflite(x, y int) {
	n := b.n
	switch n.Op {
	case "CONV_2D":
		w := b.in(1)
		if in := b.dim(w, 3); in > 0 {
			b.tieConvolution(x, w, y, 3, 0, 3, b.dim(x, 3)/in, b.in(2))
		}
	case "DEPTHWISE_CONV_2D":
		w, outs := b.in(1), b.dim(y, 3)
		b.tieSame(x, 0, y, 0)
		b.tieSame(w, 3, y, 3)
		b.tieVectors(y, 3, b.in(2))
		if in := b.dim(x, 3); in > 0 && outs%in == 0 {
			b.tie(x, 3, w, 3, 0, outs, outs/in, in)
		}
	case "TRANSPOSE_CONV":
		x, w := b.in(2), b.in(1)
		b.tieSame(x, 0, y, 0)
		b.tieSame(x, 3, w, 3)
		b.tieSame(w, 0, y, 3)
		b.tieVectors(y, 3, b.in(3))
	case "FULLY_CONNECTED":
		b.tieFullyConnected(x, y)
	case "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM":
		b.tieRecurrentLite(x, y)
	case "BATCH_MATMUL":
		b.tieMatMul(x, b.in(1), y, n.Attrs.Bool("adj_x", false), n.Attrs.Bool("adj_y", false))
	case "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR":
		b.tieSame(x, 0, y, 0)
		b.tieSame(x, 3, y, 3)
	case "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN":
		if axes := b.ints(1); axes != nil {
			b.tieReduce(x, y, axes, n.Attrs.Bool("keep_dims", false))
		}
	case "CONCATENATION":
		b.tieConcat(y, b.axis("axis", 0, b.rank(y)), n.Inputs...)
	case "SPLIT":
		if a := b.ints(0); len(a) == 1 {
			from := b.in(1)
			b.tieConcat(from, (a[0]+b.rank(from))%max(b.rank(from), 1), n.Outputs...)
		}
	case "SPLIT_V":
		if a := b.ints(2); len(a) == 1 {
			b.tieConcat(x, (a[0]+b.rank(x))%max(b.rank(x), 1), n.Outputs...)
		}
	case "TRANSPOSE":
		for i, from := range b.ints(1) {
			b.tieSame(x, from, y, i)
		}
	case "RESHAPE", "SQUEEZE", "EXPAND_DIMS":
		b.tieReshape(x, y)
	case "STRIDED_SLICE":
		b.tieSlice(x, y, b.in(3), nil)
	case "SLICE":
		b.tieSlice(x, y, -1, nil)
	case "SOFTMAX", "LOG_SOFTMAX":
		b.tieAllAxes(x, y, b.rank(x)-1)
	case "PAD", "PADV2", "MIRROR_PAD":
		pads := b.ints(1)
		for a := range b.rank(x) {
			if 2*a+1 < len(pads) {
				b.tiePad(x, y, a, pads[2*a], pads[2*a+1], n.Op != "MIRROR_PAD")
			}
		}
	}
}

// tieFullyConnected ties the operands of a TFLite dense layer, whose input may have more than two
// dimensions.
func (b *dependencyFinder) tieFullyConnected(x, y int) {
	w := b.in(1)
	in := b.dim(w, 1)
	last := b.rank(x) - 1
	b.tieSame(w, 0, y, b.rank(y)-1)
	b.tieVectors(w, 0, b.in(2))
	switch {
	case in == 0 || last < 0:
	case b.dim(x, last) == in:
		b.tieSame(x, last, w, 1)
		if b.rank(y) == b.rank(x) {
			b.tieAllAxes(x, y, last)
		}
	case b.dim(x, 0)*in == tensor.Elements(b.shape(x)): // flattened, channels last
		b.tie(x, last, w, 1, 0, in, 1, b.dim(x, last))
		b.tieSame(x, 0, y, 0)
	}
}
