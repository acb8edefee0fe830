package pooling

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

// TestMaxPoolInt8 compares max pooling of bytes with its definition: padding on any side and beyond
// whole windows, strides and dilations, on each instruction set.
func TestMaxPoolInt8(t *testing.T) {
	pool := workers.New(3, nil)
	defer pool.Close()
	for _, set := range simd.Available() {
		undo := simd.Use(set)
		r := rand.New(rand.NewPCG(3, 9))
		for range 400 {
			s := conv.Shape{N: 1 + r.IntN(2), C: 1 + r.IntN(3), H: 1 + r.IntN(12), W: 1 + r.IntN(90), KH: 1 + r.IntN(4), KW: 1 + r.IntN(4)}
			s.StrideH, s.StrideW, s.DilH, s.DilW = 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(2)
			s.PadT, s.PadL = r.IntN(5)-1, r.IntN(5)-1
			s.OH, s.OW = 1+r.IntN(14), 1+r.IntN(100)
			if r.IntN(3) == 0 { // no padding
				s.OH, s.OW, s.PadT, s.PadL = 1+r.IntN(9), 1+r.IntN(50), 0, 0
				s.H, s.W = (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1+r.IntN(3), (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW+1+r.IntN(3)
			}
			m := MaxInt8{Shape: s, Signed: r.IntN(2) == 1}
			if !m.Prepare() {
				if simd.ElementKernels() != nil {
					t.Fatalf("%v: %+v is refused", set, s)
				}
				break
			}
			x, got := kernels.RandomBytes(r, s.N*s.C*s.H*s.W), make([]uint8, s.N*s.C*s.OH*s.OW)
			m.Run(pool, x, got)
			for i, v := range got {
				plane, oy, ox := i/(s.OH*s.OW), i/s.OW%s.OH, i%s.OW
				want := kernels.Value(0, m.Signed)
				if m.Signed {
					want = -128
				}
				for ky := range s.KH {
					for kx := range s.KW {
						y, c := oy*s.StrideH-s.PadT+ky*s.DilH, ox*s.StrideW-s.PadL+kx*s.DilW
						if y >= 0 && y < s.H && c >= 0 && c < s.W {
							want = max(want, kernels.Value(x[(plane*s.H+y)*s.W+c], m.Signed))
						}
					}
				}
				if kernels.Value(v, m.Signed) != want {
					t.Fatalf("%v: %+v, signed %v: value %d is %d, want %d", set, s, m.Signed, i, kernels.Value(v, m.Signed), want)
				}
			}
		}
		undo()
	}
}
