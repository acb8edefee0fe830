package conv

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestConv3D compares 3-D convolutions with their definition, for each algorithm that they use.
func TestConv3D(t *testing.T) {
	sets.Go(func() {
		if NewNCDHW(Shape{}, Depth{}, nil, nil, activation.Clamp{}) != nil {
			t.Error("a kernel without vectors")
		}
	})
	ways := map[simd.Set]map[string]int{}
	sets.In(t, func(set simd.Set) { ways[set] = map[string]int{} })
	for i := range 160 {
		compareVolume(t, rand.New(rand.NewPCG(31, uint64(i))), i, ways)
	}
	sets.In(t, func(set simd.Set) {
		if w := ways[set]; simd.FloatKernels() != nil && (w["packed"] == 0 || w["direct"] == 0 || simd.WinogradKernels() != nil && w["winograd"] == 0) {
			t.Errorf("ways of computing: %v", w)
		}
	})
}

// compareVolume compares a random shape on all instruction sets; one of 32 has a size at which
// Winograd is faster.
func compareVolume(t *testing.T, r *rand.Rand, i int, ways map[simd.Set]map[string]int) {
	draw := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	s := Shape{
		N: 1 + r.IntN(2), Groups: 1 + r.IntN(2), H: 1 + r.IntN(7), W: 1 + r.IntN(20), KH: 1 + r.IntN(3), KW: 1 + r.IntN(3),
		StrideH: 1 + r.IntN(2), StrideW: 1 + r.IntN(2), DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), PadT: r.IntN(3), PadL: r.IntN(3),
	}
	s.C, s.OC = s.Groups*(1+r.IntN(4)), s.Groups*(1+r.IntN(30))
	d := Depth{In: 1 + r.IntN(5), Kernel: 1 + r.IntN(3), Stride: 1 + r.IntN(2), Dilation: 1 + r.IntN(2), Pad: r.IntN(3)}
	switch i % 32 {
	case 0:
		s = Shape{N: 1, Groups: 1, C: 16, OC: 32, H: 20, W: 20, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
	case 1, 9, 17:
		s.KH, s.KW, s.StrideH, s.StrideW, s.PadT, s.PadL = 1, 1, 1, 1, 0, 0
	}
	size := func(in, k, stride, dil, pad int) int { return (in+2*pad-(k-1)*dil-1)/stride + 1 }
	s.OH, s.OW = size(s.H, s.KH, s.StrideH, s.DilH, s.PadT), size(s.W, s.KW, s.StrideW, s.DilW, s.PadL)
	d.Out = size(d.In, d.Kernel, d.Stride, d.Dilation, d.Pad)
	if s.H+2*s.PadT <= (s.KH-1)*s.DilH || s.W+2*s.PadL <= (s.KW-1)*s.DilW || d.In+2*d.Pad <= (d.Kernel-1)*d.Dilation {
		return
	}
	cg, og, taps := s.C/s.Groups, s.OC/s.Groups, d.Kernel*s.KH*s.KW
	x, w, bias := draw(s.N*s.C*d.In*s.H*s.W), draw(s.OC*cg*taps), draw(s.OC)
	pool := workers.New(1+r.IntN(3), nil)
	defer pool.Close()
	before := draw(s.N*s.OC*d.Out*s.OH*s.OW + 2)
	want := make([]float64, len(before)-2)
	for i := range want {
		ox, oy, oz, o, n := i%s.OW, i/s.OW%s.OH, i/(s.OW*s.OH)%d.Out, i/(s.OW*s.OH*d.Out)%s.OC, i/(s.OW*s.OH*d.Out*s.OC)
		sum := float64(bias[o])
		for j := range cg * taps {
			ch, kz, ky, kx := j/taps, j/(s.KH*s.KW)%d.Kernel, j/s.KW%s.KH, j%s.KW
			iz, iy, ix := oz*d.Stride-d.Pad+kz*d.Dilation, oy*s.StrideH-s.PadT+ky*s.DilH, ox*s.StrideW-s.PadL+kx*s.DilW
			if iz >= 0 && iz < d.In && iy >= 0 && iy < s.H && ix >= 0 && ix < s.W {
				sum += float64(w[o*cg*taps+j]) * float64(x[(((n*s.C+o/og*cg+ch)*d.In+iz)*s.H+iy)*s.W+ix])
			}
		}
		want[i] = min(max(sum, -4), 9)
	}
	sets.In(t, func(set simd.Set) {
		if simd.FloatKernels() == nil {
			return
		}
		y := slices.Clone(before)
		c := NewNCDHW(s, d, w, bias, activation.Clamp{On: true, Min: -4, Max: 9})
		way, _, _ := strings.Cut(c.Name(), "/")
		ways[set][way]++
		c.Run(pool, x, y[1:len(y)-1])
		if y[0] != before[0] || y[len(y)-1] != before[len(y)-1] {
			t.Fatalf("%+v %+v: values beside the results are written to", s, d)
		}
		for i, got := range y[1 : len(y)-1] {
			// Up to 432 products of values around one, rounded once each, or by Winograd.
			if math.Abs(float64(got)-want[i]) > 2e-4 {
				t.Fatalf("%s of %+v %+v: result %d is %v, want %v", c.Name(), s, d, i, got, want[i])
			}
		}
	})
}
