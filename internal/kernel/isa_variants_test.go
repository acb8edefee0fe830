package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// values returns any values for exact kernels. Other kernels round differently; they get small
// integers, whose sums are exact in any order.
func values(r *rand.Rand, exact bool, n int) []float32 {
	if !exact {
		return wholes(r, n)
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func TestProductSets(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			defer pool.Close()
			for n := range sets.Rounds(300) {
				g := GemmParams{M: 1 + r.IntN(40), N: 1 + r.IntN(90), K: 1 + r.IntN(60), TransA: r.IntN(3) == 0, TransB: r.IntN(2) == 0, Exact: r.IntN(2) == 0, Accumulate: r.IntN(3) == 0}
				if n%10 == 0 {
					g.M, g.N, g.K = 1+r.IntN(300), 1+r.IntN(300), 1+r.IntN(1200)
				}
				if n%4 == 0 {
					g.M = 1 + r.IntN(4)
				}
				lda, ldb := g.K, g.N
				rowsA, rowsB := g.M, g.K
				if g.TransA {
					lda, rowsA = g.M, g.K
				}
				if g.TransB {
					ldb, rowsB = g.K, g.N
				}
				if r.IntN(2) == 0 {
					lda, ldb = lda+r.IntN(4), ldb+r.IntN(4)
					g.LDA, g.LDB, g.LDC = lda, ldb, g.N+r.IntN(4)
				}
				a, b := values(r, g.Exact, (rowsA-1)*lda+max(g.K, g.M)), values(r, g.Exact, rowsB*ldb)
				prune(r, b, ldb)
				if r.IntN(2) == 0 {
					g.BiasN = values(r, g.Exact, g.N)
				} else if r.IntN(2) == 0 {
					g.BiasM = values(r, g.Exact, g.M)
				}
				if g.Exact && g.Accumulate {
					// The order of the bias and the old value differs between the plain variants,
					// too; no caller uses both and needs exact bits.
					g.BiasN, g.BiasM = nil, nil
				}
				if r.IntN(2) == 0 {
					g.Act = activation.Clamp{On: true, Min: -1, Max: 3}
				}
				c := values(r, g.Exact, g.M*orDefault(g.LDC, g.N))
				clone := func() []float32 { return append([]float32(nil), c...) }
				want, wantP, got, gotP := clone(), clone(), clone(), clone()
				plain(func() {
					Gemm(pool, g, a, b, want)
					GemmPacked(pool, g, a, PackB(g.K, g.N, b, g.LDB, g.TransB), wantP)
				})
				Gemm(pool, g, a, b, got)
				GemmPacked(pool, g, a, PackB(g.K, g.N, b, g.LDB, g.TransB), gotP)
				// Few rows of an unpacked matrix: plain Go continues from the old values of c.
				if !g.Exact || !g.Accumulate || g.M > 3 || g.TransB {
					sets.Agree(t, g, got, want)
				}
				sets.Agree(t, g, gotP, wantP)
			}
		}
	})
}

// prune sometimes sets values of some rows to zero: any, or at the same steps of four rows.
func prune(r *rand.Rand, w []float32, row int) {
	kind, share := r.IntN(4), []float64{0.3, 0.5, 0.7, 0.9, 1}[r.IntN(5)]
	for i := 0; kind == 0 && i < len(w); i++ {
		if r.Float64() < share {
			w[i] = 0
		}
	}
	for i := 0; kind == 1 && i < len(w); i++ {
		if i/row%4 == 0 && r.Float64() < share {
			for j := i; j < min(len(w), i+4*row); j += row {
				w[j] = 0
			}
		}
	}
}

// anyConv draws a convolution, sometimes a depthwise one.
func anyConv(r *rand.Rand) ConvShape {
	s := ConvShape{
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
				x, w := values(r, nhwc, s.N*s.H*s.W*s.C), values(r, nhwc, s.OC*k)
				if s.C > s.Groups {
					prune(r, w, k)
				}
				var bias []float32
				if r.IntN(3) > 0 {
					bias = values(r, nhwc, s.OC)
				}
				build := NewConvNCHW
				if nhwc {
					build = NewConvNHWC
				}
				want := make([]float32, s.outputs())
				sets.Go(func() { build(s, w, bias, act).Run(pool, x, want) })
				sets.In(t, func(simd.Set) {
					c, got := build(s, w, bias, act), make([]float32, s.outputs())
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
// [simd.Minimal] for its size relative to a plain sum.
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
				s := ConvShape{N: 1 + r.IntN(3), C: 1 + r.IntN(200), OC: 1 + r.IntN(300), H: 1 + r.IntN(7), W: 1 + r.IntN(7), KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, Groups: 1}
				if r.IntN(4) == 0 {
					s.H, s.W = 1, 1
				}
				s.OH, s.OW = s.H, s.W
				x, w, bias := values(r, false, s.N*s.H*s.W*s.C), values(r, false, s.OC*s.C), values(r, false, s.OC)
				if r.IntN(3) == 0 {
					bias = nil
				}
				act := activation.Clamp{On: r.IntN(2) == 0, Min: -1, Max: 4}
				want, got := make([]float32, s.outputs()), make([]float32, s.outputs())
				plain(func() { NewConvNCHW(s, w, bias, act).Run(pool, x, want) })
				c := NewConvNCHW(s, w, bias, act)
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

func bytesOf(r *rand.Rand, n int) []uint8 {
	v := make([]uint8, n)
	for i := range v {
		if v[i] = uint8(r.Uint32()); r.IntN(8) == 0 {
			v[i] = []uint8{0, 127, 128, 255}[r.IntN(4)]
		}
	}
	return v
}

// weightsOf returns differences of 8-bit weights to a zero point, of 8 or 9 bits.
func weightsOf(r *rand.Rand, n int) []int32 {
	v, wide := make([]int32, n), r.IntN(2) == 0
	for i := range v {
		if v[i] = int32(r.IntN(256) - 128); wide {
			v[i] = int32(r.IntN(511) - 255)
		}
	}
	return v
}

func anyRequant(r *rand.Rand, n int) Requant {
	q := Requant{Zero: int32(r.IntN(100) - 50), Min: -128, Max: int32(r.IntN(128))}
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
				x, w := bytesOf(r, m*k), weightsOf(r, cols*k)
				q := anyRequant(r, cols)
				zeros := make([]int32, []int{1, m}[r.IntN(2)])
				for i := range zeros {
					zeros[i] = int32(r.IntN(256) - 128)
				}
				run := func() ([]int32, []int8) {
					p, tables := NewPackedQ(cols, k), make([]ByteTable, len(zeros))
					for i, z := range zeros {
						tables[i].Fill(n%2 == 0, z)
					}
					p.Fill(w, k, 1)
					y, codes := make([]int32, m*cols), make([]int8, m*cols)
					GemmQ(pool, m, x, tables, p, y)
					q := q
					RequantRows(pool, codes, y, cols, &q)
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
			x, w := bytesOf(r, s.N*s.H*s.W*s.C), weightsOf(r, s.OC*k)
			q, zero, signed := anyRequant(r, s.OC), int32(r.IntN(255)-128), r.IntN(2) == 0
			w16 := make([]int16, len(w))
			for i, v := range w {
				w16[i] = int16(v)
			}
			run := func() (lines []int8, sums, planes []int32) {
				lines, sums, planes = make([]int8, s.outputs()), make([]int32, s.outputs()), make([]int32, s.outputs())
				c := NewConvQ[int8](s, w16, 0, zero, q)
				c.Run(pool, asInt8(x), lines)
				c.Run(pool, asInt8(x), lines)
				c.Sums(pool, asInt8(x), zero+1, sums)
				p := NewConvSums(s, false, false)
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

// TestPoolSets compares windows with their definition.
func TestPoolSets(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		r := rand.New(rand.NewPCG(9, 10))
		pool := workers.New(2, nil)
		defer pool.Close()
		for range sets.Rounds(400) {
			s := anyConv(r)
			s.C = 1 + r.IntN(70)
			p := Pool{Shape: s, NHWC: r.IntN(2) == 0, Max: r.IntN(2) == 0, NaN: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				p.Clamp = activation.Clamp{On: true, Min: -1, Max: 1}
			}
			if !p.Prepare() {
				t.Skip("plain Go")
			}
			s = p.Shape
			x := values(r, true, s.N*s.C*s.H*s.W)
			if r.IntN(4) == 0 {
				x[r.IntN(len(x))] = float32(math.NaN())
			}
			at := func(n, ch, y, x, h, w int) int {
				if p.NHWC {
					return ((n*h+y)*w+x)*s.C + ch
				}
				return ((n*s.C+ch)*h+y)*w + x
			}
			got, want := make([]float32, s.outputs()), make([]float32, s.outputs())
			counts := make([]float32, s.OH*s.OW)
			for i := range want {
				ox, oy, ch, n := i%s.OW, i/s.OW%s.OH, i/s.OW/s.OH%s.C, i/s.OW/s.OH/s.C
				sum, cells := float32(0), 0
				if p.Max {
					sum = float32(math.Inf(-1))
				}
				for ky := range s.KH {
					for kx := range s.KW {
						iy, ix := oy*s.StrideH+ky*s.DilH-s.PadT, ox*s.StrideW+kx*s.DilW-s.PadL
						if iy < 0 || iy >= s.H || ix < 0 || ix >= s.W {
							continue
						}
						v := x[at(n, ch, iy, ix, s.H, s.W)]
						cells++
						switch {
						case !p.Max:
							sum += v
						case p.NaN:
							sum = max(sum, v)
						case v > sum:
							sum = v
						}
					}
				}
				counts[oy*s.OW+ox] = float32(max(cells, 1))
				switch {
				case !p.Max:
					sum /= float32(max(cells, 1))
				case p.Clamp.On:
					sum = min(max(sum, p.Clamp.Min), p.Clamp.Max)
				}
				want[at(n, ch, oy, ox, s.OH, s.OW)] = sum
			}
			for range 2 {
				p.Run(pool, x, got)
				if !p.Max {
					p.Divide(pool, got, counts)
				}
				sets.Agree(t, p, got, want)
			}
		}
	})
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
			x, w := values(r, true, s.N*s.H*s.W*s.C), values(r, true, s.OC*s.KH*s.KW*s.C)
			codes, w16, zero := bytesOf(r, len(x)), make([]int16, len(w)), int32(r.IntN(256))
			for i, v := range weightsOf(r, len(w)) {
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
			f, q := NewTransposedConv(s, w), NewTransposedSums(s, w16, 0, false, zero)
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
	p := NewTransposedQ[uint8](s, w, zeroW, zero, q)
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
func sameSums(t *testing.T, c *ConvSums, pool *workers.Pool, x []uint8, sums []int32, codes []uint8, q *Rescale, lastOut bool) {
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
