package conv

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestIm2row compares im2row convolutions with their definition.
func TestIm2row(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	draw := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	for _, set := range simd.Available() {
		t.Run(set.String(), func(t *testing.T) {
			defer simd.Use(set)()
			packed := 0
			for range 300 {
				s := Shape{
					N: 1 + r.IntN(2), C: 1 + r.IntN(5), OC: 1 + r.IntN(70), Groups: 1, H: 1 + r.IntN(6), W: 1 + r.IntN(9), KH: 1 + r.IntN(3), KW: 1 + r.IntN(4),
					StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3), DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), PadT: r.IntN(3), PadL: r.IntN(3),
				}
				s.OH, s.OW = (s.H+2*s.PadT-(s.KH-1)*s.DilH-1)/s.StrideH+1, (s.W+2*s.PadL-(s.KW-1)*s.DilW-1)/s.StrideW+1
				if s.H+2*s.PadT <= (s.KH-1)*s.DilH || s.W+2*s.PadL <= (s.KW-1)*s.DilW {
					continue
				}
				k := s.C * s.KH * s.KW
				x, w, bias := draw(s.N*s.C*s.H*s.W), draw(s.OC*k), draw(s.OC)
				y := make([]float32, s.N*s.OC*s.OH*s.OW)
				c := NewNCHW(s, w, bias, activation.Clamp{On: true, Min: 0, Max: 3})
				if strings.HasPrefix(c.Name(), "packed") {
					packed++
				}
				c.Run(nil, x, y)
				for i, got := range y {
					n, o, oy, ox := i/(s.OC*s.OH*s.OW), i/(s.OH*s.OW)%s.OC, i/s.OW%s.OH, i%s.OW
					sum := float64(bias[o])
					for j := range k {
						iy, ix := oy*s.StrideH-s.PadT+j/s.KW%s.KH*s.DilH, ox*s.StrideW-s.PadL+j%s.KW*s.DilW
						if iy >= 0 && iy < s.H && ix >= 0 && ix < s.W {
							sum += float64(w[o*k+j]) * float64(x[((n*s.C+j/(s.KH*s.KW))*s.H+iy)*s.W+ix])
						}
					}
					// Up to 60 products of values around one, rounded once each.
					if want := min(max(sum, 0), 3); math.Abs(float64(got)-want) > 2e-5 {
						t.Fatalf("%+v: result %d is %v, want %v", s, i, got, want)
					}
				}
			}
			if simd.FloatKernels() != nil && packed == 0 {
				t.Error("no convolution became a product")
			}
		})
	}
}
