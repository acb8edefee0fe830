package samples

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// inputSpec describes the data that an input accepts.
type inputSpec struct {
	value *graph.Value
	typ   tensor.Type
	// shape is the input shape of a run, with open dimensions filled from the data.
	shape []int
	// batch is the number of samples per run: more than 1 where the model's batch is fixed.
	batch int
	// quant quantises real values; nil for inputs without quantisation.
	quant *tensor.Quant
	// tflite says that the model is a TFLite model, which has channels last; frame is the image
	// layout.
	tflite bool
	frame  *imageLayout
}

// newSpec describes input k, except for the shape.
func newSpec(m *graph.Model, k int) (*inputSpec, error) {
	g := m.Main()
	v := g.Values[g.Inputs[k]]
	s := &inputSpec{value: v, typ: v.Type, batch: 1, quant: v.Quant, tflite: m.Format == "tflite"}
	if s.typ == tensor.Invalid {
		s.typ = tensor.Float32
	}
	if !s.typ.IsNumber() || s.typ.Bits() < 8 {
		return nil, fmt.Errorf("input %q has the unsupported element type %v", v.Name, v.Type)
	}
	if s.quant == nil && s.typ.IsInteger() {
		s.quant = inputQuant(g, v.ID)
	}
	if s.quant != nil && (!s.typ.IsInteger() || len(s.quant.Scale) == 0 || s.quant.Scale[0] == 0) {
		s.quant = nil
	}
	return s, nil
}

// inputQuant finds scale and zero point of an input that an ONNX operator reads as quantised
// values.
func inputQuant(g *graph.Graph, id int) *tensor.Quant {
	constant := func(n *graph.Node, i int) *tensor.Tensor {
		if i >= len(n.Inputs) || n.Inputs[i] < 0 {
			return nil
		}
		return g.Values[n.Inputs[i]].Const
	}
	for _, n := range g.Nodes {
		if len(n.Inputs) < 3 || n.Inputs[0] != id || !slices.Contains([]string{"DequantizeLinear", "QLinearConv", "QLinearMatMul"}, n.Op) {
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

// declared is the declared shape, nil if absent.
func (s *inputSpec) declared() []int {
	if !s.value.HasShape {
		return nil
	}
	return s.value.Shape
}

// fit determines the shape of a run for samples of shape rest, and the samples per run. table
// says that the elements are a row of numbers without a shape.
func (s *inputSpec) fit(rest []int, table bool) bool {
	want := s.declared()
	if want == nil {
		s.shape, s.batch = append([]int{1}, rest...), 1
		return true
	}
	if shape, ok := fillOpenDims(rest, want); ok && len(rest) == len(want) {
		s.shape, s.batch = shape, 1
		// Several rows per sample with an open batch would mix samples.
		return len(want) < 2 || want[0] >= 0 || shape[0] == 1
	}
	if len(want) == 0 {
		s.shape, s.batch = []int{}, 1
		return tensor.Elements(rest) == 1
	}
	batch := max(want[0], 1)
	shape, ok := fillOpenDims(rest, want[1:])
	if !ok {
		shape, ok = fillOpenDims(squeeze(rest), squeeze(want[1:]))
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

// fillOpenDims fills open dimensions of want from have.
func fillOpenDims(have, want []int) ([]int, bool) {
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

// widen restores the dimensions of size 1 of want.
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

// expected describes the shape of a sample.
func (s *inputSpec) expected() string {
	want := s.declared()
	if len(want) == 0 {
		return "one number a sample"
	}
	if len(want) == 1 {
		return fmt.Sprintf("%s a sample", tensor.FormatShape(want))
	}
	return fmt.Sprintf("%s a sample, as input %q has %s", tensor.FormatShape(want[1:]), s.value.Name, tensor.FormatShape(want))
}

// put converts elements to those of the input, from index start on. at formats the place of an
// element.
func (s *inputSpec) put(dst *tensor.Tensor, start int, src *tensor.Tensor, from, n int, file string, at func(i int) string) error {
	if src.Type.IsFloat() {
		return s.putReal(dst, start, src, from, n, file, at)
	}
	if !src.Type.IsInteger() && src.Type != tensor.Bool {
		return dataError(file, "", "has elements of the type %v, numbers were expected", src.Type)
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
			return dataError(file, at(i), "is %d, %v from %d to %d was expected", x, s.typ, lo, hi)
		}
	}
	tensor.WriteInt64(dst, start, v)
	return nil
}

// putReal converts real values: it rounds them, quantises them, or requires integers.
func (s *inputSpec) putReal(dst *tensor.Tensor, start int, src *tensor.Tensor, from, n int, file string, at func(i int) string) error {
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
			return dataError(file, at(i), "is %v, finite numbers were expected", x)
		}
		if s.typ.IsFloat() && math.Abs(x) > most {
			return dataError(file, at(i), "is %v, which %v cannot hold", x, s.typ)
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
			return dataError(file, at(i), "is %v, integers were expected: input %q has the type %v", x, s.value.Name, s.typ)
		}
		codes[i] = int64(x)
	}
	tensor.WriteInt64(dst, start, codes)
	return nil
}

// bounds returns the range of an integer type, or of bool.
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
