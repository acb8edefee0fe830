package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"pgregory.net/rapid"
)

// TestInt4Gemv checks that a row times 4-bit weights is bit-exact with the same weights in
// float32.
func TestInt4Gemv(t *testing.T) {
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			int4Gemv(t)
		})
	}
}

func int4Gemv(t *testing.T) {
	t.Helper()
	if NewInt4Matrix(8, 1, 8, make([]uint8, 4), make([]float32, 1)) == nil {
		t.Skip("no kernels")
	}
	pool := workers.New(3, nil)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		block := 8 * rapid.IntRange(1, 5).Draw(t, "groups")
		n, blocks := rapid.IntRange(1, 150).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "blocks")
		k := blocks * block
		seed := rapid.Uint64().Draw(t, "seed")
		at := rapid.IntRange(0, 3).Draw(t, "at")
		r := rand.New(rand.NewPCG(seed, 1))
		codes, scales, x, bias := make([]uint8, at+n*k/2)[at:], make([]float32, n*blocks), make([]float32, k), make([]float32, n)
		for i := range codes {
			codes[i] = uint8(r.Uint32())
		}
		special := []float32{0, float32(math.Copysign(0, -1)), 1e30, 1e-40}
		fill := func(v []float32) {
			for i := range v {
				if v[i] = float32(r.NormFloat64()); r.IntN(8) == 0 {
					v[i] = special[r.IntN(len(special))]
				}
			}
		}
		fill(scales)
		fill(x)
		fill(bias)
		w := make([]float32, n*k)
		for i := range w {
			q := int8(codes[i/2]<<4) >> 4
			if i%2 == 1 {
				q = int8(codes[i/2]) >> 4
			}
			w[i] = scales[i/block] * float32(q)
		}
		act := activation.Clamp{On: rapid.Bool().Draw(t, "clamped"), Min: -1, Max: 2}
		if rapid.Bool().Draw(t, "no bias") {
			bias = nil
		}
		m := NewInt4Matrix(k, n, block, codes, scales)
		if m == nil {
			t.Fatal("there is a kernel for the matrix")
		}
		got, want := make([]float32, n), make([]float32, n)
		m.Run(pool, x, got, bias, act)
		MultiplyPacked(pool, Params{M: 1, N: n, K: k, TransB: true, Exact: true, BiasN: bias, Act: act}, x, PackB(k, n, w, 0, true), want)
		if !slices.EqualFunc(got, want, func(a, b float32) bool {
			return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
		}) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
