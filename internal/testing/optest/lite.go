package optest

import (
	"math/rand/v2"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Affine is a quantisation with one zero point for all scales.
func Affine(zero int64, scale ...float32) *tensor.Quant {
	z := make([]int64, len(scale))
	for i := range z {
		z[i] = zero
	}
	return &tensor.Quant{Scale: scale, Zero: z}
}

// Rounded is [Affine] of scales that are rounded to float32.
func Rounded(zero int, scale ...float64) *tensor.Quant {
	s := make([]float32, len(scale))
	for i, v := range scale {
		s[i] = float32(v)
	}
	return Affine(int64(zero), s...)
}

// Draw makes n integers from lo to hi.
func Draw(r *rand.Rand, n, lo, hi int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(lo + r.IntN(hi-lo+1))
	}
	return v
}

// Ends are the ends of an integer type of up to 16 bits; of floats those of small numbers,
// whose sums of products are exact.
func Ends(t tensor.Type) (lo, hi int) {
	switch t {
	case tensor.Float32:
		return -9, 9
	case tensor.Int4:
		return -8, 7
	case tensor.Uint8:
		return 0, 255
	case tensor.Int16:
		return -32768, 32767
	}
	return -128, 127
}

// Of makes a tensor of numbers that its type can hold, nil quantisation for none. Missing
// elements are zero.
func Of(t tensor.Type, q *tensor.Quant, shape []int, v ...float64) *tensor.Tensor {
	x := tensor.New(t, shape...)
	x.Quant = q
	tensor.Fill(x, func(i int) float64 {
		if i < len(v) {
			return v[i]
		}
		return 0
	})
	return x
}

// Row is [Of] for one dimension.
func Row(t tensor.Type, q *tensor.Quant, v ...float64) *tensor.Tensor {
	return Of(t, q, []int{len(v)}, v...)
}

// Lite is a TFLite node with one output of a declared type. All inputs from the second
// are constant.
func Lite(name string, attrs graph.Attrs, out tensor.Type, q *tensor.Quant) Node {
	return Node{
		Domain: graph.TFLite, Op: name, Version: 1, Attrs: attrs, OutTypes: []tensor.Type{out}, OutQuant: []*tensor.Quant{q},
		Const: []bool{false, true, true, true, true, true},
	}
}

// Refused fails the test unless the operator is refused with an error that has text in it.
func Refused(t T, what string, defs []op.Def, n Node, text string, in ...*tensor.Tensor) {
	t.Helper()
	_, err := Run(defs, n, in...)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("%s: error %v, want %q", what, err, text)
	}
}

// Exactly fails the test unless the operator's first output has the shape and exactly
// these elements.
func Exactly(t T, what string, defs []op.Def, n Node, shape []int, want []float64, in ...*tensor.Tensor) {
	t.Helper()
	out, err := Run(defs, n, in...)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := tensor.FormatShape(out[0].Shape); got != tensor.FormatShape(shape) {
		t.Fatalf("%s: shape %s, want %s", what, got, tensor.FormatShape(shape))
	}
	if n.OutTypes != nil && out[0].Type != n.OutTypes[0] {
		t.Fatalf("%s: type %v, want %v", what, out[0].Type, n.OutTypes[0])
	}
	Near(t, what, out[0], want, 0, 0)
}
