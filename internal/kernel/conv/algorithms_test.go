package conv

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestAlgorithms checks which entry of the tables a shape selects with AVX-512. [TestConvNames]
// does so for plain Go.
func TestAlgorithms(t *testing.T) {
	if !slices.Contains(simd.Available(), simd.AVX512) {
		t.Skip("no AVX-512")
	}
	defer simd.Use(simd.AVX512)()
	square := func(c, oc, size, kernel, groups int) Shape {
		return Shape{
			N: 1, C: c, H: size, W: size, OC: oc, OH: size, OW: size, KH: kernel, KW: kernel, StrideH: 1, StrideW: 1,
			DilH: 1, DilW: 1, PadT: kernel / 2, PadL: kernel / 2, Groups: groups,
		}
	}
	dilated := square(64, 64, 17, 3, 1)
	dilated.DilH, dilated.DilW, dilated.PadT, dilated.PadL = 12, 12, 12, 12
	for _, c := range []struct {
		s                Shape
		zeros            int // percent of the weights
		nchw, nhwc, sums string
	}{
		{square(64, 64, 0, 3, 1), 0, "im2col", "im2col", "im2col"},
		{square(64, 64, 28, 1, 1), 0, "gathered panels", "output channels as columns", "gathered panels"},
		{square(64, 64, 56, 3, 1), 0, "Winograd F(4×4, 3×3)", "output channels as columns", "output channels as columns"},
		{square(16, 32, 64, 5, 1), 0, "direct", "output channels as columns", "output channels as columns"},
		{square(32, 1, 40, 5, 1), 0, "direct", "output pixels as columns", "gathered panels"},
		{square(256, 256, 3, 1, 1), 0, "im2row", "output channels as columns", "output channels as columns"},
		{square(32, 32, 9, 3, 8), 0, "grouped direct", "small groups", "gathered panels"},
		{square(32, 96, 32, 5, 2), 0, "grouped direct", "output channels as columns", "gathered panels"},
		{dilated, 0, "one GEMM per tap", "output channels as columns", "output channels as columns"},
		{square(64, 64, 28, 1, 1), 95, "skipped zeros", "skipped zeros", "skipped zeros"},
		{square(32, 32, 28, 7, 32), 0, "depthwise strips", "depthwise tiles", "depthwise"},
		{square(32, 32, 28, 4, 32), 0, "depthwise window walk", "depthwise window walk", "depthwise"},
	} {
		w := make([]float32, c.s.OC*c.s.C/c.s.Groups*c.s.KH*c.s.KW)
		ints := make([]int8, len(w))
		for i := range w {
			if i*37%100 >= c.zeros {
				w[i], ints[i] = float32(math.Sin(float64(i))), int8(i%100+1)
			}
		}
		sums := NewSums(c.s, false, false)
		SetSumWeights(sums, ints, 0)
		for layout, names := range map[string][2]string{
			"[N,C,H,W]":         {NewNCHW(c.s, w, nil, activation.Clamp{}).algorithm.name, c.nchw},
			"[N,H,W,C]":         {NewNHWC(c.s, w, nil, activation.Clamp{}).algorithm.name, c.nhwc},
			"int8 of [N,C,H,W]": {sums.algorithm.name, c.sums},
		} {
			if got, want := names[0], names[1]; got != want {
				t.Errorf("%s %+v: %s, want %s", layout, c.s, got, want)
			}
		}
	}
}
