package contrib

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

var defs = allDefs()

// random fills a tensor with positive and negative values.
func random(r *rand.Rand, t tensor.Type, shape ...int) *tensor.Tensor {
	x := tensor.New(t, shape...)
	for i := range x.Len() {
		switch t {
		case tensor.Uint8:
			x.Data[i] = uint8(r.IntN(256))
		case tensor.Int8:
			x.Data[i] = uint8(r.IntN(256))
		case tensor.Int32:
			tensor.Of[int32](x)[i] = int32(r.IntN(2001) - 1000)
		default:
			tensor.Put(x, i, r.Float64()*2-1)
		}
	}
	return x
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func run(t testing.TB, n optest.Node, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	out, err := optest.Run(defs, n, in...)
	if err != nil {
		t.Fatalf("%s: %v", n.Op, err)
	}
	return out
}

// near compares with float64 results of a definition.
func near(t testing.TB, what string, got *tensor.Tensor, want []float64, tol float64) {
	t.Helper()
	optest.Near(t, what, got, want, tol, tol)
}

func ints(v ...int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

// tolerance by type: half precision is rounded once at the end, inputs are exact.
func tolerance(t tensor.Type) float64 {
	switch t {
	case tensor.Float16:
		return 1e-3
	case tensor.BFloat16:
		return 8e-3
	case tensor.Float64:
		return 1e-12
	}
	return 2e-5
}

func TestErrors(t *testing.T) {
	t.Parallel()
	f := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }
	for _, c := range []struct {
		name, op string
		attrs    graph.Attrs
		in       []*tensor.Tensor
	}{
		{"conv channels", "Conv", nil, []*tensor.Tensor{f(1, 3, 5, 5), f(2, 4, 3, 3)}},
		{"conv kernel larger than input", "Conv", nil, []*tensor.Tensor{f(1, 3, 2, 2), f(2, 3, 3, 3)}},
		{"conv zero stride", "Conv", graph.Attrs{"strides": ints(0, 1)}, []*tensor.Tensor{f(1, 3, 5, 5), f(2, 3, 3, 3)}},
		{"conv no weights", "Conv", nil, []*tensor.Tensor{f(1, 3, 5, 5)}},
		{"conv groups", "Conv", graph.Attrs{"group": int64(0)}, []*tensor.Tensor{f(1, 3, 5, 5), f(2, 3, 3, 3)}},
		{"conv auto_pad", "Conv", graph.Attrs{"auto_pad": "ALL"}, []*tensor.Tensor{f(1, 3, 5, 5), f(2, 3, 3, 3)}},
		{"convtranspose groups", "ConvTranspose", graph.Attrs{"group": int64(2)}, []*tensor.Tensor{f(1, 3, 5, 5), f(3, 3, 3, 3)}},
		{"pool without kernel", "MaxPool", nil, []*tensor.Tensor{f(1, 3, 5, 5)}},
		{"matmul inner size", "MatMul", nil, []*tensor.Tensor{f(2, 3), f(2, 3)}},
		{"matmul scalar", "MatMul", nil, []*tensor.Tensor{f(), f(2, 3)}},
		{"matmul batch", "MatMul", nil, []*tensor.Tensor{f(2, 2, 3), f(3, 3, 4)}},
		{"gemm bias", "Gemm", nil, []*tensor.Tensor{f(2, 3), f(3, 4), f(5)}},
		{"einsum equation", "Einsum", graph.Attrs{"equation": "ij,jk->iz"}, []*tensor.Tensor{f(2, 3), f(3, 4)}},
		{"einsum sizes", "Einsum", graph.Attrs{"equation": "ij,jk->ik"}, []*tensor.Tensor{f(2, 3), f(4, 4)}},
		{"lstm weights", "LSTM", nil, []*tensor.Tensor{f(5, 1, 4), f(1, 8, 4), f(1, 8, 3)}},
		{"lstm activation", "LSTM", graph.Attrs{"activations": []string{"A", "B", "C"}}, []*tensor.Tensor{f(5, 1, 4), f(1, 12, 4), f(1, 12, 3)}},
		{"layernorm scale", "LayerNormalization", nil, []*tensor.Tensor{f(2, 3), f(4)}},
		{"groupnorm groups", "GroupNormalization", graph.Attrs{"num_groups": int64(2)}, []*tensor.Tensor{f(1, 3, 2), f(3), f(3)}},
		{"attention heads", "Attention", graph.Attrs{"q_num_heads": int64(3), "kv_num_heads": int64(3)}, []*tensor.Tensor{f(1, 2, 8), f(1, 2, 8), f(1, 2, 8)}},
		{"resize without sizes", "Resize", nil, []*tensor.Tensor{f(1, 1, 2, 2)}},
		{"gridsample grid", "GridSample", nil, []*tensor.Tensor{f(1, 1, 2, 2), f(1, 2, 2, 3)}},
		{
			"unpool index", "MaxUnpool",
			graph.Attrs{"kernel_shape": ints(2, 2), "strides": ints(2, 2)},
			[]*tensor.Tensor{f(1, 1, 1, 1), tensor.From(tensor.Int64, []int{1, 1, 1, 1}, []int64{99})},
		},
		{"loss target", "NegativeLogLikelihoodLoss", nil, []*tensor.Tensor{f(1, 3), tensor.From(tensor.Int64, []int{1}, []int64{3})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := optest.Run(defs, optest.Node{Op: c.op, Version: 22, Attrs: c.attrs}, c.in...); err == nil {
				t.Error("no error")
			}
		})
	}
}
