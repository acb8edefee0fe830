package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestFloat16 checks that float16 convolutions are bit-exact with the same values in float32,
// rounded.
func TestFloat16(t *testing.T) {
	pool := workers.New(3, nil)
	defer pool.Close()
	for _, set := range simd.Available()[1:] {
		undo := simd.Use(set)
		e := simd.ElementKernels()
		r := rand.New(rand.NewPCG(6, 2))
		for i := 0; e != nil && i < 250; i++ {
			s := Shape{N: 1 + r.IntN(2), H: 1 + r.IntN(20), W: 1 + r.IntN(40), KH: 1 + r.IntN(3), KW: 1 + r.IntN(3), DilH: 1 + r.IntN(2), DilW: 1, Groups: 1 + r.IntN(3)}
			s.StrideH, s.StrideW = 1+r.IntN(2), 1+r.IntN(3)
			s.PadT, s.PadL = r.IntN(s.KH), r.IntN(s.KW)
			cg, og := 1+r.IntN(9), 1+r.IntN(30)
			switch i % 4 {
			case 0:
				s.KH, s.KW, s.StrideH, s.StrideW, s.PadT, s.PadL, s.DilH = 1, 1, 1, 1, 0, 0, 1
			case 1:
				s.Groups, cg, og = 1+r.IntN(20), 1, 1+r.IntN(2) // depthwise
			case 2:
				cg = 300 + r.IntN(100) // several K blocks
				s.Groups, s.KH, s.KW = 1, 1, 1
				s.PadT, s.PadL = 0, 0
			}
			s.C, s.OC = cg*s.Groups, og*s.Groups
			s.OH, s.OW = (s.H+2*s.PadT-(s.KH-1)*s.DilH-1)/s.StrideH+1, (s.W+2*s.PadL-(s.KW-1)*s.DilW-1)/s.StrideW+1
			if s.H+2*s.PadT < (s.KH-1)*s.DilH+1 || s.W+2*s.PadL < (s.KW-1)*s.DilW+1 {
				continue
			}
			floats := func(n int) []float32 {
				v := make([]float32, n)
				for i := range v {
					v[i] = r.Float32() - 0.5
				}
				return v
			}
			codes := make([]uint16, s.N*s.C*s.H*s.W)
			wide := floats(len(codes))
			e.ToHalves(codes, wide)
			e.FromHalves(wide, codes)
			var bias []float32
			if r.IntN(2) == 0 {
				bias = floats(s.OC)
			}
			c := NewNCHW(s, floats(s.OC*cg*s.KH*s.KW), bias, activation.Clamp{On: r.IntN(2) == 0, Min: 0, Max: 6})
			if !c.SupportsFloat16() {
				t.Fatalf("%v: %+v is refused", set, s)
			}
			y, got, want := make([]float32, s.Outputs()), make([]uint16, s.Outputs()), make([]uint16, s.Outputs())
			c.Run(pool, wide, y)
			e.ToHalves(want, y)
			c.RunFloat16(pool, codes, got)
			for i, v := range got {
				if v != want[i] {
					t.Fatalf("%v: %+v: value %d is %#x, want %#x", set, s, i, v, want[i])
				}
			}
		}
		undo()
	}
}
