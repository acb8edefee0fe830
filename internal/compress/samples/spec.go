package samples

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// spec says what an input takes.
type spec struct {
	value *graph.Value
	typ   tensor.Type
	// shape is that of the input for a run, with the open dimensions as the data has them.
	shape []int
	// batch is how many samples a run takes: more than 1 where the model's batch is fixed.
	batch int
	// quant makes codes of real values; nil where the input has none.
	quant *tensor.Quant
	// lite says that the model is of TFLite, which has channels last; frame how a picture is laid out.
	lite  bool
	frame *frame
}

// newSpec is what input k takes, but for the shape.
func newSpec(m *graph.Model, k int) (*spec, error) {
	g := m.Main()
	v := g.Values[g.Inputs[k]]
	s := &spec{value: v, typ: v.Type, batch: 1, quant: v.Quant, lite: m.Format == "tflite"}
	if s.typ == tensor.Invalid {
		s.typ = tensor.Float32
	}
	if !s.typ.IsNumber() || s.typ.Bits() < 8 {
		return nil, fmt.Errorf("input %q takes elements of the type %v, for which no data is read", v.Name, v.Type)
	}
	if s.quant == nil && s.typ.IsInteger() {
		s.quant = coded(g, v.ID)
	}
	if s.quant != nil && (!s.typ.IsInteger() || len(s.quant.Scale) == 0 || s.quant.Scale[0] == 0) {
		s.quant = nil
	}
	return s, nil
}

// coded finds scale and zero point of an input that an operator of ONNX takes as codes.
func coded(g *graph.Graph, id int) *tensor.Quant {
	constant := func(n *graph.Node, i int) *tensor.Tensor {
		if i >= len(n.Inputs) || n.Inputs[i] < 0 {
			return nil
		}
		return g.Values[n.Inputs[i]].Const
	}
	for _, n := range g.Nodes {
		if len(n.Inputs) < 3 || n.Inputs[0] != id {
			continue
		}
		switch n.Op {
		case "DequantizeLinear", "QLinearConv", "QLinearMatMul":
		default:
			continue
		}
		scale, zero := constant(n, 1), constant(n, 2)
		if scale == nil || scale.Len() != 1 || !scale.Type.IsFloat() {
			continue
		}
		q := &tensor.Quant{Scale: []float32{float32(tensor.At(scale, 0))}, Zero: []int64{0}}
		if zero != nil && zero.Len() == 1 && zero.Type.IsInteger() {
			q.Zero[0] = int64(tensor.At(zero, 0))
		}
		return q
	}
	return nil
}

// declared is the shape of the file, nil where it has none.
func (s *spec) declared() []int {
	if !s.value.HasShape {
		return nil
	}
	return s.value.Shape
}

// fit decides the shape of a run for samples of the shape rest, and how many a run takes. table says that the
// elements are a row of numbers without a shape of their own.
func (s *spec) fit(rest []int, table bool) bool {
	want := s.declared()
	if want == nil {
		s.shape, s.batch = append([]int{1}, rest...), 1
		return true
	}
	if shape, ok := match(rest, want); ok && len(rest) == len(want) {
		s.shape, s.batch = shape, 1
		// Several rows a sample where the batch is open would mix samples up.
		return len(want) < 2 || want[0] >= 0 || shape[0] == 1
	}
	if len(want) == 0 {
		s.shape, s.batch = []int{}, 1
		return tensor.Elements(rest) == 1
	}
	batch := max(want[0], 1)
	shape, ok := match(rest, want[1:])
	if !ok {
		shape, ok = match(squeeze(rest), squeeze(want[1:]))
		if ok {
			shape = widen(want[1:], shape)
		}
	}
	if !ok && (table || len(rest) == 1) && !slices.ContainsFunc(want[1:], func(d int) bool { return d < 0 }) {
		ok, shape = tensor.Elements(want[1:]) == tensor.Elements(rest), want[1:]
	}
	s.shape, s.batch = append([]int{batch}, shape...), batch
	return ok
}

// match fills open dimensions of want from have.
func match(have, want []int) ([]int, bool) {
	if len(have) != len(want) {
		return nil, false
	}
	out := make([]int, len(have))
	for i, d := range want {
		if d >= 0 && d != have[i] {
			return nil, false
		}
		out[i] = have[i]
	}
	return out, true
}

func squeeze(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(d int) bool { return d == 1 })
}

// widen puts the ones of want back.
func widen(want, have []int) []int {
	out := make([]int, len(want))
	for i, d := range want {
		out[i] = 1
		if d != 1 && len(have) > 0 {
			out[i], have = have[0], have[1:]
		}
	}
	return out
}

// expected tells the shape of a sample in words.
func (s *spec) expected() string {
	want := s.declared()
	if len(want) == 0 {
		return "one number a sample"
	}
	if len(want) == 1 {
		return fmt.Sprintf("%s a sample", tensor.FormatShape(want))
	}
	return fmt.Sprintf("%s a sample, as input %q has %s", tensor.FormatShape(want[1:]), s.value.Name, tensor.FormatShape(want))
}

// put converts elements into those of the input, from start on. at is how the place of an element is called.
func (s *spec) put(dst *tensor.Tensor, start int, src *tensor.Tensor, from, n int, file string, at func(i int) string) error {
	if src.Type.IsFloat() {
		return s.putReal(dst, start, src, from, n, file, at)
	}
	if !src.Type.IsInteger() && src.Type != tensor.Bool {
		return fault(file, "", "has elements of the type %v, numbers were expected", src.Type)
	}
	if s.typ.IsFloat() {
		v := make([]float64, n)
		tensor.Read(v, src, from)
		tensor.WriteFloat64(dst, start, v, tensor.Conversion{})
		return nil
	}
	v := make([]int64, n)
	if src.Type == tensor.Uint64 {
		for i, x := range tensor.Of[uint64](src)[from : from+n] {
			v[i] = int64(min(x, math.MaxInt64))
		}
	} else {
		tensor.Read(v, src, from)
	}
	lo, hi := bounds(s.typ)
	for i, x := range v {
		if x < lo || s.typ != tensor.Uint64 && uint64(max(x, 0)) > hi {
			return fault(file, at(i), "is %d, %v from %d to %d was expected", x, s.typ, lo, hi)
		}
	}
	tensor.WriteInt64(dst, start, v)
	return nil
}

// putReal converts real values: rounds them, makes codes of them, or takes whole numbers.
func (s *spec) putReal(dst *tensor.Tensor, start int, src *tensor.Tensor, from, n int, file string, at func(i int) string) error {
	v := make([]float64, n)
	tensor.Read(v, src, from)
	most := math.MaxFloat64
	switch s.typ {
	case tensor.Float32, tensor.BFloat16:
		most = math.MaxFloat32
	case tensor.Float16:
		most = 65504
	}
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fault(file, at(i), "is %v, finite numbers were expected", x)
		}
		if s.typ.IsFloat() && math.Abs(x) > most {
			return fault(file, at(i), "is %v, which %v cannot hold", x, s.typ)
		}
	}
	if s.typ.IsFloat() {
		tensor.WriteFloat64(dst, start, v, tensor.Conversion{})
		return nil
	}
	lo, hi := bounds(s.typ)
	codes := make([]int64, n)
	for i, x := range v {
		if s.quant != nil {
			scale, zero := float64(s.quant.Scale[0]), float64(s.quant.Zero[0])
			x = min(max(math.RoundToEven(x/scale)+zero, float64(lo)), float64(hi))
		} else if x != math.Trunc(x) || x < float64(lo) || x > float64(hi) || math.Abs(x) > 1<<53 {
			return fault(file, at(i), "is %v, whole numbers were expected, which input %q takes as %v", x, s.value.Name, s.typ)
		}
		codes[i] = int64(x)
	}
	tensor.WriteInt64(dst, start, codes)
	return nil
}

// bounds are those of an integer type, or of truth values.
func bounds(t tensor.Type) (lo int64, hi uint64) {
	if t == tensor.Bool {
		return 0, 1
	}
	bits := t.Bits()
	if t.IsSigned() {
		return -1 << (bits - 1), 1<<(bits-1) - 1
	}
	return 0, math.MaxUint64 >> (64 - bits)
}
