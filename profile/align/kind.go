package align

import (
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// kind says how the layers of a pair differ.
func (j *joiner) kind(p *Pair) Kind {
	switch {
	case len(p.A) == 0:
		return Inserted
	case len(p.B) == 0:
		return Removed
	}
	as, bs := j.a.At(p.A), j.b.At(p.B)
	a, b := leading(as), leading(bs)
	switch {
	case !equivalent(as, bs) && p.Confidence != profile.Exact && p.Confidence != profile.ByTensor:
		// The same work in one operator and in several.
		if len(bs) == 1 && len(as) > 1 {
			return Fused
		} else if len(as) == 1 && len(bs) > 1 {
			return Split
		}
		return Replaced
	case j.otherType(a, b):
		return Quantised
	case j.pruned(a, b):
		return Pruned
	case len(as) > len(bs):
		return Fused
	case len(as) < len(bs):
		return Split
	}
	return j.one(as, bs)
}

// one says how two lists of as many layers differ.
func (j *joiner) one(as, bs profile.Layers) Kind {
	kind := Same
	if !slices.EqualFunc(as, bs, func(a, b *profile.Layer) bool { return classOf(a.Op) == classOf(b.Op) }) && heavy[classOf(leading(as).Op)] {
		// Each computes along what is an operator of the other, such as padding and activation.
		as, bs = profile.Layers{leading(as)}, profile.Layers{leading(bs)}
	}
	for k := range as {
		a, b := as[k], bs[k]
		switch {
		case j.otherType(a, b):
			return Quantised
		case j.pruned(a, b):
			return Pruned
		case !j.recorded && !j.file && classOf(a.Op) == classOf(b.Op) && windowOf(a) != windowOf(b):
			return Replaced
		case !j.sameShapes(a, b):
			kind = Resized
		case kind == Same && !j.sameOptions(a, b):
			kind = Replaced
		}
	}
	return kind
}

// Leading returns the layer of some that the others belong to: a convolution and not what
// dequantises its weights. Nil for none.
func Leading(ls profile.Layers) *profile.Layer {
	if len(ls) == 0 {
		return nil
	}
	return leading(ls)
}

// leading is [Leading] of one layer or more.
func leading(ls profile.Layers) *profile.Layer {
	best := ls[0]
	for _, l := range ls {
		was, is := classOf(best.Op), classOf(l.Op)
		switch {
		case roles[was] != core && roles[is] == core, roles[was] == conversion && roles[is] != conversion, was != is && heavy[is] && !heavy[was]:
			best = l
		}
	}
	return best
}

// heavy operators lead the layers that they are with.
var heavy = map[string]bool{"conv": true, "convtranspose": true, "matmul": true, "lstm": true, "gru": true, "attention": true, "norm": true}

// equivalent reports whether the core operators of two lists are the same, in any order.
func equivalent(as, bs profile.Layers) bool {
	of := func(ls profile.Layers) (out []string) {
		for _, l := range ls {
			if c := classOf(l.Op); heavy[c] || len(ls) == 1 {
				out = append(out, c)
			}
		}
		if out == nil {
			out = []string{classOf(leading(ls).Op)}
		}
		slices.Sort(out)
		return out
	}
	a, b := of(as), of(bs)
	return slices.Equal(a, b) || slices.Equal([]string{classOf(leading(as).Op)}, []string{classOf(leading(bs).Op)}) && (len(a) == 1 || len(b) == 1)
}

// types are the element types of tensors before they were dequantised, by graph and name.
type types map[[2]string]string

func typesOf(p *profile.Profile) types {
	out := types{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if classOf(l.Op) == "quantize" && strings.HasPrefix(strings.ToLower(l.Op), "dequantize") && len(l.Inputs) > 0 && len(l.Outputs) > 0 {
			out[[2]string{l.Graph, l.Outputs[0].Name}] = l.Inputs[0].DType
		}
	}
	return out
}

// of is the element type of an operand of a layer.
func (ts types) of(l *profile.Layer, t *profile.Tensor) string {
	if q, ok := ts[[2]string{l.Graph, t.Name}]; ok && !t.Constant {
		return q
	}
	return t.DType
}

// multiplied is the element type of what a layer multiplies: that of the weights, else that of the
// first operand.
func (ts types) multiplied(l *profile.Layer) string {
	if l.Computes != "" {
		return l.Computes
	}
	for _, constant := range []bool{true, false} {
		for k := range l.Inputs {
			t := &l.Inputs[k]
			if t.Constant == constant && !t.Absent && t.DType != "" && (!constant || len(t.Shape) > 1) {
				return ts.of(l, t)
			}
		}
	}
	return ""
}

// operand is the element type of the first operand that is not constant.
func (ts types) operand(l *profile.Layer) string {
	for k := range l.Inputs {
		if t := &l.Inputs[k]; !t.Constant && !t.Absent {
			return ts.of(l, t)
		}
	}
	return ""
}

// weights is the element type of the operand that a convolution or product multiplies with.
func (ts types) weights(l *profile.Layer) string {
	if l.Weights != nil {
		return l.Weights.DType
	}
	if c := classOf(l.Op); (c == "conv" || c == "matmul") && len(l.Inputs) > 1 {
		return ts.of(l, &l.Inputs[1])
	}
	return ""
}

// otherType reports whether layers compute in different element types, or one of them with
// quantised weights.
func (j *joiner) otherType(a, b *profile.Layer) bool {
	for _, f := range []func(types, *profile.Layer) string{types.multiplied, types.operand, types.weights} {
		x, y := f(j.types[0], a), f(j.types[1], b)
		if x != y && x != "" && y != "" && !interchangeable(x, y) {
			return true
		}
	}
	return false
}

// interchangeable reports whether two types are no other precision: int8 and uint8 differ by a zero
// point, and formats have other integers for sizes and positions.
func interchangeable(x, y string) bool {
	x, y = strings.TrimPrefix(x, "u"), strings.TrimPrefix(y, "u")
	return integer(x) && integer(y) && (x == y || wide[x] && wide[y])
}

var wide = map[string]bool{"int32": true, "int64": true}

// recorded reports whether another tool wrote a profile: it leaves out options and operands.
func recorded(p *profile.Profile) bool { return p.Target.Kind == profile.TargetImport }

// integer reports whether a type is one of quantised numbers.
func integer(t string) bool { return strings.HasPrefix(t, "int") || strings.HasPrefix(t, "uint") }

// morePruned is by how much the part of zeros in pruned weights is larger.
const morePruned = 0.05

// pruned reports whether one of two layers has fewer channels or more zeros than the other.
func (j *joiner) pruned(a, b *profile.Layer) bool {
	if j.file {
		return false
	}
	x, y := zeros(a), zeros(b)
	if d := x - y; d > morePruned || -d > morePruned {
		return true
	}
	if windowOf(a) != windowOf(b) {
		return false
	}
	if v, w := weightShape(a), weightShape(b); len(v) > 1 && len(v) == len(w) {
		return product(v) != product(w)
	}
	return false
}

func product(ds []int64) int64 {
	n := int64(1)
	for _, d := range ds {
		n *= max(d, 0)
	}
	return n
}

func zeros(l *profile.Layer) float64 {
	if l.Sparsity != nil && l.Sparsity.Weights != nil {
		return *l.Sparsity.Weights
	}
	return 0
}

// sameShapes reports whether operands and results have the same shapes: in one format in order,
// else apart from layout. Shapes that are not known are not different.
func (j *joiner) sameShapes(a, b *profile.Layer) bool {
	unknown := len(a.Outputs) == 0 || len(b.Outputs) == 0
	if lite(a) == lite(b) {
		return (unknown || slices.EqualFunc(a.Outputs, b.Outputs, sameShape)) && (j.recorded || equalWhere(a.Inputs, b.Inputs))
	}
	if unknown {
		return true
	}
	v, w := a.Outputs[0].Shape, b.Outputs[0].Shape
	return v == nil || w == nil || slices.Equal(sized(v), sized(w))
}

// equalWhere compares the shapes of operands that both layers have: a bias may be folded.
func equalWhere(a, b []profile.Tensor) bool {
	for k := range min(len(a), len(b)) {
		if !sameShape(a[k], b[k]) {
			return false
		}
	}
	return true
}

func sameShape(a, b profile.Tensor) bool {
	return a.Absent || b.Absent || a.Shape == nil || b.Shape == nil || slices.Equal(a.Shape, b.Shape)
}

// sized lists the dimensions that are not 1, ascending.
func sized(shape []int64) []int64 {
	out := slices.DeleteFunc(slices.Clone(shape), func(d int64) bool { return d == 1 })
	slices.Sort(out)
	return out
}

// sameOptions reports whether layers agree in operator and options: in one format in all of them,
// else in the window. Profiles of other tools do not have them.
func (j *joiner) sameOptions(a, b *profile.Layer) bool {
	if j.recorded || j.file {
		return classOf(a.Op) == classOf(b.Op)
	}
	if lite(a) != lite(b) || a.Op != b.Op || a.Domain != b.Domain {
		return windowOf(a) == windowOf(b) && classOf(a.Op) == classOf(b.Op)
	}
	return len(OtherOptions(a, b))+len(OtherOptions(b, a)) == 0
}

// OtherOptions lists the options of a layer that have another value in another one of the same
// operator. What a file leaves out has its default, if the option has one; engines add others.
func OtherOptions(a, b *profile.Layer) (out []profile.Option) {
	for _, o := range a.Options {
		v, ok := b.Option(o.Key), true
		if v == "" {
			v, ok = defaultOf(b, o.Key)
		}
		if ok && !number[o.Key] && axisOf(a, o.Key, o.Value) != axisOf(b, o.Key, v) {
			out = append(out, o)
		}
	}
	return out
}

// defaults are the defaults of options, by operator where these differ: empty where profiles leave
// the default out.
var defaults = func() map[string]string {
	out := map[string]string{
		"epsilon": "1e-05", "Pad mode": "constant", "Resize mode": "nearest", "Upsample mode": "nearest", "DepthToSpace mode": "dcr",
		"axis": "0", "Softmax axis": "-1", "LogSoftmax axis": "-1", "Hardmax axis": "-1", "LayerNormalization axis": "-1", "Flatten axis": "1",
		"DequantizeLinear axis": "1", "QuantizeLinear axis": "1",
	}
	for key := range strings.FieldsSeq("stride dilation pads auto_pad group transA transB direction alpha beta gamma min max count_include_pad ceil_mode keepdims " +
		"keep_dims adj_x adj_y align_corners half_pixel_centers batch_dims activation time_major") {
		out[key] = ""
	}
	return out
}()

// defaultOf is the value of an option that a file leaves out, false if unknown.
func defaultOf(l *profile.Layer, key string) (string, bool) {
	switch {
	case key == "axis" && strings.HasSuffix(l.Op, "max") && l.Op != "ArgMax" && l.Version != nil && *l.Version < 13:
		return "1", true // the axes behind it are one
	case key == "kernel": // that of the weights
		k := strings.Join(kernelOf(l, nil), "x")
		return k, k != ""
	}
	v, ok := defaults[l.Op+" "+key]
	if !ok {
		v, ok = defaults[key]
	}
	return v, ok
}

// axisOf is the value of an option, that of an axis counted from the first one.
func axisOf(l *profile.Layer, key, value string) string {
	n, err := strconv.Atoi(value)
	if key != "axis" || err != nil || n >= 0 || len(l.Outputs) == 0 || l.Outputs[0].Shape == nil {
		return value
	}
	return strconv.Itoa(n + len(l.Outputs[0].Shape))
}
