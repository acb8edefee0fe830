package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// Products with weights of few bits are those with the same weights in float32, but for the order of sums: they stay within the bound of
// rounding each product and each sum.
func TestFewBits(t *testing.T) {
	t.Parallel()
	if simd.FewBitKernels() == nil {
		t.Skip("no kernels")
	}
	pool := workers.New(3, nil)
	t.Cleanup(pool.Close)
	rapid.Check(t, func(t *rapid.T) {
		s := FewBitShape{
			Bits: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "bits"), Block: 16 * rapid.IntRange(1, 9).Draw(t, "block"),
			K: rapid.IntRange(1, 700).Draw(t, "k"), N: rapid.IntRange(1, 200).Draw(t, "n"),
		}
		rows := rapid.SampledFrom([]int{1, 2, 3, 4, 17}).Draw(t, "rows")
		signed := rapid.Bool().Draw(t, "signed")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		blocks := (s.K + s.Block - 1) / s.Block
		line, middle := blocks*s.Block, 1<<(s.Bits-1)
		at := rapid.IntRange(0, 3).Draw(t, "at")
		codes, scales := make([]uint8, at+s.N*line*s.Bits/8)[at:], make([]float32, s.N*blocks)
		for i := range codes {
			codes[i] = uint8(r.Uint32())
		}
		var zeros []int8
		if rapid.Bool().Draw(t, "zeros") {
			zeros = make([]int8, len(scales))
		}
		for i := range scales {
			if scales[i] = float32(r.NormFloat64()); zeros != nil {
				zeros[i] = int8(r.IntN(2*middle) - middle)
			}
		}
		x, bias := make([]float32, rows*s.K), make([]float32, s.N)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for i := range bias {
			bias[i] = float32(r.NormFloat64())
		}
		m := NewFewBits(s, codes, signed, scales, zeros)
		if m == nil {
			t.Fatal("there is a kernel for the matrix")
		}
		act := activation.Clamp{On: rapid.Bool().Draw(t, "clamped"), Min: -9, Max: 20}
		got, alone := make([]float32, rows*s.N), make([]float32, rows*s.N)
		m.Run(pool, rows, x, got, bias, act)
		m.Run(nil, rows, x, alone, bias, act)
		for i := range got {
			row, n := i/s.N, i%s.N
			want, size := float64(bias[n]), math.Abs(float64(bias[n]))
			for k := range s.K {
				e := n*line + k
				q := int(codes[e*s.Bits/8]) >> (e * s.Bits % 8) & (2*middle - 1)
				if signed && q >= middle {
					q -= 2 * middle
				} else if !signed {
					q -= middle
				}
				zero := 0
				if zeros != nil {
					zero = int(zeros[n*blocks+k/s.Block])
				}
				v := float64(x[row*s.K+k]) * float64(scales[n*blocks+k/s.Block])
				want += v * float64(q-zero)
				size += math.Abs(v) * float64(middle+max(zero, -zero))
			}
			if act.On {
				want = min(max(want, float64(act.Min)), float64(act.Max))
			}
			if d := math.Abs(float64(got[i]) - want); !(d <= size*float64(s.K+8)*0x1p-24) {
				t.Fatalf("element %d is %v, want %v", i, got[i], want)
			}
			if got[i] != alone[i] {
				t.Fatalf("element %d is %v with one thread, %v with three", i, alone[i], got[i])
			}
		}
	})
}
