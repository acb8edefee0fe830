package contrib

import (
	"bytes"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestCachesOfHalves compares attention with 16-bit caches with the same in float32: old cache
// content stays bit-exact, new rows are rounded, and results differ by that rounding.
func TestCachesOfHalves(t *testing.T) {
	t.Parallel()
	const heads, kvHeads, size, past = 6, 2, 16, 300
	num := func(n int) *tensor.Tensor { return tensor.From(tensor.Int32, []int{1}, []int32{int32(n)}) }
	tests := []struct {
		name  string
		rows  int
		node  optest.Node
		in    func(x func(shape ...int) *tensor.Tensor, rows int) []*tensor.Tensor
		pasts []int // inputs
	}{
		{"one row of groups", 1, groups(heads, kvHeads, 0), groupInputs(heads, kvHeads, size, past, num), []int{3, 4}},
		{"rows of groups", 5, groups(heads, kvHeads, 0), groupInputs(heads, kvHeads, size, past, num), []int{3, 4}},
		{"turned rows of groups", 5, groups(heads, kvHeads, 1), groupInputs(heads, kvHeads, size, past, num), []int{3, 4}},
		{
			"heads", 2,
			optest.Node{Domain: graph.Microsoft, Op: "MultiHeadAttention", Version: 1, Outputs: 3, Attrs: graph.Attrs{"num_heads": int64(heads)}},
			func(x func(shape ...int) *tensor.Tensor, rows int) []*tensor.Tensor {
				w := heads * size
				return []*tensor.Tensor{x(2, rows, w), x(2, rows, w), x(2, rows, w), x(3 * w), nil, nil, x(2, heads, past, size), x(2, heads, past, size)}
			},
			[]int{6, 7},
		},
		{
			"projected", 2,
			optest.Node{Domain: graph.Microsoft, Op: "Attention", Version: 1, Outputs: 2, Attrs: graph.Attrs{"num_heads": int64(2), "unidirectional": int64(1)}},
			func(x func(shape ...int) *tensor.Tensor, rows int) []*tensor.Tensor {
				return []*tensor.Tensor{x(1, rows, 8), x(8, 96), x(96), nil, x(2, 1, 2, past, size)}
			},
			[]int{4},
		},
		{
			"of ONNX", 9,
			optest.Node{Op: "Attention", Version: 23, Outputs: 3, Attrs: graph.Attrs{"is_causal": int64(1)}},
			func(x func(shape ...int) *tensor.Tensor, rows int) []*tensor.Tensor {
				return []*tensor.Tensor{x(2, heads, rows, size), x(2, kvHeads, rows, size), x(2, kvHeads, rows, size), nil, x(2, kvHeads, past, size), x(2, kvHeads, past, size)}
			},
			[]int{4, 5},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []tensor.Type{tensor.Float16, tensor.BFloat16} {
				r := source(21)
				halves := test.in(func(shape ...int) *tensor.Tensor { return random(r, kind, shape...) }, test.rows)
				wide := make([]*tensor.Tensor, len(halves))
				for i, x := range halves {
					if wide[i] = x; x != nil && x.Type == kind {
						wide[i] = tensor.New(tensor.Float32, x.Shape...)
						tensor.Fill(wide[i], func(k int) float64 { return tensor.At(x, k) })
					}
				}
				got, want := run(t, test.node, halves...), run(t, test.node, wide...)
				for i, x := range got {
					near(t, kind.String(), x, numbersOf(want[i]), 4*tolerance(kind))
				}
				for i, p := range test.pasts {
					x := halves[p]
					row, from := past*size*kind.Bits()/8, 0
					for to := 0; from < len(x.Data); to += len(got[1+i].Data) * row / len(x.Data) {
						if !bytes.Equal(got[1+i].Data[to:][:row], x.Data[from:][:row]) {
							t.Errorf("%v: cache %d has changed in what it held", kind, i)
						}
						from += row
					}
				}
				// Results do not depend on whether the caches are requested.
				alone := test.node
				alone.Outputs = 1
				if y := run(t, alone, halves...)[0]; !bytes.Equal(y.Data, got[0].Data) {
					t.Errorf("%v: without outputs for caches the results are others", kind)
				}
			}
		})
	}
}

func groups(heads, kvHeads, rotary int) optest.Node {
	return optest.Node{
		Domain: graph.Microsoft, Op: "GroupQueryAttention", Version: 1, Outputs: 3,
		Attrs: graph.Attrs{"num_heads": int64(heads), "kv_num_heads": int64(kvHeads), "do_rotary": int64(rotary)},
	}
}

// groupInputs are the inputs of GroupQueryAttention with a past.
func groupInputs(heads, kvHeads, size, past int, num func(int) *tensor.Tensor) func(x func(shape ...int) *tensor.Tensor, rows int) []*tensor.Tensor {
	return func(x func(shape ...int) *tensor.Tensor, rows int) []*tensor.Tensor {
		cache := func() *tensor.Tensor { return x(1, kvHeads, past, size) }
		return []*tensor.Tensor{
			x(1, rows, heads*size), x(1, rows, kvHeads*size), x(1, rows, kvHeads*size), cache(), cache(),
			num(past + rows - 1), num(past + rows), x(past+rows, size/2), x(past+rows, size/2),
		}
	}
}
