package simd_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestEmulatedPaths runs GEMM and convolution of 8-bit values for instruction sets that few
// processors have: packing, borders and remainders. The kernels run in the emulator and in plain
// Go.
func TestEmulatedPaths(t *testing.T) {
	for _, c := range []struct{ set, needs simd.Set }{{simd.AVXVNNI, simd.AVX2}, {simd.AMX, simd.VNNI}} {
		t.Run(c.set.String(), func(t *testing.T) {
			if !slices.Contains(simd.Available(), c.needs) {
				t.Skipf("no %v", c.needs)
			}
			defer simd.UseEmulated(t, c.set)()
			pool := workers.New(1, nil)
			defer pool.Close()
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 15 {
				emulatedProduct(t, r, pool, 1+r.IntN(70))
				if i%3 == 0 {
					// Enough columns for rows in the order of the instruction set.
					emulatedProduct(t, r, pool, 250+r.IntN(60))
				}
				emulatedConv(t, r, pool)
			}
		})
	}
}

func emulatedProduct(t *testing.T, r *rand.Rand, pool *workers.Pool, n int) {
	t.Helper()
	m, k := 1+r.IntN(200), 1+r.IntN(150)
	x, w := make([]uint8, m*k), smallInts(r, n*k)
	for i := range x {
		x[i] = uint8(r.Uint32())
	}
	signed, zero := r.IntN(2) == 0, int32(r.IntN(256)-128)
	run := func() []int32 {
		p, table, y := gemm.NewPackedInt8(n, k), make([]gemm.ByteTable, 1), make([]int32, m*n)
		table[0].Fill(signed, zero)
		p.Fill(w, k, 1)
		gemm.MultiplyInt8(pool, m, x, table, p, y)
		return y
	}
	if got, want := run(), inGo(run); !slices.Equal(got, want) {
		t.Fatalf("%d rows of %d by %d columns differ from plain Go", m, k, n)
	}
}

func emulatedConv(t *testing.T, r *rand.Rand, pool *workers.Pool) {
	t.Helper()
	s := conv.Shape{N: 1, H: 3 + r.IntN(8), W: 3 + r.IntN(12), C: 2 + r.IntN(20), KH: 1 + r.IntN(3), KW: 1 + r.IntN(3), StrideH: 1 + r.IntN(2), StrideW: 1 + r.IntN(2), DilH: 1, DilW: 1, OC: 1 + r.IntN(50), Groups: 1}
	s.PadT, s.PadL = r.IntN(s.KH), r.IntN(s.KW)
	s.OH, s.OW = (s.H+2*s.PadT-s.KH)/s.StrideH+1, (s.W+2*s.PadL-s.KW)/s.StrideW+1
	x, w := make([]int8, s.H*s.W*s.C), smallInts(r, s.OC*s.C*s.KH*s.KW)
	for i := range x {
		x[i] = int8(r.Uint32())
	}
	narrow := make([]int16, len(w))
	for i, v := range w {
		narrow[i] = int16(v)
	}
	zero := int32(r.IntN(256) - 128)
	q := quantise.Requant{Mul: []fixed.Multiplier{{M: 1<<30 + r.Int32N(1<<30), Shift: -10}}, Zero: 3, Min: -128, Max: 127}
	lines := func() []int8 {
		y, q := make([]int8, s.OH*s.OW*s.OC), q
		conv.NewInt8[int8](s, narrow, 0, zero, q).Run(pool, x, y)
		return y
	}
	if got, want := lines(), inGo(lines); !slices.Equal(got, want) {
		t.Fatalf("%+v differs from plain Go", s)
	}
	planes := func() []int32 {
		c, y := conv.NewSums(s, false, false), make([]int32, s.OH*s.OW*s.OC)
		conv.SetSumWeights(c, w, 0)
		c.SetZero(true, zero)
		c.Run(pool, quantise.Bits(x), y)
		return y
	}
	if got, want := planes(), inGo(planes); !slices.Equal(got, want) {
		t.Fatalf("%+v of planes differs from plain Go", s)
	}
}

// inGo returns the result of f in plain Go.
func inGo[T any](f func() []T) []T {
	defer simd.Use(simd.Go)()
	return f()
}

// smallInts returns n weights, sometimes with values that need more than 8 bits.
func smallInts(r *rand.Rand, n int) []int32 {
	w, most := make([]int32, n), 128
	if r.IntN(4) == 0 {
		most = 256
	}
	for i := range w {
		w[i] = int32(r.IntN(2*most) - most)
	}
	return w
}
