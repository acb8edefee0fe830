package rewrite

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// elementwise are operators each element of whose output depends on the elements of the inputs at its place,
// which may be spread to it.
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

// find lists the bonds of a node. An axis that none touches must keep its lanes.
func (b *bonds) find() {
	n, x, y := b.n, b.in(0), b.out(0)
	switch {
	case elementwise[n.Op]:
		for _, y := range n.Outputs { // Dropout has a mask
			if y >= 0 {
				b.spread(y, n.Inputs...)
			}
		}
	case n.Domain == graph.TFLite:
		b.lite(x, y)
	default:
		b.onnx(x, y)
	}
}

// onnx lists the bonds of ONNX's operators.
func (b *bonds) onnx(x, y int) {
	b.onnxWeights(x, y)
	b.onnxQuantised(x, y)
	b.onnxMoves(x, y)
	b.onnxReductions(x, y)
}

// onnxWeights are operators with weights.
func (b *bonds) onnxWeights(x, y int) {
	n := b.n
	groups := n.Attrs.Int("group", 1)
	switch n.Op {
	case "Conv", "FusedConv":
		b.convolution(x, b.in(1), y, 1, 0, 1, groups, b.in(2))
		b.spread(y, b.in(3))
	case "ConvTranspose":
		b.transposed(x, b.in(1), y, groups, b.in(2))
	case "MatMul", "FusedMatMul":
		b.product(x, b.in(1), y, n.Attrs.Bool("transA", false), n.Attrs.Bool("transB", false))
	case "Gemm", "FusedGemm":
		b.product(x, b.in(1), y, n.Attrs.Bool("transA", false), n.Attrs.Bool("transB", false))
		b.spread(y, b.in(2))
	case "BatchNormalization":
		if len(n.Outputs) == 1 {
			b.along(x, y)
			for i := 1; i < 5; i++ {
				b.vector(b.in(i), y, 1)
			}
		}
	case "InstanceNormalization":
		b.same(x, 0, y, 0)
		b.same(x, 1, y, 1)
		b.vector(b.in(1), y, 1)
		b.vector(b.in(2), y, 1)
	case "LSTM", "GRU", "RNN", "DynamicQuantizeLSTM":
		b.recurrent(x)
	case "Attention", "QAttention", "MultiHeadAttention":
		if n.Domain == graph.Microsoft {
			b.attention(x, y)
		}
	}
}

// onnxQuantised are operators on quantised numbers.
func (b *bonds) onnxQuantised(x, y int) {
	n := b.n
	switch n.Op {
	case "ConvInteger":
		b.convolution(x, b.in(1), y, 1, 0, 1, n.Attrs.Int("group", 1), b.in(3))
	case "QLinearConv":
		b.convolution(x, b.in(3), y, 1, 0, 1, n.Attrs.Int("group", 1), b.in(4), b.in(5), b.in(8))
	case "MatMulInteger":
		b.product(x, b.in(1), y, false, false)
		b.vector(b.in(3), b.in(1), b.rank(b.in(1))-1)
	case "QLinearMatMul":
		b.product(x, b.in(3), y, false, false)
		b.vector(b.in(4), b.in(3), b.rank(b.in(3))-1)
		b.vector(b.in(5), b.in(3), b.rank(b.in(3))-1)
	case "QGemm":
		b.product(x, b.in(3), y, n.Attrs.Bool("transA", false), n.Attrs.Bool("transB", false))
		b.spread(y, b.in(6))
		b.vector(b.in(4), y, 1)
		b.vector(b.in(5), y, 1)
	case "QuantizeLinear", "DequantizeLinear":
		a := b.axis("axis", 1, b.rank(x))
		if n.Attrs.Int("block_size", 0) > 0 { // blocks along the axis stay whole
			b.along(x, y, a)
			b.along(b.in(1), y, a)
			if z := b.in(2); z >= 0 {
				b.along(z, y, a)
			}
			break
		}
		b.along(x, y)
		b.vector(b.in(1), y, a)
		b.vector(b.in(2), y, a)
	case "DynamicQuantizeLinear":
		b.along(x, y)
	case "QLinearAdd", "QLinearMul":
		b.spread(y, x, b.in(3))
	case "QLinearLeakyRelu", "QLinearSigmoid":
		b.along(x, y)
	case "QLinearConcat":
		var ids []int
		for i := 2; i < len(n.Inputs); i += 3 {
			ids = append(ids, n.Inputs[i])
		}
		b.concat(y, b.axis("axis", 1, b.rank(y)), ids...)
	}
}

// onnxMoves are operators that move elements.
func (b *bonds) onnxMoves(x, y int) {
	n := b.n
	switch n.Op {
	case "Resize", "Upsample":
		b.resized(x, y)
	case "Concat":
		b.concat(y, b.axis("axis", 1, b.rank(y)), n.Inputs...)
	case "Split":
		a := b.axis("axis", 0, b.rank(x))
		b.concat(x, a, n.Outputs...)
	case "Transpose":
		perm := n.Attrs.Ints("perm")
		for i := range b.rank(y) {
			from := b.rank(y) - 1 - i
			if i < len(perm) {
				from = perm[i]
			}
			b.same(x, from, y, i)
		}
	case "Flatten", "Reshape", "Squeeze", "Unsqueeze":
		b.reshape(x, y)
	case "Pad":
		pads := n.Attrs.Ints("pads")
		if pads == nil {
			pads = b.ints(1)
		}
		if r := b.rank(x); len(pads) == 2*r {
			for a := range r {
				b.padded(x, y, a, pads[a], pads[r+a], n.Attrs.Str("mode", "constant") == "constant")
			}
		}
	case "Slice":
		b.sliced(x, y, b.in(4), b.ints(3))
	case "Gather":
		b.gathered(x, y)
	}
}

// onnxReductions are operators that make one number of many.
func (b *bonds) onnxReductions(x, y int) {
	n := b.n
	switch n.Op {
	case "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "QLinearGlobalAveragePool", "QLinearAveragePool":
		if len(n.Outputs) == 1 && !n.Attrs.Bool("channels_last", false) {
			b.same(x, 0, y, 0)
			b.same(x, 1, y, 1)
		}
	case "Softmax", "LogSoftmax":
		if n.Version >= 13 {
			b.along(x, y, b.axis("axis", -1, b.rank(x)))
		} else {
			for a := range b.axis("axis", 1, b.rank(x)) {
				b.same(x, a, y, a)
			}
		}
	case "LayerNormalization", "SimplifiedLayerNormalization":
		for a := range b.axis("axis", -1, b.rank(x)) {
			b.same(x, a, y, a)
		}
	case "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd":
		axes := n.Attrs.Ints("axes")
		if axes == nil {
			axes = b.ints(1)
		}
		if axes != nil {
			b.reduce(x, y, axes, n.Attrs.Bool("keepdims", true))
		}
	}
}

// padded ties an axis to the one that has more before and after. What is added as a constant may be less.
func (b *bonds) padded(x, y, axis, before, after int, constant bool) {
	n := b.dim(x, axis)
	if before < 0 || after < 0 || !constant && before+after > 0 || b.dim(y, axis) != before+n+after {
		return
	}
	b.join(x, axis, y, axis, before, n, 1, n)
	for t := range before {
		b.free[lane{y, axis, t}] = true
	}
	for t := range after {
		b.free[lane{y, axis, before + n + t}] = true
	}
}

// transposed ties what a transposed convolution of ONNX takes and makes.
func (b *bonds) transposed(x, w, y, groups, bias int) {
	b.same(x, 0, y, 0)
	b.same(x, 1, w, 0)
	switch outs := b.dim(w, 1); {
	case groups <= 1:
		b.same(w, 1, y, 1)
	case b.dim(w, 0) == groups: // a channel each
		b.join(w, 0, y, 1, 0, groups*outs, outs, groups)
	default:
		return
	}
	b.vector(bias, y, 1)
}

// resized ties the axes that keep their size.
func (b *bonds) resized(x, y int) {
	for a, d := range b.shape(x) {
		if b.dim(y, a) == d && a < 2 {
			b.same(x, a, y, a)
		}
	}
}

// sliced ties the axes of which everything is taken, in order. The strides stand in a constant operand, for the axes
// of a list or for all.
func (b *bonds) sliced(x, y, strides int, axes []int) {
	steps := make([]int, b.rank(x))
	for i := range steps {
		steps[i] = 1
	}
	if strides >= 0 {
		c := b.g.Values[strides].Const
		if !c.Known() || !c.Type.IsInteger() {
			return
		}
		list, err := tensor.All[int64](c)
		if err != nil {
			return
		}
		for i, s := range list {
			a := i
			if i < len(axes) {
				a = (axes[i] + len(steps)) % max(len(steps), 1)
			}
			if a < len(steps) {
				steps[a] = int(s)
			}
		}
	}
	if b.rank(x) != b.rank(y) {
		return
	}
	for a, s := range steps {
		if s == 1 && b.dim(x, a) == b.dim(y, a) {
			b.same(x, a, y, a)
		}
	}
}

// gathered ties the axes along which nothing is fetched.
func (b *bonds) gathered(x, y int) {
	a, more := b.axis("axis", 0, b.rank(x)), b.rank(b.in(1))
	for k := range b.rank(x) {
		switch {
		case k < a:
			b.same(x, k, y, k)
		case k > a:
			b.same(x, k, y, k-1+more)
		}
	}
}

func (b *bonds) lite(x, y int) {
	n := b.n
	switch n.Op {
	case "CONV_2D":
		w := b.in(1)
		if in := b.dim(w, 3); in > 0 {
			b.convolution(x, w, y, 3, 0, 3, b.dim(x, 3)/in, b.in(2))
		}
	case "DEPTHWISE_CONV_2D":
		w, outs := b.in(1), b.dim(y, 3)
		b.same(x, 0, y, 0)
		b.same(w, 3, y, 3)
		b.vector(b.in(2), y, 3)
		if in := b.dim(x, 3); in > 0 && outs%in == 0 {
			b.join(x, 3, w, 3, 0, outs, outs/in, in)
		}
	case "TRANSPOSE_CONV":
		x, w := b.in(2), b.in(1)
		b.same(x, 0, y, 0)
		b.same(x, 3, w, 3)
		b.same(w, 0, y, 3)
		b.vector(b.in(3), y, 3)
	case "FULLY_CONNECTED":
		b.dense(x, y)
	case "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM":
		b.recurrentLite(x, y)
	case "BATCH_MATMUL":
		b.product(x, b.in(1), y, n.Attrs.Bool("adj_x", false), n.Attrs.Bool("adj_y", false))
	case "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR":
		b.same(x, 0, y, 0)
		b.same(x, 3, y, 3)
	case "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN":
		if axes := b.ints(1); axes != nil {
			b.reduce(x, y, axes, n.Attrs.Bool("keep_dims", false))
		}
	case "CONCATENATION":
		b.concat(y, b.axis("axis", 0, b.rank(y)), n.Inputs...)
	case "SPLIT":
		if a := b.ints(0); len(a) == 1 {
			from := b.in(1)
			b.concat(from, (a[0]+b.rank(from))%max(b.rank(from), 1), n.Outputs...)
		}
	case "SPLIT_V":
		if a := b.ints(2); len(a) == 1 {
			b.concat(x, (a[0]+b.rank(x))%max(b.rank(x), 1), n.Outputs...)
		}
	case "TRANSPOSE":
		for i, from := range b.ints(1) {
			b.same(x, from, y, i)
		}
	case "RESHAPE", "SQUEEZE", "EXPAND_DIMS":
		b.reshape(x, y)
	case "STRIDED_SLICE":
		b.sliced(x, y, b.in(3), nil)
	case "SLICE":
		b.sliced(x, y, -1, nil)
	case "SOFTMAX", "LOG_SOFTMAX":
		b.along(x, y, b.rank(x)-1)
	case "PAD", "PADV2", "MIRROR_PAD":
		pads := b.ints(1)
		for a := range b.rank(x) {
			if 2*a+1 < len(pads) {
				b.padded(x, y, a, pads[2*a], pads[2*a+1], n.Op != "MIRROR_PAD")
			}
		}
	}
}

// dense ties what a dense layer of TFLite takes and makes: its input may have more dimensions than two.
func (b *bonds) dense(x, y int) {
	w := b.in(1)
	in := b.dim(w, 1)
	last := b.rank(x) - 1
	b.same(w, 0, y, b.rank(y)-1)
	b.vector(b.in(2), w, 0)
	switch {
	case in == 0 || last < 0:
	case b.dim(x, last) == in:
		b.same(x, last, w, 1)
		if b.rank(y) == b.rank(x) {
			b.along(x, y, last)
		}
	case b.dim(x, 0)*in == product(b.shape(x)): // flattened, channels last
		b.join(x, last, w, 1, 0, in, 1, b.dim(x, last))
		b.same(x, 0, y, 0)
	}
}

func product(s []int) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}
