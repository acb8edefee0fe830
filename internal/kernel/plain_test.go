package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// wholes returns small random integers: their sums are exact in any order.
func wholes(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.IntN(19) - 9)
	}
	return v
}

// TestRanges checks that outputs and taps whose input lies inside form an interval.
func TestRanges(t *testing.T) {
	t.Parallel()
	interval := func(n int, inside func(i int) bool) (in []int) {
		for i := range n {
			if inside(i) {
				in = append(in, i)
			}
		}
		return in
	}
	for n := range 7 {
		for step := 1; step <= 3; step++ {
			for start := -8; start <= 8; start++ {
				for size := range 7 {
					want := interval(n, func(i int) bool { v := i*step + start; return v >= 0 && v < size })
					lo, hi := span(n, step, start, size)
					if lo > hi || lo < 0 || hi > n || hi-lo != len(want) || len(want) > 0 && lo != want[0] {
						t.Fatalf("span(%d, %d, %d, %d) is %d to %d, want %v", n, step, start, size, lo, hi, want)
					}
					lo, hi = taps(start, step, n, size)
					if lo > hi || hi-lo != len(want) || len(want) > 0 && lo != want[0] {
						t.Fatalf("taps(%d, %d, %d, %d) is %d to %d, want %v", start, step, n, size, lo, hi, want)
					}
				}
			}
		}
	}
}

// TestTapLine checks the input of output positions through one tap, from any position.
func TestTapLine(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		s := &ConvShape{
			C: 1 + r.IntN(3), H: 1 + r.IntN(5), W: 1 + r.IntN(5), OH: 1 + r.IntN(5), OW: 1 + r.IntN(5),
			StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3), DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), PadT: r.IntN(3), PadL: r.IntN(3),
		}
		ky, kx, ch := r.IntN(3), r.IntN(3), r.IntN(s.C)
		picture := make([]int, s.H*s.W*s.C) // [H,W,C]
		plane := make([]int, s.H*s.W)
		for i := range picture {
			picture[i] = 100 + i
		}
		for i := range plane {
			plane[i] = picture[i*s.C+ch]
		}
		see := func(p, zero int) int {
			y, x := p/s.OW*s.StrideH-s.PadT+ky*s.DilH, p%s.OW*s.StrideW-s.PadL+kx*s.DilW
			if y < 0 || x < 0 || y >= s.H || x >= s.W {
				return zero
			}
			return plane[y*s.W+x]
		}
		p0 := r.IntN(s.OH * s.OW)
		np := 1 + r.IntN(s.OH*s.OW-p0)
		line := make([]int, np)
		got := tapRow(s, line, plane, ky, kx, p0, np, -7)
		if len(got) != np {
			t.Fatalf("%+v: %d positions, want %d", s, len(got), np)
		}
		for i, v := range got {
			if want := see(p0+i, -7); v != want {
				t.Fatalf("%+v, tap %d %d: position %d sees %d, want %d", s, ky, kx, p0+i, v, want)
			}
			if v := tapRun(s, picture, []int{-9}, p0+i, ky, kx, ch, 1)[0]; v != see(p0+i, -9) {
				t.Fatalf("%+v, tap %d %d: position %d of the picture sees %d, want %d", s, ky, kx, p0+i, v, see(p0+i, -9))
			}
		}
	}
}

func TestInnerProducts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		a, b := wholes(r, n), wholes(r, n+r.IntN(3))
		want := float32(0)
		for i := range a {
			want += a[i] * b[i]
		}
		if got := vectors.Dot(a, b); got != want {
			t.Errorf("%d elements: %v, want %v", n, got, want)
		}
		if got := vectors.Dot(b, a); got != want {
			t.Errorf("%d elements, the longer first: %v, want %v", n, got, want)
		}
		for rows := range 20 {
			ld := n + r.IntN(3)
			m := wholes(r, max(0, rows-1)*ld+n)
			dst := wholes(r, rows)
			sums := slices.Clone(dst)
			for i := range sums {
				for k, v := range a {
					sums[i] += v * m[i*ld+k]
				}
			}
			dotRows(dst, a, m, ld)
			if !slices.Equal(dst, sums) {
				t.Fatalf("%d rows of %d: %v, want %v", rows, n, dst, sums)
			}
		}
	}
	for n := range 8 {
		a, b, d := wholes(r, n), wholes(r, n), make([]float32, 2*n)
		interleave(d, a, b)
		for i := range a {
			if d[2*i] != a[i] || d[2*i+1] != b[i] {
				t.Fatalf("%v and %v make %v", a, b, d)
			}
		}
	}
}

// TestPanels checks that the micro-kernels multiply panels of any length, and that packing pads
// panels with zeros.
func TestPanels(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for k := range 40 {
		a, b, c := wholes(r, 2*k), wholes(r, 4*k), wholes(r, 4*k)
		var want [8]float32
		for i := range k {
			for x := range 2 {
				for y := range 4 {
					want[4*x+y] += a[2*i+x] * b[4*i+y]
				}
			}
		}
		acc := [8]float32{9, 9, 9, 9, 9, 9, 9, 9}
		if micro(k, a, b, &acc); acc != want {
			t.Fatalf("%d steps: %v, want %v", k, acc, want)
		}
		want = [8]float32{}
		for i := range k {
			for y := range 4 {
				want[y] += a[i] * b[4*i+y]
				want[4+y] += a[i] * c[4*i+y]
			}
		}
		if microRow(k, a, b, c, &acc); acc != want {
			t.Fatalf("%d steps of a row: %v, want %v", k, acc, want)
		}
		for n := 1; n < 10; n++ {
			for _, w := range []int{2, 4} {
				for _, trans := range []bool{false, true} {
					vec, elem := k+1, 1
					if trans {
						vec, elem = 1, n+2
					}
					src := wholes(r, (n+2)*(k+2))
					dst := make([]float32, roundUp(n, w)*k)
					for i := range dst {
						dst[i] = 99
					}
					pack(dst, src, n, k, w, vec, elem)
					for j := range roundUp(n, w) {
						for i := range k {
							want := float32(0)
							if j < n {
								want = src[j*vec+i*elem]
							}
							if got := dst[j/w*w*k+i*w+j%w]; got != want {
								t.Fatalf("%d vectors of %d in panels of %d: element %d of %d is %v, want %v", n, k, w, i, j, got, want)
							}
						}
					}
				}
			}
		}
	}
	for n := range 20 {
		for _, to := range []int{1, 2, 4} {
			if got := roundUp(n, to); got < n || got%to != 0 || got-n >= to {
				t.Errorf("%d rounded up to %d is %d", n, to, got)
			}
		}
	}
}

// TestStrides multiplies parts of larger matrices and checks that the rest stays unchanged.
func TestStrides(t *testing.T) {
	t.Parallel()
	pool := workers.New(3, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		g := GemmParams{M: 1 + r.IntN(9), N: 1 + r.IntN(30), K: 1 + r.IntN(30), TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0, Accumulate: r.IntN(2) == 0}
		ar, ac, br, bc := g.M, g.K, g.K, g.N
		if g.TransA {
			ar, ac = ac, ar
		}
		if g.TransB {
			br, bc = bc, br
		}
		g.LDA, g.LDB, g.LDC = ac+1+r.IntN(3), bc+1+r.IntN(3), g.N+1+r.IntN(3)
		if r.IntN(2) == 0 {
			g.Act = activation.Clamp{On: true, Min: -20, Max: []float32{inf, 20}[r.IntN(2)]}
		}
		if r.IntN(2) == 0 {
			g.BiasM = wholes(r, g.M)
		}
		if r.IntN(2) == 0 {
			g.BiasN = wholes(r, g.N)
		}
		a, b, c := wholes(r, ar*g.LDA), wholes(r, br*g.LDB), wholes(r, g.M*g.LDC)
		want := slices.Clone(c)
		for m := range g.M {
			for n := range g.N {
				v := float32(0)
				if g.Accumulate {
					v = c[m*g.LDC+n]
				}
				for k := range g.K {
					x, y := a[min(m*g.LDA+k, len(a)-1)], b[min(k*g.LDB+n, len(b)-1)]
					if g.TransA {
						x = a[k*g.LDA+m]
					}
					if g.TransB {
						y = b[n*g.LDB+k]
					}
					v += x * y
				}
				if g.BiasM != nil {
					v += g.BiasM[m]
				}
				if g.BiasN != nil {
					v += g.BiasN[n]
				}
				if g.Act.On {
					v = min(max(v, g.Act.Min), g.Act.Max)
				}
				want[m*g.LDC+n] = v
			}
		}
		packed, one := slices.Clone(c), slices.Clone(c)
		Gemm(pool, g, a, b, c)
		if !slices.Equal(c, want) {
			t.Fatalf("%+v: %v, want %v", g, c, want)
		}
		Gemm(nil, g, a, b, one)
		if !slices.Equal(one, want) {
			t.Fatalf("%+v without workers: %v, want %v", g, one, want)
		}
		GemmPacked(pool, g, a, PackB(g.K, g.N, b, g.LDB, g.TransB), packed)
		if !slices.Equal(packed, want) {
			t.Fatalf("%+v packed: %v, want %v", g, packed, want)
		}
	}
	// Empty multiplications write nothing.
	c := []float32{5}
	Gemm(pool, GemmParams{M: 0, N: 1, K: 1}, nil, []float32{1}, c)
	Gemm(pool, GemmParams{M: 1, N: 0, K: 1}, []float32{1}, nil, c)
	if c[0] != 5 {
		t.Errorf("c is %v", c)
	}
}

func TestGemmNames(t *testing.T) {
	defer simd.Use(simd.Go)()
	for _, c := range []struct {
		g    GemmParams
		want string
	}{
		{GemmParams{M: 3, N: 9, K: 9}, "thin"},
		{GemmParams{M: 4, N: 9, K: 9}, "unpacked"},
		{GemmParams{M: 3, N: 9, K: 9, TransA: true}, "unpacked"},
		{GemmParams{M: 9, N: 9, K: 0}, "thin"},
		{GemmParams{M: 9, N: 9, K: 0, TransA: true}, "thin"},
		{GemmParams{M: 9, N: 9, K: 1}, "unpacked"},
	} {
		if got := GemmName(c.g); got != c.want {
			t.Errorf("%+v is %s, want %s", c.g, got, c.want)
		}
	}
}

// TestLong covers sums and patches longer than the usual scratch buffers.
func TestLong(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	r := rand.New(rand.NewPCG(9, 10))
	const k, n, m = 40000, 3, 5
	a, b := make([]float32, m*k), make([]float32, k*n)
	for i := range a {
		a[i] = float32(r.IntN(3) - 1)
	}
	for i := range b {
		b[i] = float32(r.IntN(3) - 1)
	}
	want := make([]float32, m*n)
	for i := range want {
		for j := range k {
			want[i] += a[i/n*k+j] * b[j*n+i%n]
		}
	}
	got := make([]float32, m*n)
	Gemm(pool, GemmParams{M: m, N: n, K: k}, a, b, got)
	if !slices.Equal(got, want) {
		t.Errorf("product %v, want %v", got, want)
	}
	xq, wq, sums, wantQ := make([]uint8, m*k), make([]int32, k*n), make([]int32, m*n), make([]int32, m*n)
	for i := range xq {
		xq[i] = uint8(r.Uint32())
	}
	for i := range wq {
		wq[i] = int32(r.IntN(255) - 127)
	}
	for i := range wantQ {
		for j := range k {
			wantQ[i] += (int32(xq[i/n*k+j]) - 3) * wq[j*n+i%n]
		}
	}
	p, tables := NewPackedQ(n, k), make([]ByteTable, 1)
	p.Fill(wq, 1, n)
	tables[0].Fill(false, 3)
	GemmQ(pool, m, xq, tables, p, sums)
	if !slices.Equal(sums, wantQ) {
		t.Errorf("integers %v, want %v", sums, wantQ)
	}
	// A convolution over so many channels: a position is a GEMM row.
	s := ConvShape{N: 1, C: k, H: 1, W: m, OC: n, OH: 1, OW: m, KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1}
	w := make([]float32, n*k)
	for i := range w {
		w[i] = b[i%k*n+i/k]
	}
	y := make([]float32, m*n)
	NewConvNHWC(s, w, nil, activation.Clamp{}).Run(pool, a, y)
	if !slices.Equal(y, want) {
		t.Errorf("convolution %v, want %v", y, want)
	}
	NewConvNCHW(s, w, nil, activation.Clamp{}).Run(pool, transpose(a, 1, m, k), y)
	if got := transpose(y, 1, n, m); !slices.Equal(got, want) {
		t.Errorf("convolution of planes %v, want %v", got, want)
	}
	w16, yq := make([]int16, n*k), make([]int32, m*n)
	for i := range w16 {
		w16[i] = int16(wq[i%k*n+i/k])
	}
	NewConvQ[uint8](s, w16, 0, 3, Requant{}).Sums(pool, xq, 3, yq)
	if !slices.Equal(yq, wantQ) {
		t.Errorf("convolution of integers %v, want %v", yq, wantQ)
	}
	// Another zero point needs no other weights.
	for i := range wantQ {
		for j := range k {
			wantQ[i] -= 4 * wq[j*n+i%n]
		}
	}
	c := NewConvQ[uint8](s, w16, 0, 3, Requant{})
	c.Sums(pool, xq, 7, yq)
	if !slices.Equal(yq, wantQ) {
		t.Errorf("with another zero point %v, want %v", yq, wantQ)
	}
}

// TestLanes checks that two sums in one float64 separate for all signs.
func TestLanes(t *testing.T) {
	const most = lane/2 - 1
	for _, lo := range []int32{0, 1, -1, 12345, -12345, most, -most} {
		for _, hi := range []int32{0, 1, -1, 999, -999, most, -most} {
			if l, h := lanes(float64(lo) + float64(hi)*lane); l != lo || h != hi {
				t.Errorf("%d and %d come apart as %d and %d", lo, hi, l, h)
			}
		}
	}
	defer simd.Use(simd.Go)()
	var b ByteTable
	for _, signed := range []bool{false, true} {
		for _, zero := range []int32{-128, 0, 3, 255} {
			b.Fill(signed, zero)
			for i, v := range b.values {
				want := float64(value(uint8(i), signed) - zero)
				if v != want {
					t.Fatalf("signed %v, zero %d: %d is %v, want %v", signed, zero, i, v, want)
				}
			}
		}
	}
}

// TestRequantOne checks (sum + bias)·m + zero within the limits.
func TestRequantOne(t *testing.T) {
	t.Parallel()
	half, quarter := fixed.FromReal(0.5), fixed.FromReal(0.25)
	for _, c := range []struct {
		q    Requant
		acc  int32
		ch   int
		want int32
	}{
		{Requant{Mul: []fixed.Multiplier{half}, Min: -128, Max: 127}, 10, 3, 5},
		{Requant{Mul: []fixed.Multiplier{half, quarter}, Min: -128, Max: 127}, 40, 1, 10},
		{Requant{Mul: []fixed.Multiplier{half, quarter}, Bias: []int32{4, 8}, Min: -128, Max: 127}, 40, 0, 22},
		{Requant{Mul: []fixed.Multiplier{half, quarter}, Bias: []int32{4, 8}, Zero: -3, Min: -128, Max: 127}, 40, 1, 9},
		{Requant{Mul: []fixed.Multiplier{half}, Zero: 100, Min: 0, Max: 120}, 60, 0, 120},
		{Requant{Mul: []fixed.Multiplier{half}, Zero: 100, Min: 90, Max: 120}, -60, 0, 90},
	} {
		if got := c.q.One(c.acc, c.ch); got != c.want {
			t.Errorf("%+v of channel %d: %d, want %d", c.q, c.ch, got, c.want)
		}
	}
	q := Requant{Mul: []fixed.Multiplier{half, quarter, half}, Bias: []int32{0, 4, 2}, Zero: 1, Min: -128, Max: 127}
	var sums []int32
	var want []int8
	for i := range 3000 {
		v := int32(i%37-18) * 4
		sums = append(sums, v)
		want = append(want, int8([]int32{v/2 + 1, (v+4)/4 + 1, (v+2)/2 + 1}[i%3]))
	}
	pool := workers.New(2, nil)
	defer pool.Close()
	y := make([]int8, len(sums))
	if RequantRows(pool, y, sums, 3, &q); !slices.Equal(y, want) {
		t.Errorf("rows %v, want %v", y[:9], want[:9])
	}
	RequantRows(pool, y[:0], nil, 0, &q) // no channels
}

// TestConvNames checks the algorithm that each shape selects in plain Go.
func TestConvNames(t *testing.T) {
	defer simd.Use(simd.Go)()
	shape := func(c, oc, groups, k, stride, dil int) ConvShape {
		return ConvShape{N: 1, C: c, H: 16, W: 16, OC: oc, OH: 16, OW: 16, KH: k, KW: k, StrideH: stride, StrideW: stride, DilH: dil, DilW: dil, PadT: 1, PadL: 1, Groups: groups}
	}
	for _, c := range []struct {
		s          ConvShape
		nchw, nhwc string
		q          string
	}{
		{shape(8, 8, 1, 5, 1, 1), "im2col", "im2col", "im2col"},
		{shape(8, 8, 8, 3, 1, 1), "depthwise", "depthwise", "depthwise"},
		{shape(8, 16, 8, 3, 1, 1), "depthwise", "depthwise", "depthwise"},
		{shape(8, 8, 4, 3, 1, 1), "im2col", "im2col", "im2col"},
		{shape(1, 8, 1, 3, 1, 1), "im2col", "im2col", "im2col"},
		{shape(32, 32, 1, 3, 1, 1), "winograd", "im2col", "im2col"},
		{shape(16, 16, 1, 3, 1, 1), "winograd", "im2col", "im2col"},
		{shape(15, 16, 1, 3, 1, 1), "im2col", "im2col", "im2col"},
		{shape(16, 15, 1, 3, 1, 1), "im2col", "im2col", "im2col"},
		{shape(32, 32, 2, 3, 1, 1), "winograd", "im2col", "im2col"},
		{shape(32, 32, 4, 3, 1, 1), "im2col", "im2col", "im2col"},
		{shape(32, 32, 1, 3, 2, 1), "im2col", "im2col", "im2col"},
		{shape(32, 32, 1, 3, 1, 2), "im2col", "im2col", "im2col"},
		{shape(32, 32, 0, 3, 1, 1), "winograd", "im2col", "im2col"},
	} {
		n := c.s.OC * c.s.C / max(1, c.s.Groups) * c.s.KH * c.s.KW
		w := make([]float32, n)
		if got := NewConvNCHW(c.s, w, nil, activation.Clamp{}).Name(); got != c.nchw {
			t.Errorf("%+v of planes: %s, want %s", c.s, got, c.nchw)
		}
		if got := NewConvNHWC(c.s, w, nil, activation.Clamp{}).Name(); got != c.nhwc {
			t.Errorf("%+v: %s, want %s", c.s, got, c.nhwc)
		}
		if got := NewConvQ[int8](c.s, make([]int16, n), 0, 0, Requant{}).Name(); got != c.q {
			t.Errorf("%+v of integers: %s, want %s", c.s, got, c.q)
		}
		if c.s.Groups > 0 {
			if got := NewConvSums(c.s, false, false).Name(); got != c.q {
				t.Errorf("%+v of sums: %s, want %s", c.s, got, c.q)
			}
		}
	}
}

// TestThreeRow checks rows of the 3×3 convolution over a padded plane, for every length from four
// and both strides: the last four outputs may overlap the previous ones.
func TestThreeRow(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	for n := 4; n < 14; n++ {
		for stride := 1; stride <= 2; stride++ {
			width := (n-1)*stride + 3
			in, out := wholes(r, 3*width), make([]float32, n)
			w := [9]float32(wholes(r, 9))
			threeRow(out, in, width, stride, &w, 5)
			for i, v := range out {
				want := float32(5)
				for k, f := range w {
					want += f * in[k/3*width+i*stride+k%3]
				}
				if v != want {
					t.Fatalf("%d outputs by %d: output %d is %v, want %v", n, stride, i, v, want)
				}
			}
		}
	}
}
