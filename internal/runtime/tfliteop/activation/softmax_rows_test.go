package activation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestSoftmaxBits requires the bits of the definition for rows, and for columns along an axis, on
// each instruction set.
func TestSoftmaxBits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	odd := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e30, -1e30, -200}
	for _, set := range simd.Available() {
		defer simd.Use(set)()
		for range 150 {
			outer, depth, inner := 1+r.IntN(30), 1+r.IntN([]int{10, 100, 600}[r.IntN(3)]), 1
			axis := r.IntN(2) == 0
			attrs := graph.Attrs{"beta": float32(0.5)}
			if axis {
				outer, inner = 1+r.IntN(4), 1+r.IntN(70)
				attrs[op.AttrAxis] = int64(1)
			}
			x := tensor.New(tensor.Float32, outer, depth, inner)
			if !axis {
				x = tensor.New(tensor.Float32, outer, depth)
			}
			src := tensor.Of[float32](x)
			for i := range src {
				if src[i] = float32(r.NormFloat64() * 20); r.IntN(1000) == 0 {
					src[i] = odd[r.IntN(len(odd))]
				}
			}
			got := tensor.Of[float32](one(t, optest.Lite("SOFTMAX", attrs, tensor.Float32, nil), x))
			for u := range outer * inner {
				at := func(k int) int { return (u/inner*depth+k)*inner + u%inner }
				top, sum := src[at(0)], float32(0)
				for k := range depth {
					top = max(top, src[at(k)])
				}
				want := make([]float32, depth)
				for k := range want {
					want[k] = libm.Exp(float32(src[at(k)]-top) * 0.5)
					sum += want[k]
				}
				for k, e := range want {
					if e, y := e/sum, got[at(k)]; math.Float32bits(e) != math.Float32bits(y) && (e == e || y == y) {
						t.Fatalf("%v: %dx%dx%d, row %d: number %d is %v, want %v", set, outer, depth, inner, u, k, y, e)
					}
				}
			}
		}
	}
}
