package netspec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// axis resolves the layer's axis, def if it has none.
func axis(l *Layer, rank, def int) (int, error) {
	a := def
	if l.Axis != nil {
		a = *l.Axis
	}
	if a < 0 {
		a += rank
	}
	if a < 0 || a >= rank {
		return 0, fmt.Errorf("axis %d is outside rank %d", a, rank)
	}
	return a, nil
}

// binary is an element-wise operator with two inputs of equal or broadcastable shapes.
func binary(op string) func(b *builder, l *Layer, name string, in []int) (int, error) {
	return func(b *builder, l *Layer, name string, in []int) (int, error) {
		shape, err := tensor.Broadcast(b.shape(in[0]), b.shape(in[1]))
		if err != nil {
			return 0, err
		}
		out, err := b.value(name, shape, b.after(l.Activation, 8))
		b.node(op, b.version(1, 2), graph.Attrs{"fused_activation_function": fused(l)}, in, out)
		return out, err
	}
}

func concat(b *builder, l *Layer, name string, in []int) (int, error) {
	shape := slices.Clone(b.shape(in[0]))
	a, err := axis(l, len(shape), -1)
	if err != nil {
		return 0, err
	}
	for _, id := range in[1:] {
		x := b.shape(id)
		if len(x) != len(shape) {
			return 0, fmt.Errorf("inputs have ranks %d and %d", len(shape), len(x))
		}
		for i := range x {
			if i != a && x[i] != shape[i] {
				return 0, fmt.Errorf("shapes %v and %v differ beside axis %d", shape, x, a)
			}
		}
		shape[a] += x[a]
	}
	q := b.quant(in[0]).Quant
	for _, id := range in[1:] {
		// The integer operator copies: all inputs and the output share one scale.
		if o := b.quant(id).Quant; q != nil && (o.Scale[0] != q.Scale[0] || o.Zero[0] != q.Zero[0]) {
			return 0, fmt.Errorf("inputs are quantised differently: give them the same activation")
		}
	}
	out, err := b.value(name, shape, q)
	b.node("CONCATENATION", b.version(1, 2), graph.Attrs{"axis": int64(a), "fused_activation_function": fused(l)}, in, out)
	return out, err
}

func reshape(b *builder, l *Layer, name string, in []int) (int, error) {
	total, known, open := tensor.Elements(b.shape(in[0])), 1, -1
	shape := slices.Clone(l.Shape)
	for i, d := range shape {
		switch {
		case d == -1 && open < 0:
			open = i
		case d < 1:
			return 0, fmt.Errorf("shape %v: one dimension may be -1, the others are 1 or more", l.Shape)
		default:
			known *= d
		}
	}
	if open >= 0 && total%known == 0 {
		shape[open] = total / known
		known = total
	}
	if len(shape) == 0 || known != total {
		return 0, fmt.Errorf("shape %v does not hold the %d elements of %v", l.Shape, total, b.shape(in[0]))
	}
	return b.reshape(name, in[0], false, shape...)
}

// reshape gives a value another shape. With batch the first dimension stays open, so that the
// model runs with other batch sizes.
func (b *builder) reshape(name string, in int, batch bool, shape ...int) (int, error) {
	out, err := b.value(name, shape, b.quant(in).Quant)
	to := slices.Clone(shape)
	if batch {
		to[0] = -1
	}
	b.node("RESHAPE", 1, graph.Attrs{}, []int{in, b.ints(name+"/shape", to...)}, out)
	return out, err
}

func flatten(b *builder, _ *Layer, name string, in []int) (int, error) {
	x := b.shape(in[0])
	return b.reshape(name, in[0], true, x[0], tensor.Elements(x[1:]))
}

func transpose(b *builder, l *Layer, name string, in []int) (int, error) {
	x := b.shape(in[0])
	sorted := slices.Sorted(slices.Values(l.Perm))
	for i, p := range sorted {
		if p != i {
			sorted = nil
			break
		}
	}
	if len(sorted) != len(x) {
		return 0, fmt.Errorf("perm %v does not order %d axes", l.Perm, len(x))
	}
	return b.transpose(name, in[0], l.Perm...)
}

func (b *builder) transpose(name string, in int, perm ...int) (int, error) {
	x := b.shape(in)
	shape := make([]int, len(x))
	for i, p := range perm {
		shape[i] = x[p]
	}
	out, err := b.value(name, shape, b.quant(in).Quant)
	b.node("TRANSPOSE", b.version(1, 2), graph.Attrs{}, []int{in, b.ints(name+"/perm", perm...)}, out)
	return out, err
}

func pad(b *builder, l *Layer, name string, in []int) (int, error) {
	x := slices.Clone(b.shape(in[0]))
	if len(l.Pad) != len(x) {
		return 0, fmt.Errorf("pad has %d entries for %d axes: write pad: [[0,0],[1,1],[1,1],[0,0]]", len(l.Pad), len(x))
	}
	t := tensor.New(tensor.Int32, len(x), 2)
	for i, p := range l.Pad {
		if len(p) != 2 || p[0] < 0 || p[1] < 0 {
			return 0, fmt.Errorf("pad entry %v: two numbers of 0 or more were expected", p)
		}
		v := tensor.Of[int32](t)
		v[2*i], v[2*i+1] = int32(p[0]), int32(p[1])
		x[i] += p[0] + p[1]
	}
	out, err := b.value(name, x, b.quant(in[0]).Quant)
	b.node("PAD", b.version(1, 2), graph.Attrs{}, []int{in[0], b.constant(name+"/paddings", t)}, out)
	return out, err
}

// mean averages over height and width, or over the given axis.
func mean(b *builder, l *Layer, name string, in []int) (int, error) {
	x := b.shape(in[0])
	axes := []int{1, 2}
	if l.Axis != nil || len(x) != 4 {
		a, err := axis(l, len(x), 1)
		if err != nil {
			return 0, err
		}
		axes = []int{a}
	}
	return b.mean(name, in[0], l.KeepDims, axes...)
}

func (b *builder) mean(name string, in int, keep bool, axes ...int) (int, error) {
	var shape []int
	for i, d := range b.shape(in) {
		switch {
		case !slices.Contains(axes, i):
			shape = append(shape, d)
		case keep:
			shape = append(shape, 1)
		}
	}
	out, err := b.value(name, shape, b.quant(in).Quant)
	b.node("MEAN", b.version(1, 2), graph.Attrs{"keep_dims": keep}, []int{in, b.ints(name+"/axes", axes...)}, out)
	return out, err
}

func resize(b *builder, l *Layer, name string, in []int) (int, error) {
	x, s := b.shape(in[0]), l.Stride.or(2)
	if len(x) != 4 || s[0] < 1 || s[1] < 1 || s[0] > 64 || s[1] > 64 {
		return 0, fmt.Errorf("an image and a stride (the factor, 1 to 64) were expected")
	}
	out, err := b.value(name, []int{x[0], x[1] * s[0], x[2] * s[1], x[3]}, b.quant(in[0]).Quant)
	b.node("RESIZE_BILINEAR", b.version(1, 2), graph.Attrs{"align_corners": false, "half_pixel_centers": true},
		[]int{in[0], b.ints(name+"/size", x[1]*s[0], x[2]*s[1])}, out)
	return out, err
}

// lstm is one UNIDIRECTIONAL_SEQUENCE_LSTM over [batch, time, features].
func lstm(b *builder, l *Layer, name string, in []int) (int, error) {
	x := b.shape(in[0])
	if len(x) != 3 || l.Units < 1 {
		return 0, fmt.Errorf("an input [batch, time, features] and units were expected")
	}
	q := b.act(1)
	if q != nil {
		q.Scale[0] = 1.0 / 128
	}
	inputs := make([]int, 24)
	for i := range inputs {
		inputs[i] = -1
	}
	inputs[0] = in[0]
	for i, gate := range []string{"input", "forget", "cell", "output"} {
		w, scales, err := b.gate(name+"/"+gate+"_weights", l.Units, x[2])
		if err != nil {
			return 0, err
		}
		r, _, err := b.gate(name+"/recurrent_"+gate+"_weights", l.Units, l.Units)
		if err != nil {
			return 0, err
		}
		inputs[1+i], inputs[5+i] = w, r
		inputs[12+i] = b.bias(name+"/"+gate+"_bias", l.Units, b.quant(in[0]).Quant, scales)
	}
	state := func(i int, what string, t tensor.Type, scale float32) {
		v := &graph.Value{ID: len(b.g.Values), Name: name + "/" + what, Type: t, Shape: []int{x[0], l.Units}, HasShape: true, Variable: true, Offset: -1}
		if b.int8 {
			v.Quant = &tensor.Quant{Scale: []float32{scale}, Zero: []int64{0}}
		}
		b.g.Values = append(b.g.Values, v)
		inputs[i] = v.ID
	}
	if b.int8 {
		state(18, "hidden", tensor.Int8, 1.0/128)
		state(19, "cell", tensor.Int16, 1.0/2048)
	} else {
		state(18, "hidden", tensor.Float32, 0)
		state(19, "cell", tensor.Float32, 0)
	}
	out, err := b.value(name, []int{x[0], x[1], l.Units}, q)
	b.node("UNIDIRECTIONAL_SEQUENCE_LSTM", 1, graph.Attrs{
		"fused_activation_function": "TANH", "cell_clip": float32(10), "proj_clip": float32(0), "time_major": false,
	}, inputs, out)
	return out, err
}

// gate creates LSTM weights with one scale for all channels, as the operator requires.
func (b *builder) gate(name string, units, n int) (int, []float32, error) {
	id, scales, err := b.kernel(name, []int{units, n}, 0, 2*n)
	if err == nil && scales != nil {
		scales = []float32{slices.Max(scales)}
		b.g.Values[id].Const.Quant = &tensor.Quant{Scale: scales, Zero: []int64{0}}
		b.g.Values[id].Quant = b.g.Values[id].Const.Quant
	}
	return id, scales, err
}

// layerNorm is the decomposition that converters write: mean, squared difference,
// variance, reciprocal root, scale and shift.
func layerNorm(b *builder, _ *Layer, name string, in []int) (int, error) {
	x := b.shape(in[0])
	last := len(x) - 1
	step := func(out int, err error) func(e *error) int {
		return func(e *error) int {
			if *e == nil {
				*e = err
			}
			return out
		}
	}
	var err error
	two := func(op, part string, a, c int) int {
		return step(binary(op)(b, &Layer{}, name+"/"+part, []int{a, c}))(&err)
	}
	mu := step(b.mean(name+"/mean", in[0], true, last))(&err)
	diff := two("SUB", "centred", in[0], mu)
	square := two("MUL", "square", diff, diff)
	variance := step(b.mean(name+"/variance", square, true, last))(&err)
	eps := two("ADD", "eps", variance, b.vector(name+"/epsilon", 1, 1e-3))
	inv := step(b.rsqrt(name+"/rsqrt", eps))(&err)
	norm := two("MUL", "normal", diff, inv)
	scaled := two("MUL", "scaled", norm, b.vector(name+"/gamma", x[last], 1))
	out := two("ADD", "out", scaled, b.vector(name+"/beta", x[last], 0.1))
	return out, err
}

func (b *builder) rsqrt(name string, in int) (int, error) {
	out, err := b.value(name, b.shape(in), b.act(8))
	b.node("RSQRT", b.version(1, 2), graph.Attrs{}, []int{in}, out)
	return out, err
}

// vector is a constant activation of n equal elements.
func (b *builder) vector(name string, n int, v float32) int {
	t := tensor.New(tensor.Float32, n)
	if b.int8 {
		t = tensor.New(tensor.Int8, n)
		t.Quant = &tensor.Quant{Scale: []float32{v / 64}, Zero: []int64{0}}
		for i, x := 0, tensor.Of[int8](t); i < n; i++ {
			x[i] = 64
		}
	} else {
		for i, x := 0, tensor.Of[float32](t); i < n; i++ {
			x[i] = v
		}
	}
	return b.constant(name, t)
}

// attention is multi-head self-attention over [batch, time, features]: four projections, two
// matrix multiplications per head, softmax.
func attention(b *builder, l *Layer, name string, in []int) (int, error) {
	x := b.shape(in[0])
	heads := cmp.Or(l.Heads, 1)
	if len(x) != 3 || heads < 1 || x[2]%heads != 0 {
		return 0, fmt.Errorf("an input [batch, time, features] with features a multiple of %d heads was expected, got %v", heads, x)
	}
	d := x[2] / heads
	var err error
	do := func(out int, e error) int {
		if err == nil {
			err = e
		}
		return out
	}
	split := func(what string) int {
		p := do(b.dense(&Layer{}, name+"/"+what, in[0], x[2]))
		p = do(b.reshape(name+"/"+what+"_heads", p, true, x[0], x[1], heads, d))
		return do(b.transpose(name+"/"+what+"_first", p, 0, 2, 1, 3))
	}
	q, k, v := split("query"), split("key"), split("value")
	if err != nil {
		return 0, err
	}
	scores := do(b.value(name+"/scores", []int{x[0], heads, x[1], x[1]}, b.act(16)))
	b.node("BATCH_MATMUL", b.version(1, 4), graph.Attrs{"adj_x": false, "adj_y": true}, []int{q, k}, scores)
	scaled := do(binary("MUL")(b, &Layer{}, name+"/scaled", []int{scores, b.vector(name+"/scale", 1, 1/float32(d))}))
	probs := do(unary("SOFTMAX")(b, &Layer{}, name+"/weights", []int{scaled}))
	mixed := do(b.value(name+"/mixed", []int{x[0], heads, x[1], d}, b.act(6)))
	b.node("BATCH_MATMUL", b.version(1, 4), graph.Attrs{"adj_x": false, "adj_y": false}, []int{probs, v}, mixed)
	back := do(b.transpose(name+"/mixed_last", mixed, 0, 2, 1, 3))
	joined := do(b.reshape(name+"/joined", back, true, x...))
	if err != nil {
		return 0, err
	}
	return b.dense(&Layer{}, name+"/output", joined, x[2])
}
