package conv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

// randomWeights returns weights of 9 or 8 bits; some cases use the largest magnitudes only.
func randomWeights(r *rand.Rand, n int) []int32 {
	v := make([]int32, n)
	lo, hi := -255, 256
	switch r.IntN(6) {
	case 0:
		lo = 255
	case 1:
		lo, hi = -128, -127
	case 2, 3:
		lo, hi = -128, 128
	}
	for i := range v {
		v[i] = int32(lo + r.IntN(hi-lo))
	}
	return v
}

func TestGemmQ(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		m, n, k := 1+r.IntN(12), 1+r.IntN(20), r.IntN(40)
		if i%20 == 0 {
			k = 2000 + r.IntN(3000) // several chunks
		}
		x, w := kernels.RandomBytes(r, m*k), randomWeights(r, k*n)
		signed := r.IntN(2) == 0
		tables := make([]gemm.ByteTable, []int{1, m}[r.IntN(2)])
		zero := make([]int32, len(tables))
		for j := range tables {
			zero[j] = kernels.Value(uint8(r.Uint32()), signed)
			tables[j].Fill(signed, zero[j])
		}
		want := make([]int32, m*n)
		for j := range want {
			row := j / n
			for l := range k {
				want[j] += (kernels.Value(x[row*k+l], signed) - zero[min(row, len(zero)-1)]) * w[l*n+j%n]
			}
		}
		p := gemm.NewPackedInt8(n, k)
		p.Fill(w, 1, n)
		got := randomWeights(r, m*n)
		gemm.MultiplyInt8(pool, m, x, tables, p, got)
		if !slices.Equal(got, want) {
			t.Fatalf("%d×%d×%d: %s", m, n, k, cmp.Diff(want, got))
		}
	}
}

// naiveSums convolves in NCHW; x holds bits.
func naiveSums(s Shape, x []uint8, signed bool, zero int32, w []int32) []int32 {
	cg, og := s.C/s.Groups, s.OC/s.Groups
	y := make([]int32, s.N*s.OC*s.OH*s.OW)
	for i := range y {
		ox, oy, o, n := i%s.OW, i/s.OW%s.OH, i/s.OW/s.OH%s.OC, i/s.OW/s.OH/s.OC
		for j := range cg * s.KH * s.KW {
			kx, ky, c := j%s.KW, j/s.KW%s.KH, j/s.KW/s.KH
			iy, ix := oy*s.StrideH-s.PadT+ky*s.DilH, ox*s.StrideW-s.PadL+kx*s.DilW
			if iy < 0 || ix < 0 || iy >= s.H || ix >= s.W {
				continue
			}
			y[i] += (kernels.Value(x[((n*s.C+o/og*cg+c)*s.H+iy)*s.W+ix], signed) - zero) * w[o*cg*s.KH*s.KW+j]
		}
	}
	return y
}

func TestQuantisedConv(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 3} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			pool := workers.New(threads, nil)
			defer pool.Close()
			r := rand.New(rand.NewPCG(7, 8))
			for i := range 300 {
				groups := []int{1, 1, 2, 5}[r.IntN(4)]
				cg, og := 1+r.IntN(5), 1+r.IntN(5)
				if r.IntN(3) == 0 {
					cg = 1
				}
				s := Shape{
					N: 1 + r.IntN(2), C: groups * cg, H: 1 + r.IntN(9), W: 1 + r.IntN(9), OC: groups * og,
					KH: 1 + r.IntN(3), KW: 1 + r.IntN(3), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3),
					DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), PadT: r.IntN(3), PadL: r.IntN(3), Groups: groups,
					OH: 1 + r.IntN(8), OW: 1 + r.IntN(8),
				}
				if i%50 == 0 { // several chunks
					s.C, s.Groups, cg = 200, 1, 200
				}
				testQuantisedConv(t, r, pool, s, cg)
				testByteWeights(t, r, pool, s, cg)
			}
		})
	}
}

func testQuantisedConv(t *testing.T, r *rand.Rand, pool *workers.Pool, s Shape, cg int) {
	t.Helper()
	x, w := kernels.RandomBytes(r, s.N*s.C*s.H*s.W), randomWeights(r, s.OC*cg*s.KH*s.KW)
	signed := r.IntN(2) == 0
	zero := kernels.Value(uint8(r.Uint32()), signed)
	want := naiveSums(s, x, signed, zero, w)
	got := randomWeights(r, len(want))
	c := NewSums(s, false, false)
	SetSumWeights(c, w, 0)
	c.SetZero(signed, zero)
	c.Run(pool, x, got)
	if !slices.Equal(got, want) {
		t.Fatalf("%+v: %s", s, cmp.Diff(want, got))
	}

	q := randomRequant(r, s.OC)
	wn := make([]int16, len(w))
	for i, v := range transpose(w, s.OC, cg, s.KH*s.KW) {
		wn[i] = int16(v)
	}
	xn, sums := transpose(x, s.N, s.C, s.H*s.W), transpose(want, s.N, s.OC, s.OH*s.OW)
	quantised := make([]int32, len(sums))
	for i, v := range sums {
		quantised[i] = q.One(v, i%s.OC)
	}
	check := func(name string, y []int32) {
		if !slices.Equal(y, quantised) {
			t.Fatalf("%s %+v: %s", name, s, cmp.Diff(quantised, y))
		}
	}
	if signed {
		q.Min, q.Max = -128, 127
		for i, v := range sums {
			quantised[i] = q.One(v, i%s.OC)
		}
		xs, y := narrow[int8](xn), make([]int8, len(sums))
		NewInt8[int8](s, wn, 0, zero, q).Run(pool, xs, y)
		check("int8", widen(y))
		return
	}
	y := make([]uint8, len(sums))
	NewInt8[uint8](s, wn, 0, zero, q).Run(pool, xn, y)
	check("uint8", widen(y))
}

// testByteWeights compares 8-bit weights with a zero point with the values that they represent.
func testByteWeights(t *testing.T, r *rand.Rand, pool *workers.Pool, s Shape, cg int) {
	t.Helper()
	if r.IntN(3) == 0 && s.Groups == 1 { // wide enough for an internal transpose
		s.C, cg, s.OC = 16, 16, 16
	}
	x, codes := kernels.RandomBytes(r, s.N*s.C*s.H*s.W), kernels.RandomBytes(r, s.OC*cg*s.KH*s.KW)
	signed, zero := r.IntN(2) == 0, int32(0)
	if r.IntN(2) == 0 {
		zero = kernels.Value(uint8(r.Uint32()), signed)
	}
	w := make([]int32, len(codes))
	for i, v := range codes {
		w[i] = kernels.Value(v, signed) - zero
	}
	want, got := naiveSums(s, x, false, 7, w), make([]int32, s.Outputs())
	c := NewSums(s, false, false)
	c.SetZero(false, 7)
	for range 2 { // constant weights may be stored differently than changing ones
		if signed {
			SetSumWeights(c, narrow[int8](codes), zero)
		} else {
			SetSumWeights(c, codes, zero)
		}
		if c.Run(pool, x, got); !slices.Equal(got, want) {
			t.Fatalf("weights of 8 bits, signed %t, zero point %d, %+v: %s", signed, zero, s, cmp.Diff(want, got))
		}
	}
}

func narrow[T int8 | uint8](x []uint8) []T {
	y := make([]T, len(x))
	for i, v := range x {
		y[i] = T(v)
	}
	return y
}

func widen[T int8 | uint8](x []T) []int32 {
	y := make([]int32, len(x))
	for i, v := range x {
		y[i] = int32(v)
	}
	return y
}

func transpose[T any](x []T, n, c, area int) []T {
	y := make([]T, len(x))
	for i := range x {
		p, ch, b := i%area, i/area%c, i/area/c
		y[(b*area+p)*c+ch] = x[i]
	}
	return y
}

func randomRequant(r *rand.Rand, channels int) quantise.Requant {
	q := quantise.Requant{Zero: int32(r.IntN(256)), Min: int32(r.IntN(20)), Max: 255 - int32(r.IntN(20))}
	for range []int{1, channels}[r.IntN(2)] {
		q.Mul = append(q.Mul, fixed.Multiplier{M: 1<<30 + r.Int32N(1<<30), Shift: r.IntN(40) - 33})
	}
	if r.IntN(2) == 0 {
		q.Bias = randomWeights(r, channels)
	}
	return q
}

func TestRequant(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		const n = 100
		q := randomRequant(r, n)
		q.Prepare(n)
		sums, got := make([]int32, n), make([]uint8, n)
		for i := range sums {
			sums[i] = int32(r.Uint32()) >> r.IntN(32)
		}
		quantise.RequantRow(got, sums, &q, 0)
		for i, v := range sums {
			if want := uint8(q.One(v, i)); got[i] != want {
				t.Fatalf("%d with %+v: got %d, want %d", v, q.Multiplier(i), got[i], want)
			}
		}
	}
}

func BenchmarkQuantised(b *testing.B) {
	s := Shape{N: 1, C: 64, H: 28, W: 28, OC: 64, OH: 28, OW: 28, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
	x, y, w := make([]int8, 64*28*28), make([]int8, 64*28*28), make([]int16, 64*64*9)
	q := quantise.Requant{Mul: []fixed.Multiplier{{M: 1 << 30, Shift: -8}}, Min: -128, Max: 127}
	b.Run("nhwc", func(b *testing.B) {
		c := NewInt8[int8](s, w, 0, 3, q)
		kernels.Quickest(b, "GOP/s", 2*64*64*9*28*28, func() { c.Run(nil, x, y) })
	})
	b.Run("nchw", func(b *testing.B) {
		c, sums := NewSums(s, false, false), make([]int32, len(y))
		SetSumWeights(c, make([]int32, len(w)), 0)
		kernels.Quickest(b, "GOP/s", 2*64*64*9*28*28, func() { c.Run(nil, quantise.Bits(x), sums) })
	})
	b.Run("depthwise", func(b *testing.B) {
		d := s
		d.Groups = 64
		c := NewInt8[int8](d, w[:64*9], 0, 3, q)
		kernels.Quickest(b, "GOP/s", 2*64*9*28*28, func() { c.Run(nil, x, y) })
	})
	b.Run("product", func(b *testing.B) {
		p, sums := gemm.NewPackedInt8(384, 384), make([]int32, 64*384)
		p.Fill(make([]int32, 384*384), 1, 384)
		var t gemm.ByteTable
		kernels.Quickest(b, "GOP/s", 2*64*384*384, func() { gemm.MultiplyInt8(nil, 64, quantise.Bits(x), []gemm.ByteTable{t}, p, sums) })
	})
}
