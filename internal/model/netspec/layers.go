package netspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// layerBuilder builds one kind of layer from its inputs.
type layerBuilder struct {
	inputs int // number of inputs, -1 for two or more
	make   func(b *builder, l *Layer, name string, in []int) (int, error)
}

var makers map[string]layerBuilder

func init() {
	makers = map[string]layerBuilder{
		"conv": {1, conv}, "depthwise": {1, depthwise}, "transpose_conv": {1, transposeConv}, "dense": {1, dense},
		"avg_pool": {1, pool("AVERAGE_POOL_2D")}, "max_pool": {1, pool("MAX_POOL_2D")}, "mean": {1, mean},
		"add": {2, binary("ADD")}, "sub": {2, binary("SUB")}, "mul": {2, binary("MUL")}, "concat": {-1, concat},
		"reshape": {1, reshape}, "flatten": {1, flatten}, "transpose": {1, transpose}, "pad": {1, pad},
		"softmax": {1, unary("SOFTMAX")}, "logistic": {1, unary("LOGISTIC")}, "tanh": {1, unary("TANH")},
		"relu": {1, unary("RELU")}, "relu6": {1, unary("RELU6")}, "leaky_relu": {1, unary("LEAKY_RELU")}, "hard_swish": {1, unary("HARD_SWISH")},
		"lstm": {1, lstm}, "layer_norm": {1, layerNorm}, "attention": {1, attention}, "resize": {1, resize},
	}
}

// Ops lists the kinds of layers.
func Ops() []string { return slices.Sorted(maps.Keys(makers)) }

// layers builds a list of layers. prev is the value before it, block the value that "block"
// refers to.
func (b *builder) layers(ls []Layer, prev, block int) (int, error) {
	for i := range ls {
		l := &ls[i]
		if l.Repeat != 0 || len(l.Layers) > 0 {
			var err error
			if prev, err = b.repeat(l, prev); err != nil {
				return 0, err
			}
			continue
		}
		if b.count++; b.count > maxLayers {
			return 0, fmt.Errorf("line %d: more than %d layers", l.line, maxLayers)
		}
		out, err := b.layer(l, prev, block)
		if err != nil {
			return 0, fmt.Errorf("line %d: %s: %w", l.line, l.Op, err)
		}
		prev = out
	}
	return prev, nil
}

func (b *builder) repeat(l *Layer, prev int) (int, error) {
	if l.Op != "" || len(l.Layers) == 0 {
		return 0, fmt.Errorf("line %d: a block has layers and no op", l.line)
	}
	n := cmp.Or(l.Repeat, 1)
	if n < 1 || n > maxRepeat {
		return 0, fmt.Errorf("line %d: repeat %d: use 1 to %d", l.line, n, maxRepeat)
	}
	for range n {
		// Names inside a block are local to it.
		outer := maps.Clone(b.names)
		out, err := b.layers(l.Layers, prev, prev)
		if err != nil {
			return 0, err
		}
		b.names = outer
		prev = out
	}
	if l.Name != "" {
		b.names[l.Name] = prev
	}
	return prev, nil
}

func (b *builder) layer(l *Layer, prev, block int) (int, error) {
	m, ok := makers[l.Op]
	if !ok {
		return 0, fmt.Errorf("no such layer: use one of %s", strings.Join(Ops(), ", "))
	}
	var in []int
	for _, name := range l.From {
		switch id, ok := b.names[name]; {
		case name == "prev":
			in = append(in, prev)
		case name == "block":
			in = append(in, block)
		case ok:
			in = append(in, id)
		default:
			return 0, fmt.Errorf("no layer named %q before this one", name)
		}
	}
	if len(in) == 0 {
		in = []int{prev}
	}
	if m.inputs >= 0 && len(in) != m.inputs || m.inputs < 0 && len(in) < 2 {
		return 0, fmt.Errorf("%d inputs: name them with from: [a, b]", len(in))
	}
	switch l.Activation {
	case "", "none", "relu", "relu6", "relu_n1_to_1":
	default:
		return 0, fmt.Errorf("activation %q: use none, relu, relu6 or relu_n1_to_1, or a layer of its own", l.Activation)
	}
	out, err := m.make(b, l, cmp.Or(l.Name, l.Op), in)
	if err == nil && l.Name != "" {
		b.names[l.Name] = out
	}
	return out, err
}

func fused(l *Layer) string {
	if l.Activation == "" {
		return "NONE"
	}
	return strings.ToUpper(l.Activation)
}

func padding(l *Layer) (string, error) {
	switch p := strings.ToUpper(cmp.Or(l.Padding, "same")); p {
	case "SAME", "VALID":
		return p, nil
	}
	return "", fmt.Errorf("padding %q: use same or valid", l.Padding)
}

// slide is the output size of a sliding window.
func slide(in, k, stride, dil int, pad string) int {
	if pad == "SAME" {
		return (in + stride - 1) / stride
	}
	return (in + stride - (k-1)*dil - 1) / stride
}

// window reads the geometry of a layer over an image.
func (b *builder) window(l *Layer, in int) (x []int, k, s, d Pair, pad string, oh, ow int, err error) {
	x = b.shape(in)
	if len(x) != 4 {
		return x, k, s, d, "", 0, 0, fmt.Errorf("input has shape %v, an image [N,H,W,C] was expected", x)
	}
	k, s, d = l.Kernel.or(1), l.Stride.or(1), l.Dilation.or(1)
	for i := range 2 {
		if k[i] < 1 || s[i] < 1 || d[i] < 1 {
			return x, k, s, d, "", 0, 0, fmt.Errorf("kernel, stride and dilation are 1 or more")
		}
	}
	if pad, err = padding(l); err != nil {
		return x, k, s, d, pad, 0, 0, err
	}
	oh, ow = slide(x[1], k[0], s[0], d[0], pad), slide(x[2], k[1], s[1], d[1], pad)
	if oh < 1 || ow < 1 {
		err = fmt.Errorf("kernel %v does not fit into %dx%d", k, x[1], x[2])
	}
	return x, k, s, d, pad, oh, ow, err
}

func (b *builder) quant(id int) *graph.Value { return b.g.Values[id] }

func conv(b *builder, l *Layer, name string, in []int) (int, error) {
	x, k, s, d, pad, oh, ow, err := b.window(l, in[0])
	if err != nil {
		return 0, err
	}
	if l.Filters < 1 {
		return 0, fmt.Errorf("filters is missing")
	}
	w, scales, err := b.kernel(name+"/weights", []int{l.Filters, k[0], k[1], x[3]}, 0, k[0]*k[1]*x[3])
	if err != nil {
		return 0, err
	}
	bias := b.bias(name+"/bias", l.Filters, b.quant(in[0]).Quant, scales)
	out, err := b.value(name, []int{x[0], oh, ow, l.Filters}, b.after(l.Activation, 6))
	b.node("CONV_2D", b.version(1, 3), graph.Attrs{
		"padding": pad, "stride_h": int64(s[0]), "stride_w": int64(s[1]), "fused_activation_function": fused(l),
		"dilation_h_factor": int64(d[0]), "dilation_w_factor": int64(d[1]),
	}, []int{in[0], w, bias}, out)
	return out, err
}

func depthwise(b *builder, l *Layer, name string, in []int) (int, error) {
	x, k, s, d, pad, oh, ow, err := b.window(l, in[0])
	if err != nil {
		return 0, err
	}
	mult := cmp.Or(l.Multiplier, 1)
	if mult < 1 || mult > 1<<16 {
		return 0, fmt.Errorf("multiplier %d", mult)
	}
	oc := x[3] * mult
	w, scales, err := b.kernel(name+"/weights", []int{1, k[0], k[1], oc}, 3, k[0]*k[1])
	if err != nil {
		return 0, err
	}
	bias := b.bias(name+"/bias", oc, b.quant(in[0]).Quant, scales)
	out, err := b.value(name, []int{x[0], oh, ow, oc}, b.after(l.Activation, 6))
	b.node("DEPTHWISE_CONV_2D", b.version(1, 3), graph.Attrs{
		"padding": pad, "stride_h": int64(s[0]), "stride_w": int64(s[1]), "fused_activation_function": fused(l),
		"dilation_h_factor": int64(d[0]), "dilation_w_factor": int64(d[1]), "depth_multiplier": int64(mult),
	}, []int{in[0], w, bias}, out)
	return out, err
}

func transposeConv(b *builder, l *Layer, name string, in []int) (int, error) {
	x, k, s, _, pad, _, _, err := b.window(l, in[0])
	if err != nil && !strings.Contains(err.Error(), "does not fit") {
		return 0, err
	}
	if l.Filters < 1 {
		return 0, fmt.Errorf("filters is missing")
	}
	oh, ow := x[1]*s[0], x[2]*s[1]
	if pad == "VALID" {
		oh, ow = (x[1]-1)*s[0]+k[0], (x[2]-1)*s[1]+k[1]
	}
	w, scales, err := b.kernel(name+"/weights", []int{l.Filters, k[0], k[1], x[3]}, 0, k[0]*k[1]*x[3]/(s[0]*s[1]))
	if err != nil {
		return 0, err
	}
	shape := []int{x[0], oh, ow, l.Filters}
	out, err := b.value(name, shape, b.after(l.Activation, 6))
	if err != nil {
		return 0, err
	}
	b.node("TRANSPOSE_CONV", b.version(3, 3), graph.Attrs{
		"padding": pad, "stride_h": int64(s[0]), "stride_w": int64(s[1]), "fused_activation_function": fused(l),
	}, []int{b.ints(name+"/shape", shape...), w, in[0], b.bias(name+"/bias", l.Filters, b.quant(in[0]).Quant, scales)}, out)
	return out, nil
}

func dense(b *builder, l *Layer, name string, in []int) (int, error) {
	if l.Units < 1 {
		return 0, fmt.Errorf("units is missing")
	}
	return b.dense(l, name, in[0], l.Units)
}

// dense keeps leading dimensions.
func (b *builder) dense(l *Layer, name string, in, units int) (int, error) {
	x := b.shape(in)
	n := x[len(x)-1]
	w, scales, err := b.kernel(name+"/weights", []int{units, n}, 0, n)
	if err != nil {
		return 0, err
	}
	inputs := []int{in, w, -1}
	if l.Bias == nil || *l.Bias {
		inputs[2] = b.bias(name+"/bias", units, b.quant(in).Quant, scales)
	}
	shape := append(slices.Clone(x[:len(x)-1]), units)
	out, err := b.value(name, shape, b.after(l.Activation, 6))
	b.node("FULLY_CONNECTED", b.version(1, 4), graph.Attrs{
		"fused_activation_function": fused(l), "weights_format": "DEFAULT", "keep_num_dims": len(x) != 2,
	}, inputs, out)
	return out, err
}

func pool(op string) func(b *builder, l *Layer, name string, in []int) (int, error) {
	return func(b *builder, l *Layer, name string, in []int) (int, error) {
		// Without a kernel the whole image is pooled; the default stride is the kernel size.
		p := *l
		if x := b.shape(in[0]); len(x) == 4 && p.Kernel == (Pair{}) {
			p.Kernel = Pair{x[1], x[2]}
		}
		if p.Stride == (Pair{}) {
			p.Stride = p.Kernel
		}
		p.Padding = cmp.Or(p.Padding, "valid")
		x, k, s, _, pad, oh, ow, err := b.window(&p, in[0])
		if err != nil {
			return 0, err
		}
		out, err := b.value(name, []int{x[0], oh, ow, x[3]}, b.quant(in[0]).Quant)
		b.node(op, b.version(1, 2), graph.Attrs{
			"padding": pad, "stride_h": int64(s[0]), "stride_w": int64(s[1]), "filter_height": int64(k[0]), "filter_width": int64(k[1]),
			"fused_activation_function": fused(l),
		}, in, out)
		return out, err
	}
}

func unary(op string) func(b *builder, l *Layer, name string, in []int) (int, error) {
	return func(b *builder, l *Layer, name string, in []int) (int, error) {
		v := b.quant(in[0])
		q, attrs := v.Quant, graph.Attrs{}
		switch op {
		case "SOFTMAX":
			q, attrs["beta"] = b.unit(), float32(1)
		case "LOGISTIC":
			q = b.unit()
		case "TANH":
			if q = b.unit(); q != nil {
				q.Scale[0], q.Zero[0] = 1.0/128, 0
			}
		case "RELU", "RELU6":
			q = b.after(strings.ToLower(op), 6)
		case "LEAKY_RELU":
			attrs["alpha"] = cmp.Or(l.Alpha, 0.1)
		}
		out, err := b.value(name, v.Shape, q)
		b.node(op, b.version(1, 2), attrs, in, out)
		return out, err
	}
}
