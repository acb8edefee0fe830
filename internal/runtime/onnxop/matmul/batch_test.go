package matmul

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestBatchesOnThreads compares batched products, of which threads compute some each or a part of
// each, with sequential products on one thread, bit-exactly.
func TestBatchesOnThreads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(lo, hi int, name string) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		m, n, k, batch := draw(1, 70, "m"), draw(1, 70, "n"), draw(1, 40, "k"), []int{draw(1, 4, "outer"), draw(1, 5, "inner")}
		state := rapid.Uint64().Draw(t, "seed") | 1
		made := func(typ tensor.Type, shape ...int) *tensor.Tensor {
			x := tensor.New(typ, shape...)
			for i := range x.Data {
				state = state*6364136223846793005 + 1442695040888963407
				x.Data[i] = uint8(state >> 40)
			}
			return x
		}
		// The right operand may be the same for the whole outer axis.
		right := []int{batch[0], batch[1], k, n}
		if rapid.Bool().Draw(t, "repeated") {
			right[0] = 1
		}
		op := rapid.SampledFrom([]string{"MatMul", "MatMulInteger", "QLinearMatMul"}).Draw(t, "operator")
		typ := rapid.SampledFrom([]tensor.Type{tensor.Int8, tensor.Uint8}).Draw(t, "type")
		one := func(v float32) *tensor.Tensor { return f32(nil, v) }
		zero := func() *tensor.Tensor { return made(typ) }
		var in []*tensor.Tensor
		switch op {
		case "MatMul":
			in = []*tensor.Tensor{floats(m, batch[0], batch[1], m, k), floats(n, right...)}
		case "MatMulInteger":
			in = []*tensor.Tensor{made(typ, batch[0], batch[1], m, k), made(typ, right...), zero(), zero()}
		default:
			in = []*tensor.Tensor{made(typ, batch[0], batch[1], m, k), one(0.02), zero(), made(typ, right...), one(0.03), zero(), one(0.5), zero()}
		}
		node := optest.Node{Op: op, Version: 13}
		if op != "MatMul" {
			node.Version = 10
		}
		var want *tensor.Tensor
		for threads := range 3 {
			node.Threads = threads + 1
			got, err := optest.Run(Defs(), node, in...)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got[0]
			}
			if !slices.Equal(got[0].Data, want.Data) {
				t.Fatalf("%s of %v and %v: %d threads differ from one", op, in[0].Shape, right, threads+1)
			}
		}
	})
}

// floats returns small numbers from a seed.
func floats(seed int, shape ...int) *tensor.Tensor {
	x := tensor.New(tensor.Float32, shape...)
	for i := range tensor.Of[float32](x) {
		tensor.Of[float32](x)[i] = float32((i*i+seed)%97)/16 - 3
	}
	return x
}
