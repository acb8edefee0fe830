package conv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

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
		s := &Shape{
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
				t.Fatalf("%+v, tap %d %d: position %d of the image sees %d, want %d", s, ky, kx, p0+i, v, see(p0+i, -9))
			}
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
	gemm.Multiply(pool, gemm.Params{M: m, N: n, K: k}, a, b, got)
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
	p, tables := gemm.NewPackedInt8(n, k), make([]gemm.ByteTable, 1)
	p.Fill(wq, 1, n)
	tables[0].Fill(false, 3)
	gemm.MultiplyInt8(pool, m, xq, tables, p, sums)
	if !slices.Equal(sums, wantQ) {
		t.Errorf("integers %v, want %v", sums, wantQ)
	}
	// A convolution over so many channels: a position is a GEMM row.
	s := Shape{N: 1, C: k, H: 1, W: m, OC: n, OH: 1, OW: m, KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1}
	w := make([]float32, n*k)
	for i := range w {
		w[i] = b[i%k*n+i/k]
	}
	y := make([]float32, m*n)
	NewNHWC(s, w, nil, activation.Clamp{}).Run(pool, a, y)
	if !slices.Equal(y, want) {
		t.Errorf("convolution %v, want %v", y, want)
	}
	NewNCHW(s, w, nil, activation.Clamp{}).Run(pool, transpose(a, 1, m, k), y)
	if got := transpose(y, 1, n, m); !slices.Equal(got, want) {
		t.Errorf("convolution of planes %v, want %v", got, want)
	}
	w16, yq := make([]int16, n*k), make([]int32, m*n)
	for i := range w16 {
		w16[i] = int16(wq[i%k*n+i/k])
	}
	NewInt8[uint8](s, w16, 0, 3, quantise.Requant{}).Sums(pool, xq, 3, yq)
	if !slices.Equal(yq, wantQ) {
		t.Errorf("convolution of integers %v, want %v", yq, wantQ)
	}
	// Another zero point needs no other weights.
	for i := range wantQ {
		for j := range k {
			wantQ[i] -= 4 * wq[j*n+i%n]
		}
	}
	c := NewInt8[uint8](s, w16, 0, 3, quantise.Requant{})
	c.Sums(pool, xq, 7, yq)
	if !slices.Equal(yq, wantQ) {
		t.Errorf("with another zero point %v, want %v", yq, wantQ)
	}
}

// TestConvNames checks the algorithm that each shape selects in plain Go.
func TestConvNames(t *testing.T) {
	defer simd.Use(simd.Go)()
	shape := func(c, oc, groups, k, stride, dil int) Shape {
		return Shape{N: 1, C: c, H: 16, W: 16, OC: oc, OH: 16, OW: 16, KH: k, KW: k, StrideH: stride, StrideW: stride, DilH: dil, DilW: dil, PadT: 1, PadL: 1, Groups: groups}
	}
	for _, c := range []struct {
		s          Shape
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
		if got := NewNCHW(c.s, w, nil, activation.Clamp{}).Name(); got != c.nchw {
			t.Errorf("%+v of planes: %s, want %s", c.s, got, c.nchw)
		}
		if got := NewNHWC(c.s, w, nil, activation.Clamp{}).Name(); got != c.nhwc {
			t.Errorf("%+v: %s, want %s", c.s, got, c.nhwc)
		}
		if got := NewInt8[int8](c.s, make([]int16, n), 0, 0, quantise.Requant{}).Name(); got != c.q {
			t.Errorf("%+v of integers: %s, want %s", c.s, got, c.q)
		}
		if c.s.Groups > 0 {
			if got := NewSums(c.s, false, false).Name(); got != c.q {
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
			in, out := kernels.Wholes(r, 3*width), make([]float32, n)
			w := [9]float32(kernels.Wholes(r, 9))
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
