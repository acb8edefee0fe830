package plan

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// rule returns the integer node that computes an operator between conversions, nil if none
// exists.
type rule func(*builder) *graph.Node

// rules maps the name of a floating-point operator to its rule.
var rules = map[string]rule{
	"Conv": lowerConv, "ConvTranspose": lowerConvTranspose, "MatMul": lowerMatMul, "Gemm": lowerGemm,
	"Add": binaryRule("QLinearAdd"), "Mul": binaryRule("QLinearMul"),
	"Sigmoid": unary("QLinearSigmoid"), "LeakyRelu": unary("QLinearLeakyRelu", "alpha"), "Relu": lowerRelu, "Clip": lowerClip,
	"Softmax": lowerSoftmax, "ReduceMean": lowerReduceMean,
	"AveragePool":       unary("QLinearAveragePool", "auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"),
	"GlobalAveragePool": unary("QLinearGlobalAveragePool"),
	"Concat":            lowerConcat, "Where": lowerWhere,
	"MaxPool": lowerMove, "Reshape": lowerMove, "Transpose": lowerMove, "Squeeze": lowerMove, "Unsqueeze": lowerMove, "Flatten": lowerMove, "Identity": lowerMove,
	"Slice": lowerMove, "Gather": lowerMove, "Expand": lowerMove, "Tile": lowerMove, "DepthToSpace": lowerMove, "SpaceToDepth": lowerMove,
}

// builder holds what a rule needs to know about one operator.
type builder struct {
	*lowering
	n       *graph.Node
	out     *result
	sources []*quantised
	failed  bool
}

// in returns input k as an 8-bit tensor with one scale, nil if it is something else.
func (b *builder) in(k int) *quantised {
	q := b.weights(k)
	if q != nil && !q.perTensor() {
		return nil
	}
	return q
}

// weights is in with any number of scales.
func (b *builder) weights(k int) *quantised {
	if k >= len(b.n.Inputs) {
		return nil
	}
	q := b.dequantisedFrom(b.n.Inputs[k])
	if q != nil {
		b.sources = append(b.sources, q)
	}
	return q
}

// zero returns the id of a zero point, which is added if the file omits it.
func (b *builder) zero(q *quantised) int {
	if q.zero < 0 {
		q.zero = b.constant(tensor.New(q.kind))
	}
	return q.zero
}

// ids lists tensor, scale and zero point of each input, then scale and zero point of the result.
func (b *builder) ids(qs ...*quantised) []int {
	var ids []int
	for _, q := range qs {
		ids = append(ids, q.x, q.scale, b.zero(q))
	}
	return append(ids, b.out.scale, b.zero(b.out.quantised))
}

// attrs copies the named attributes.
func (b *builder) attrs(names ...string) graph.Attrs {
	a := graph.Attrs{}
	for _, n := range names {
		if v, ok := b.n.Attrs[n]; ok {
			a[n] = v
		}
	}
	return a
}

func microsoft(name string, in []int, a graph.Attrs) *graph.Node {
	return &graph.Node{Domain: graph.Microsoft, Op: name, Version: 1, Inputs: in, Attrs: a}
}

// scalesAlong reports whether the scales of weights are per tensor or along the given axis.
func (q *quantised) scalesAlong(axis, rank int) bool {
	a := q.axis
	if a < 0 {
		a += rank
	}
	return q.perTensor() || a == axis
}

func lowerConv(b *builder) *graph.Node {
	x, w := b.in(0), b.weights(1)
	if x == nil || w == nil || !w.scalesAlong(0, b.rank(w.x)) {
		return nil
	}
	ids := b.ids(x, w)
	if bias, ok := b.bias(2, x, w, true); !ok {
		return nil
	} else if bias >= 0 {
		ids = append(ids, bias)
	}
	return &graph.Node{Op: "QLinearConv", Version: 10, Inputs: ids, Attrs: b.n.Attrs}
}

func lowerConvTranspose(b *builder) *graph.Node {
	x, w := b.in(0), b.weights(1)
	if x == nil || w == nil || !w.perTensor() && (b.n.Attrs.Int("group", 1) != 1 || !w.scalesAlong(1, b.rank(w.x))) {
		return nil
	}
	ids := b.ids(x, w)
	if bias, ok := b.bias(2, x, w, true); !ok {
		return nil
	} else if bias >= 0 {
		ids = append(ids, bias)
	}
	return &graph.Node{Domain: graph.Own, Op: "QLinearConvTranspose", Version: 1, Inputs: ids, Attrs: b.n.Attrs}
}

func lowerMatMul(b *builder) *graph.Node {
	x, w := b.in(0), b.weights(1)
	if x == nil || w == nil || !w.perTensor() && (b.rank(w.x) != 2 || !w.scalesAlong(1, 2)) {
		return nil
	}
	return &graph.Node{Op: "QLinearMatMul", Version: 10, Inputs: b.ids(x, w)}
}

// openMatMul is lowerMatMul for a result that is not quantised.
func openMatMul(b *builder) *graph.Node {
	x, w := b.in(0), b.weights(1)
	if x == nil || w == nil || !w.perTensor() && (b.rank(w.x) != 2 || !w.scalesAlong(1, 2)) {
		return nil
	}
	return microsoft("MatMulIntegerToFloat", []int{x.x, w.x, x.scale, w.scale, b.zero(x), b.zero(w)}, nil)
}

func lowerGemm(b *builder) *graph.Node {
	x, w := b.in(0), b.weights(1)
	a := b.n.Attrs
	axis := 1
	if a.Bool("transB", false) {
		axis = 0
	}
	if x == nil || w == nil || !w.scalesAlong(axis, 2) || a.Float("alpha", 1) != 1 || a.Float("beta", 1) != 1 {
		return nil
	}
	bias, ok := b.bias(2, x, w, false)
	if !ok {
		return nil
	}
	ids := b.ids(x, w)
	return microsoft("QGemm", slices.Insert(ids, 6, bias), b.attrs("transA", "transB"))
}

func (b *builder) rank(id int) int {
	if x := b.g.Values[id]; x != nil {
		return len(x.Shape)
	}
	return 0
}

// bias returns the id of input k as int32 in units of the scale of x times the scale of w, -1 if
// it is absent. ok is false if it cannot be converted.
func (b *builder) bias(k int, x, w *quantised, vector bool) (id int, ok bool) {
	if k >= len(b.n.Inputs) || b.n.Inputs[k] < 0 {
		return -1, true
	}
	id = b.n.Inputs[k]
	if q := b.conversion(id); q != nil && q.kind == tensor.Int32 && !slices.ContainsFunc(q.z, func(v int64) bool { return v != 0 }) && b.hasProductScale(q, x, w) {
		b.sources = append(b.sources, q)
		return q.x, true
	}
	t, ok := b.elements(id)
	if !ok || t != nil && (t.Type != tensor.Float32 || len(w.s) > 1 && (t.Len() != len(w.s) || len(t.Shape) > 1 && !vector && t.Shape[len(t.Shape)-1] != t.Len())) {
		return -1, false
	}
	if q := b.conversion(id); q != nil {
		b.sources = append(b.sources, q)
	}
	if t == nil || x.s == nil || w.s == nil {
		return id, b.lenient
	}
	y := tensor.New(tensor.Int32, t.Shape...)
	for i, v := range tensor.Of[float32](t) {
		// In units of the accumulator the rounding is far below a quantisation step of the
		// result.
		u := math.RoundToEven(float64(v) / (float64(x.s[0]) * float64(w.s[min(i, len(w.s)-1)])))
		if !(math.Abs(u) < 1<<31) {
			return -1, false
		}
		tensor.Of[int32](y)[i] = int32(u)
	}
	return b.constant(y), true
}

// hasProductScale reports whether a bias has the scale of the accumulator.
func (b *builder) hasProductScale(q, x, w *quantised) bool {
	if q.s == nil || x.s == nil || w.s == nil {
		return b.lenient
	}
	if len(q.s) != len(w.s) && len(q.s) != 1 {
		return false
	}
	for i, v := range w.s {
		// Tools multiply the scales in float32 or in float64 and then round.
		s := float64(q.s[min(i, len(q.s)-1)])
		if math.Abs(s-float64(x.s[0])*float64(v)) > 1e-6*s {
			return false
		}
	}
	return true
}

// binaryRule makes a rule for a binary operator.
func binaryRule(name string) rule {
	return func(b *builder) *graph.Node {
		if len(b.n.Inputs) != 2 {
			return nil
		}
		x, y := b.in(0), b.in(1)
		if x == nil || y == nil || x.kind != y.kind || x.kind != b.out.kind {
			return nil
		}
		return microsoft(name, b.ids(x, y), nil)
	}
}

// unary makes a rule for a unary operator, which keeps the named attributes.
func unary(name string, attrs ...string) rule {
	return func(b *builder) *graph.Node {
		x := b.in(0)
		if x == nil || x.kind != b.out.kind {
			return nil
		}
		return microsoft(name, b.ids(x), b.attrs(attrs...))
	}
}

// lowerRelu uses LeakyRelu with a slope of zero.
func lowerRelu(b *builder) *graph.Node {
	x := b.in(0)
	if x == nil || x.kind != b.out.kind {
		return nil
	}
	return microsoft("QLinearLeakyRelu", b.ids(x), graph.Attrs{"alpha": float32(0)})
}

func lowerSoftmax(b *builder) *graph.Node {
	x := b.in(0)
	if x == nil || x.kind != b.out.kind {
		return nil
	}
	a := b.attrs("axis")
	a["opset"] = int64(b.n.Version)
	return microsoft("QLinearSoftmax", b.ids(x), a)
}

func lowerReduceMean(b *builder) *graph.Node {
	x := b.in(0)
	if x == nil || x.kind != b.out.kind || b.n.Attrs.Bool("noop_with_empty_axes", false) {
		return nil
	}
	a := b.attrs("axes", "keepdims")
	if len(b.n.Inputs) > 1 && b.n.Inputs[1] >= 0 {
		t, ok := b.elements(b.n.Inputs[1])
		if !ok {
			return nil
		}
		if t != nil {
			axes, err := op.Ints(t)
			if err != nil || len(axes) == 0 {
				return nil
			}
			list := make([]int64, len(axes))
			for i, v := range axes {
				list[i] = int64(v)
			}
			a["axes"] = list
		}
	}
	if axes := a.Ints("axes"); b.rank(x.x) == 4 && len(axes) == 2 && b.n.Attrs.Bool("keepdims", true) && planar(axes) {
		return microsoft("QLinearGlobalAveragePool", b.ids(x), nil)
	}
	return microsoft("QLinearReduceMean", b.ids(x), a)
}

// planar reports whether axes are the two spatial axes of a four-dimensional tensor.
func planar(axes []int) bool {
	for i, v := range axes {
		if axes[i] = v; v < 0 {
			axes[i] = v + 4
		}
	}
	return min(axes[0], axes[1]) == 2 && max(axes[0], axes[1]) == 3
}

func lowerConcat(b *builder) *graph.Node {
	ids := b.ids()
	if !b.n.Attrs.Has("axis") {
		return nil
	}
	for k := range b.n.Inputs {
		x := b.in(k)
		if x == nil {
			return nil
		}
		ids = append(ids, x.x, x.scale, b.zero(x))
	}
	return microsoft("QLinearConcat", ids, b.attrs("axis"))
}

func lowerWhere(b *builder) *graph.Node {
	if len(b.n.Inputs) != 3 || b.n.Inputs[0] < 0 {
		return nil
	}
	x, y := b.in(1), b.in(2)
	if x == nil || y == nil || x.kind != y.kind || x.kind != b.out.kind {
		return nil
	}
	return microsoft("QLinearWhere", slices.Insert(b.ids(x, y), 0, b.n.Inputs[0]), nil)
}

// lowerMove lets operators that move or select elements do so on 8-bit elements, if scale and
// zero point stay the same.
func lowerMove(b *builder) *graph.Node {
	x := b.in(0)
	if x == nil || !b.sameQuant(x) || b.n.Op == "MaxPool" && b.n.Attrs.Int("storage_order", 0) != 0 {
		return nil
	}
	m := *b.n
	m.Inputs = slices.Clone(m.Inputs)
	m.Inputs[0] = x.x
	return &m
}

// sameQuant reports whether input and result have the same scale and zero point.
func (b *builder) sameQuant(x *quantised) bool {
	y := b.out.quantised
	if x.kind != y.kind {
		return false
	}
	if x.s == nil || y.s == nil {
		return b.lenient
	}
	var xz, yz int64
	if len(x.z) > 0 {
		xz = x.z[0]
	}
	if len(y.z) > 0 {
		yz = y.z[0]
	}
	return x.s[0] == y.s[0] && xz == yz
}

// lowerClip clamps quantised values.
func lowerClip(b *builder) *graph.Node {
	x := b.in(0)
	act, ok := b.g.clampOf(b.n)
	if x == nil || !ok || !b.sameQuant(x) {
		return nil
	}
	lo, hi := b.out.codes(act)
	m := b.limits(lo, hi)
	m.Inputs[0] = x.x
	return m
}

// clip returns the clamp of quantised values that follows an operator. It is nil when the result
// cannot lie outside, because saturation to the type keeps within the limits already.
func (l *lowering) clip(r *result) *graph.Node {
	lo, hi := r.codes(r.act)
	least, most := typeRange(r.kind)
	if lo == least && hi == most {
		return nil
	}
	b := builder{lowering: l, out: r}
	m := b.limits(lo, hi)
	n := l.g.Tasks[r.clamp].Node
	m.Index, m.Name, m.Function, m.Outputs = n.Index, n.Name, n.Function, []int{r.x}
	return m
}

func (b *builder) limits(lo, hi int64) *graph.Node {
	code := func(v int64) int {
		x := tensor.New(b.out.kind)
		x.Data[0] = byte(v)
		return b.constant(x)
	}
	return &graph.Node{Op: "Clip", Version: 13, Inputs: []int{-1, code(lo), code(hi)}}
}

func typeRange(t tensor.Type) (lo, hi int64) {
	if t == tensor.Int8 {
		return -128, 127
	}
	return 0, 255
}

// codes returns the limits of a clamp as QuantizeLinear would convert them. Rounding is
// monotonic, so clamping before and after it is the same.
func (q *quantised) codes(a activation.Clamp) (lo, hi int64) {
	lo, hi = typeRange(q.kind)
	if q.s == nil {
		return lo, hi
	}
	z := int64(0)
	if len(q.z) > 0 {
		z = q.z[0]
	}
	code := func(v float32) int64 {
		u := math.RoundToEven(float64(v/q.s[0])) + float64(z)
		return int64(max(float64(lo), min(float64(hi), u)))
	}
	return code(a.Min), code(a.Max)
}
