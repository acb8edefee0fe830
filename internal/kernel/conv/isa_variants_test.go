package conv

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// anyConv draws a convolution, sometimes a depthwise one.
func anyConv(r *rand.Rand) Shape {
	s := Shape{
		N: 1 + r.IntN(2), KH: 1 + r.IntN(4), KW: 1 + r.IntN(4), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3),
		DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), OH: 1 + r.IntN(12), OW: 1 + r.IntN(20), Groups: 1 + r.IntN(2)*r.IntN(3),
	}
	if r.IntN(5) == 0 {
		s.KH, s.KW = 1, 1
	}
	if r.IntN(3) == 0 {
		s.StrideH, s.StrideW, s.DilH, s.DilW = 1, 1, 1, 1
	}
	if r.IntN(3) == 0 { // as in most networks
		s.KH, s.StrideH, s.DilH = 3+2*r.IntN(3), 1+r.IntN(2), 1
		if s.StrideH == 1 && r.IntN(3) == 0 {
			s.DilH += r.IntN(3)
		}
		s.KW, s.StrideW, s.DilW = s.KH, s.StrideH, s.DilH
		if r.IntN(4) == 0 {
			s.OH, s.OW = 1+r.IntN(40), 1+r.IntN(80)
		}
	}
	s.Groups = max(s.Groups, 1)
	s.C, s.OC = s.Groups*(2+r.IntN(20)), s.Groups*(1+r.IntN(40))
	if r.IntN(40) == 0 {
		s.C = s.Groups * 200
	}
	if r.IntN(3) == 0 {
		s.C = 2 + r.IntN(80)
		s.Groups, s.OC = s.C, s.C*(1+r.IntN(3)*r.IntN(2))
	}
	// Padding on all sides, none, or output beyond the input.
	seenH, seenW := (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1, (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW+1
	s.PadT, s.PadL = r.IntN(min(4, seenH)), r.IntN(min(4, seenW))
	s.H, s.W = max(1, seenH-s.PadT-r.IntN(4)), max(1, seenW-s.PadL-r.IntN(4))
	if r.IntN(3) == 0 {
		s.PadT, s.PadL, s.H, s.W = 0, 0, seenH+r.IntN(3), seenW+r.IntN(3)
	}
	return s
}

func TestConvSets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for range sets.Rounds(400) {
			s := anyConv(r)
			k := s.C / s.Groups * s.KH * s.KW
			act := activation.Clamp{On: r.IntN(2) == 0, Min: -1, Max: 4}
			for _, nhwc := range []bool{true, false} {
				x, w := kernels.Values(r, nhwc, s.N*s.H*s.W*s.C), kernels.Values(r, nhwc, s.OC*k)
				if s.C > s.Groups {
					kernels.Prune(r, w, k)
				}
				var bias []float32
				if r.IntN(3) > 0 {
					bias = kernels.Values(r, nhwc, s.OC)
				}
				build := NewNCHW
				if nhwc {
					build = NewNHWC
				}
				want := make([]float32, s.Outputs())
				sets.Go(func() { build(s, w, bias, act).Run(pool, x, want) })
				sets.In(t, func(simd.Set) {
					c, got := build(s, w, bias, act), make([]float32, s.Outputs())
					c.Run(pool, x, got)
					// Twice: no state may remain.
					c.Run(pool, x, got)
					if strings.HasPrefix(c.Name(), "winograd/") {
						almost(t, s, got, want, x, w, k)
						return
					}
					sets.Agree(t, s, got, want)
				})
			}
		}
	}
}

// almost compares Winograd results: its transforms divide by three, so that integers are rounded,
// too. The error of a sum grows with the square root of the number of its products; see
// [simd.Winograd] for its size relative to a plain sum.
func almost(t *testing.T, what any, got, want, x, w []float32, k int) {
	t.Helper()
	rms := func(v []float32) float64 {
		sum := 0.0
		for _, v := range v {
			sum += float64(v) * float64(v)
		}
		return math.Sqrt(sum / float64(len(v)))
	}
	most := 1.2e-5 * math.Sqrt(float64(k)) * rms(x) * rms(w)
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= most) {
			t.Fatalf("%+v: value %d is %v, plain Go gives %v", what, i, got[i], want[i])
		}
	}
}

// TestFewPositions draws 1×1 convolutions over small planes, most of which use positions as GEMM
// rows.
func TestFewPositions(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(11, 12))
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			defer pool.Close()
			few := 0
			for range 100 {
				s := Shape{N: 1 + r.IntN(3), C: 1 + r.IntN(200), OC: 1 + r.IntN(300), H: 1 + r.IntN(7), W: 1 + r.IntN(7), KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, Groups: 1}
				if r.IntN(4) == 0 {
					s.H, s.W = 1, 1
				}
				s.OH, s.OW = s.H, s.W
				x, w, bias := kernels.Values(r, false, s.N*s.H*s.W*s.C), kernels.Values(r, false, s.OC*s.C), kernels.Values(r, false, s.OC)
				if r.IntN(3) == 0 {
					bias = nil
				}
				act := activation.Clamp{On: r.IntN(2) == 0, Min: -1, Max: 4}
				want, got := make([]float32, s.Outputs()), make([]float32, s.Outputs())
				plain(func() { NewNCHW(s, w, bias, act).Run(pool, x, want) })
				c := NewNCHW(s, w, bias, act)
				if c.im2row != nil {
					few++
				}
				c.Run(pool, x, got)
				sets.Agree(t, s, got, want)
				c.SetWeights(w, bias)
				c.Run(pool, x, got)
				sets.Agree(t, s, got, want)
			}
			if simd.FloatKernels() != nil && few < 30 {
				t.Errorf("%d of 100 are products of their positions", few)
			}
		}
	})
}

func anyRequant(r *rand.Rand, n int) quantise.Requant {
	q := quantise.Requant{Zero: int32(r.IntN(100) - 50), Min: -128, Max: int32(r.IntN(128))}
	for range n {
		q.Mul = append(q.Mul, fixed.Multiplier{M: 1<<30 + r.Int32N(1<<30), Shift: r.IntN(4) - 12})
	}
	if r.IntN(2) == 0 {
		q.Mul = q.Mul[:1]
	}
	if r.IntN(3) > 0 {
		q.Bias = make([]int32, n)
		for i := range q.Bias {
			q.Bias[i] = r.Int32N(1<<16) - 1<<15
		}
	}
	return q
}

func TestIntProductSets(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			defer pool.Close()
			for n := range sets.Rounds(300) {
				m, cols, k := 1+r.IntN(30), 1+r.IntN(80), 1+r.IntN(70)
				if n%20 == 0 {
					m, cols, k = 1+r.IntN(200), 1+r.IntN(300), 1+r.IntN(1500)
				}
				x, w := kernels.BytesOf(r, m*k), kernels.WeightsOf(r, cols*k)
				q := anyRequant(r, cols)
				zeros := make([]int32, []int{1, m}[r.IntN(2)])
				for i := range zeros {
					zeros[i] = int32(r.IntN(256) - 128)
				}
				run := func() ([]int32, []int8) {
					p, tables := gemm.NewPackedInt8(cols, k), make([]gemm.ByteTable, len(zeros))
					for i, z := range zeros {
						tables[i].Fill(n%2 == 0, z)
					}
					p.Fill(w, k, 1)
					y, codes := make([]int32, m*cols), make([]int8, m*cols)
					gemm.MultiplyInt8(pool, m, x, tables, p, y)
					q := q
					quantise.RequantRows(pool, codes, y, cols, &q)
					return y, codes
				}
				var want []int32
				var wantCodes []int8
				plain(func() { want, wantCodes = run() })
				got, codes := run()
				if !slices.Equal(got, want) || !slices.Equal(codes, wantCodes) {
					t.Fatalf("%d rows of %d by %d columns differ from plain Go", m, k, cols)
				}
			}
		}
	})
}

func TestIntConvSets(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for range sets.Rounds(400) {
			s := anyConv(r)
			k := s.C / s.Groups * s.KH * s.KW
			x, w := kernels.BytesOf(r, s.N*s.H*s.W*s.C), kernels.WeightsOf(r, s.OC*k)
			q, zero, signed := anyRequant(r, s.OC), int32(r.IntN(255)-128), r.IntN(2) == 0
			w16 := make([]int16, len(w))
			for i, v := range w {
				w16[i] = int16(v)
			}
			run := func() (lines []int8, sums, planes []int32) {
				lines, sums, planes = make([]int8, s.Outputs()), make([]int32, s.Outputs()), make([]int32, s.Outputs())
				c := NewInt8[int8](s, w16, 0, zero, q)
				c.Run(pool, scratch.AsInt8(x), lines)
				c.Run(pool, scratch.AsInt8(x), lines)
				c.Sums(pool, scratch.AsInt8(x), zero+1, sums)
				p := NewSums(s, false, false)
				SetSumWeights(p, w, 0)
				if p.SetZero(true, zero); !signed {
					p.SetZero(false, zero+128)
				}
				p.Run(pool, x, planes)
				p.Run(pool, x, planes)
				return lines, sums, planes
			}
			var want []int8
			var wantSums, wantPlanes []int32
			sets.Go(func() { want, wantSums, wantPlanes = run() })
			sets.In(t, func(simd.Set) {
				got, sums, planes := run()
				if !slices.Equal(got, want) || !slices.Equal(sums, wantSums) {
					t.Fatalf("%+v differs from plain Go", s)
				}
				if !slices.Equal(planes, wantPlanes) {
					t.Fatalf("%+v of planes differs from plain Go", s)
				}
			})
		}
	}
}

// TestTransposedSets compares transposed convolutions with their definition.
func TestTransposedSets(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		r := rand.New(rand.NewPCG(11, 12))
		pool := workers.New(2, nil)
		defer pool.Close()
		for range sets.Rounds(300) {
			s := TransposedShape{
				N: 1 + r.IntN(2), H: 1 + r.IntN(6), W: 1 + r.IntN(30), C: 1 + r.IntN(20), OC: 1 + r.IntN(50),
				KH: 1 + r.IntN(4), KW: 1 + r.IntN(4), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3), PadT: r.IntN(2), PadL: r.IntN(2),
			}
			s.OH, s.OW = max(1, (s.H-1)*s.StrideH+s.KH-s.PadT-r.IntN(2)), max(1, (s.W-1)*s.StrideW+s.KW-s.PadL-r.IntN(2))
			x, w := kernels.Values(r, true, s.N*s.H*s.W*s.C), kernels.Values(r, true, s.OC*s.KH*s.KW*s.C)
			codes, w16, zero := kernels.BytesOf(r, len(x)), make([]int16, len(w)), int32(r.IntN(256))
			for i, v := range kernels.WeightsOf(r, len(w)) {
				w16[i] = int16(v)
			}
			size := s.N * s.OH * s.OW * s.OC
			want, got, wantSums, sums := make([]float32, size), make([]float32, size), make([]int32, size), make([]int32, size)
			for p := range s.N * s.H * s.W {
				for tap := range s.KH * s.KW {
					oy, ox := p/s.W%s.H*s.StrideH-s.PadT+tap/s.KW, p%s.W*s.StrideW-s.PadL+tap%s.KW
					if oy < 0 || oy >= s.OH || ox < 0 || ox >= s.OW {
						continue
					}
					for i := range s.C * s.OC {
						ch, o := i%s.C, i/s.C
						at, wi := ((p/s.W/s.H*s.OH+oy)*s.OW+ox)*s.OC+o, (o*s.KH*s.KW+tap)*s.C+ch
						want[at] += float32(x[p*s.C+ch] * w[wi])
						wantSums[at] += (int32(codes[p*s.C+ch]) - zero) * int32(w16[wi])
					}
				}
			}
			f, q := NewTransposed(s, w), NewTransposedSums(s, w16, 0, false, zero)
			if f == nil || q == nil {
				t.Skip("plain Go")
			}
			f.Run(pool, x, got)
			sets.Agree(t, s, got, want)
			q.Run(pool, codes, sums, make([]int32, q.ScratchSize()))
			if !slices.Equal(sums, wantSums) {
				t.Fatalf("%+v differs", s)
			}
			phasesAgree(t, r, pool, s, codes, w16, zero, wantSums)
		}
	})
}

// phasesAgree compares a transposed convolution computed by phases with its requantised sums.
func phasesAgree(t *testing.T, r *rand.Rand, pool *workers.Pool, s TransposedShape, x []uint8, w []int16, zero int32, sums []int32) {
	zeroW, q := int32(0), anyRequant(r, s.OC)
	if r.IntN(2) == 0 {
		zeroW = 3
		w = slices.Clone(w)
		for i := range w {
			w[i] += 3
		}
	}
	p := NewTransposedInt8[uint8](s, w, zeroW, zero, q)
	if p == nil {
		if s.usePhases(simd.IntKernels()) {
			t.Fatalf("%+v has no phases", s)
		}
		return
	}
	got := make([]uint8, len(sums)+1)
	got[len(sums)] = 77
	p.Run(pool, x, got[:len(sums)])
	for i, v := range sums {
		if want := uint8(q.One(v, i%s.OC)); got[i] != want {
			t.Fatalf("%+v: code %d is %d, want %d", s, i, got[i], want)
		}
	}
	if got[len(sums)] != 77 {
		t.Fatalf("%+v wrote beyond the end", s)
	}
}

// sameSums compares the sums of a convolution, unless its output is channels-last, and its
// requantised results.
func sameSums(t *testing.T, c *Sums, pool *workers.Pool, x []uint8, sums []int32, codes []uint8, q *quantise.Rescale, lastOut bool) {
	t.Helper()
	if !lastOut {
		got := make([]int32, len(sums))
		if c.Run(pool, x, got); !slices.Equal(got, sums) {
			t.Fatalf("%+v, %s: sums differ", c.s, c.Name())
		}
	}
	if c.UsesSIMD() {
		got := make([]uint8, len(codes))
		if c.RunRescaled(pool, x, got, q); !slices.Equal(got, codes) {
			t.Fatalf("%+v, %s, channels last %t: codes differ", c.s, c.Name(), lastOut)
		}
	}
}
