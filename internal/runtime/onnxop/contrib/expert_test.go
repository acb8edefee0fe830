package contrib

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestExpertMatMul compares with the definition: any number of bits, zero points or none, one or
// several x for a row, ids for each row or for all of them.
func TestExpertMatMul(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]int{0, 2, 4, 8}).Draw(t, "bits")
		experts, n, blocks := rapid.IntRange(1, 5).Draw(t, "experts"), rapid.IntRange(1, 70).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "blocks")
		rows, slots := rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 3).Draw(t, "slots")
		single, shared, fractions := rapid.Bool().Draw(t, "single"), rapid.Bool().Draw(t, "shared"), rapid.Bool().Draw(t, "fractions")
		r := source(rapid.Uint64().Draw(t, "seed"))
		const block = 32
		k := blocks * block
		x := random(r, tensor.Float32, 1, rows, slots, k)
		if single {
			x = random(r, tensor.Float32, 1, rows, 1, k)
		}
		ids := tensor.New(tensor.Int64, 1, rows, slots)
		if shared {
			ids = tensor.New(tensor.Int64, slots)
		}
		for i := range tensor.Of[int64](ids) {
			tensor.Of[int64](ids)[i] = int64(r.IntN(experts))
		}
		in := []*tensor.Tensor{x, nil, nil, nil, nil, nil, ids}
		weight := make([]float64, experts*n*k)
		if bits == 0 {
			kind := rapid.SampledFrom([]tensor.Type{tensor.Float32, tensor.Float16, tensor.BFloat16}).Draw(t, "type")
			in[1] = random(r, kind, experts, n, k)
			for i := range weight {
				weight[i] = tensor.At(in[1], i)
			}
		} else {
			in[1] = tensor.New(tensor.Uint8, experts*n, blocks, block*bits/8)
			for i := range in[1].Data {
				in[1].Data[i] = byte(r.IntN(256))
			}
			in[2] = random(r, tensor.Float32, experts*n, blocks)
			if rapid.Bool().Draw(t, "zeros") {
				in[3] = tensor.New(tensor.Float32, experts*n, blocks)
				for i := range tensor.Of[float32](in[3]) {
					tensor.Of[float32](in[3])[i] = float32(r.IntN(1 << bits))
					if fractions {
						tensor.Of[float32](in[3])[i] += 0.25
					}
				}
			}
			for i := range weight {
				q := in[1].Data[i*bits/8] >> (i * bits % 8) & byte(1<<bits-1)
				zero := float64(int(1) << (bits - 1))
				if in[3] != nil {
					zero = tensor.At(in[3], i/block)
				}
				weight[i] = (float64(q) - zero) * tensor.At(in[2], i/block)
			}
		}
		attrs := graph.Attrs{"experts": int64(experts), "N": int64(n), "K": int64(k), "bits": int64(bits), "block_size": int64(block)}
		constant := []bool{false, rapid.Bool().Draw(t, "constant")}
		constant = append(constant, constant[1], constant[1])
		out, err := optest.Run([]op.Def{expertDef()}, optest.Node{Domain: graph.Own, Op: "ExpertMatMul", Version: 1, Attrs: attrs, Const: constant}, in...)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out[0].Shape, []int{1, rows, slots, n}) {
			t.Fatalf("shape %v", out[0].Shape)
		}
		for i := range rows * slots {
			e := int(tensor.Of[int64](ids)[i%ids.Len()])
			from := i
			if single {
				from = i / slots
			}
			for o := range n {
				sum, size := 0.0, 0.0
				for j := range k {
					p := tensor.At(x, from*k+j) * weight[(e*n+o)*k+j]
					sum, size = sum+p, size+math.Abs(p)
				}
				// Sums of float32 depend on their order.
				if got := tensor.At(out[0], i*n+o); math.Abs(got-sum) > 1e-5*size+1e-6 {
					t.Fatalf("product %d of expert %d, row %d: %v, want %v", i, e, o, got, sum)
				}
			}
		}
	})
}

// TestExpertMatMulErrors: wrong sizes and ids are refused.
func TestExpertMatMulErrors(t *testing.T) {
	t.Parallel()
	f := func(s ...int) *tensor.Tensor { return tensor.New(tensor.Float32, s...) }
	id := func(v int64, s ...int) *tensor.Tensor {
		x := tensor.New(tensor.Int64, s...)
		tensor.Of[int64](x)[0] = v
		return x
	}
	attrs := func(more ...int64) graph.Attrs {
		a := graph.Attrs{"experts": int64(2), "N": int64(3), "K": int64(4)}
		if len(more) > 0 {
			a["bits"], a["block_size"] = more[0], more[1]
		}
		return a
	}
	for want, c := range map[string]struct {
		attrs graph.Attrs
		in    []*tensor.Tensor
	}{
		"expert 2 of 2":      {attrs(), []*tensor.Tensor{f(1, 1, 4), f(2, 3, 4), nil, nil, nil, nil, id(2, 1, 1)}},
		"ids of the experts": {attrs(), []*tensor.Tensor{f(1, 1, 4), f(2, 3, 4), nil, nil, nil, nil, f(1, 1)}},
		"with ids":           {attrs(), []*tensor.Tensor{f(1, 2, 4), f(2, 3, 4), nil, nil, nil, nil, id(0, 1, 3)}},
		"weights 2x3x5":      {attrs(), []*tensor.Tensor{f(1, 1, 4), f(2, 3, 5), nil, nil, nil, nil, id(0, 1, 1)}},
		"with K=4":           {attrs(), []*tensor.Tensor{f(1, 1, 5), f(2, 3, 4), nil, nil, nil, nil, id(0, 1, 1)}},
		"in blocks of 32":    {attrs(4, 32), []*tensor.Tensor{f(1, 1, 4), f(2, 3, 4), nil, nil, nil, nil, id(0, 1, 1)}},
	} {
		_, err := optest.Run([]op.Def{expertDef()}, optest.Node{Domain: graph.Own, Op: "ExpertMatMul", Version: 1, Attrs: c.attrs}, c.in...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
