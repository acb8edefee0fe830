package quant

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elementwise"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/reduce"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func i64(shape []int, v ...int64) *tensor.Tensor { return tensor.From(tensor.Int64, shape, v) }

// number makes a tensor of any type from real numbers.

func number(t tensor.Type, shape []int, v ...float64) *tensor.Tensor {
	x := tensor.New(t, shape...)
	if t == tensor.String {
		for i, f := range v {
			x.Strings[i] = elementwise.FormatFloat(tensor.Float64, f)
		}
		return x
	}
	tensor.WriteFloat64(x, 0, v, tensor.Conversion{Saturate: true})
	return x
}

// reals reads any numeric tensor.

func reals(x *tensor.Tensor) []float64 {
	v := make([]float64, x.Len())
	tensor.Read(v, x, 0)
	return v
}

func run(t *testing.T, n optest.Node, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(allDefs(), n, in...)
	if err != nil {
		t.Fatalf("%s version %d: %v", n.Op, n.Version, err)
	}
	return out
}

func near(t *testing.T, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; !optest.Within(g, w, tol, tol) {
			t.Fatalf("element %d of %v is %v, want %v", i, got[:min(len(got), 20)], g, w)
		}
	}
}

// allDefs are the operators of the packages that share these tests.
func allDefs() []op.Def { return slices.Concat(elementwise.Defs(), reduce.Defs(), Defs()) }
