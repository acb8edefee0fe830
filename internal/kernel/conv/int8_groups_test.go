package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestIntGroups compares grouped int8 convolutions with plain Go, in both layouts and orders, for
// each split of the work.
func TestIntGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for range sets.Rounds(150) {
			s := anyConv(r)
			cg := []int{2, 4, 4, 8, 8, 12, 16, 20, 40}[r.IntN(9)]
			s.Groups = 16 / min(16, cg) * (1 + r.IntN(6))
			s.C, s.OC = cg*s.Groups, cg*s.Groups
			if r.IntN(3) == 0 {
				s.OC = s.Groups * (1 + r.IntN(50))
			}
			if s.Groups == 1 {
				continue
			}
			testIntConv(t, r, pool, s)
		}
	}
}

// TestIntShortRows is the same for short rows of many channels, which tiles may combine, and for
// 1×1 windows with a stride.
func TestIntShortRows(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for i := range sets.Rounds(60) {
			s := Shape{N: 1 + r.IntN(2), C: 16 + r.IntN(100), OC: 8 + r.IntN(80), OH: 1 + r.IntN(10), OW: 1 + r.IntN(20), KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, Groups: 1}
			switch i % 3 {
			case 0:
				s.KH, s.KW, s.StrideH, s.StrideW = 1, 1, 1+r.IntN(2), 2
			case 1:
				s.StrideH, s.StrideW = 1+r.IntN(2), 1+r.IntN(2)
			}
			s.H, s.W = (s.OH-1)*s.StrideH+s.KH, (s.OW-1)*s.StrideW+s.KW
			if s.KH > 1 && r.IntN(2) == 0 {
				s.H, s.W, s.PadT, s.PadL = max(1, s.H-2), max(1, s.W-2), 1, 1
			} else if r.IntN(2) == 0 {
				s.H, s.W = s.H+1, s.W+1
			}
			testIntConv(t, r, pool, s)
		}
		// Rows that take as many tiles combined as apart.
		testIntConv(t, r, pool, Shape{N: 1, H: 7, W: 14, C: 64, OC: 48, OH: 7, OW: 14, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1, Groups: 1})
		testIntConv(t, r, pool, Shape{N: 2, H: 13, W: 28, C: 64, OC: 48, OH: 7, OW: 14, KH: 1, KW: 1, StrideH: 2, StrideW: 2, DilH: 1, DilW: 1, Groups: 1})
	}
}

// testIntConv compares a convolution on all instruction sets with plain Go: its sums, its
// requantised results in all orders, and TFLite's.
func testIntConv(t *testing.T, r *rand.Rand, pool *workers.Pool, s Shape) {
	t.Helper()
	k, area := s.C/s.Groups*s.KH*s.KW, s.OH*s.OW
	x, w, signed := kernels.BytesOf(r, s.N*s.H*s.W*s.C), kernels.WeightsOf(r, s.OC*k), r.IntN(2) == 0
	zero := kernels.Value(uint8(r.Uint32()), signed)
	want := make([]int32, s.Outputs())
	build := func(lastIn, lastOut bool) *Sums {
		c := NewSums(s, lastIn, lastOut)
		SetSumWeights(c, w, 0)
		c.SetZero(signed, zero)
		return c
	}
	sets.Go(func() { build(false, false).Run(pool, x, want) })
	last, lastWant := transpose(x, s.N, s.C, s.H*s.W), transpose(want, s.N, s.OC, area)
	q := quantise.Rescale{Zero: kernels.Value(128, signed) + 128, Lo: 3, Hi: 120, Signed: signed, Bias: randomWeights(r, s.OC)}
	for range s.OC {
		q.Scales = append(q.Scales, 0.0001+r.Float32()*0.002)
	}
	codes := make([]uint8, len(want))
	q.Prepare()
	for i, v := range want {
		codes[i] = q.Quantise(v, i/area%s.OC)
	}
	lastCodes := transpose(codes, s.N, s.OC, area)
	sets.In(t, func(simd.Set) {
		q := q
		q.Prepare()
		for _, lastIn := range []bool{false, true} {
			for _, lastOut := range []bool{false, true} {
				if both := lastIn && lastOut && s.SupportsDepthwiseNHWC(); !both && (lastIn && !s.SupportsNHWC() || lastOut && !s.SupportsNHWCOutput()) {
					continue
				}
				in, sums, out := x, want, codes
				if lastIn {
					in = last
				}
				if lastOut {
					sums, out = lastWant, lastCodes
				}
				c := build(lastIn, lastOut)
				for i := range 4 {
					q.Fixed = i > 0
					sameSums(t, c, pool, in, sums, out, &q, lastOut)
					if i == 1 {
						continue // the next run uses the parameters that this one computed
					}
					SetSumWeights(c, w, 0) // again, as weights that change between runs
				}
			}
		}
	})
	wn := make([]int16, len(w))
	for i, v := range transpose(w, s.OC, s.C/s.Groups, s.KH*s.KW) {
		wn[i] = int16(v)
	}
	rounding := anyRequant(r, s.OC)
	if !signed {
		lastConv(t, s, pool, NewInt8[uint8], wn, zero, rounding, last, lastWant)
	} else {
		lastConv(t, s, pool, NewInt8[int8], wn, zero, rounding, scratch.AsInt8(last), lastWant)
	}
}

// lastConv compares TFLite's sums and requantised results with those of plain Go.
func lastConv[T uint8 | int8](t *testing.T, s Shape, pool *workers.Pool, build func(Shape, []int16, int32, int32, quantise.Requant) *Int8[T], w []int16, zero int32, q quantise.Requant, x []T, sums []int32) {
	t.Helper()
	want := make([]T, len(sums))
	sets.Go(func() { build(s, w, 0, zero, q).Run(pool, x, want) })
	sets.In(t, func(simd.Set) {
		got := make([]int32, len(sums))
		if build(s, w, 0, zero, q).Sums(pool, x, zero, got); !slices.Equal(got, sums) {
			t.Fatalf("%+v, channels last: sums differ", s)
		}
		codes := make([]T, len(sums))
		if build(s, w, 0, zero, q).Run(pool, x, codes); !slices.Equal(codes, want) {
			t.Fatalf("%+v, channels last: codes differ", s)
		}
	})
}
