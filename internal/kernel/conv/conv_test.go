package conv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/testing/kernels"
)

// algorithmNamed returns the algorithm of that name.
func algorithmNamed(t interface {
	Fatalf(format string, args ...any)
}, name string,
) *algorithm {
	for _, a := range algorithms {
		if a.name == name {
			return a
		}
	}
	t.Fatalf("no algorithm %q", name)
	return nil
}

// naive convolves in NCHW with float64 sums.
func naive(s Shape, x, w, bias []float32, act activation.Clamp) []float32 {
	g := max(s.Groups, 1)
	cg, og := s.C/g, s.OC/g
	y := make([]float32, s.N*s.OC*s.OH*s.OW)
	for i := range y {
		ox, oy, o, n := i%s.OW, i/s.OW%s.OH, i/s.OW/s.OH%s.OC, i/s.OW/s.OH/s.OC
		var sum float64
		if bias != nil {
			sum = float64(bias[o])
		}
		for c := range cg {
			for ky := range s.KH {
				for kx := range s.KW {
					iy, ix := oy*s.StrideH-s.PadT+ky*s.DilH, ox*s.StrideW-s.PadL+kx*s.DilW
					if iy < 0 || ix < 0 || iy >= s.H || ix >= s.W {
						continue
					}
					sum += float64(x[((n*s.C+o/og*cg+c)*s.H+iy)*s.W+ix]) * float64(w[((o*cg+c)*s.KH+ky)*s.KW+kx])
				}
			}
		}
		if act.On {
			sum = min(max(sum, float64(act.Min)), float64(act.Max))
		}
		y[i] = float32(sum)
	}
	return y
}

func TestConv(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 3} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			pool := workers.New(threads, nil)
			defer pool.Close()
			r := rand.New(rand.NewPCG(3, 4))
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
				}
				s.OH, s.OW = 1+r.IntN(8), 1+r.IntN(8)
				if i%10 == 0 { // enough channels for Winograd
					s = Shape{
						N: s.N, C: groups * (15 + cg), OC: groups * (15 + og), H: s.H, W: s.W, OH: 4 + r.IntN(8), OW: 4 + r.IntN(8),
						KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: s.PadT, PadL: s.PadL, Groups: groups,
					}
					cg += 15
				}
				x, w := kernels.Random(r, s.N*s.C*s.H*s.W), kernels.Random(r, s.OC*cg*s.KH*s.KW)
				var bias []float32
				if r.IntN(2) == 0 {
					bias = kernels.Random(r, s.OC)
				}
				var act activation.Clamp
				if r.IntN(2) == 0 {
					act = activation.Clamp{On: true, Min: 0, Max: 0.7}
				}
				want := naive(s, x, w, bias, act)
				y := kernels.Random(r, len(want))
				NewNCHW(s, w, bias, act).Run(pool, x, y)
				kernels.Near(t, y, want)

				wn := kernels.ToNHWC(w, s.OC, cg, s.KH*s.KW)
				xn := kernels.ToNHWC(x, s.N, s.C, s.H*s.W)
				wantN := kernels.ToNHWC(want, s.N, s.OC, s.OH*s.OW)
				y = kernels.Random(r, len(want))
				NewNHWC(s, wn, bias, act).Run(pool, xn, y)
				kernels.Near(t, y, wantN)
				if cg == 1 {
					// Weights [1,KH,KW,OC].
					wd := make([]float32, len(w))
					for o := range s.OC {
						for k := range s.KH * s.KW {
							wd[k*s.OC+o] = w[o*s.KH*s.KW+k]
						}
					}
					y = kernels.Random(r, len(want))
					NewDepthwiseNHWC(s, wd, bias, act).Run(pool, xn, y)
					kernels.Near(t, y, wantN)
				}
			}
		})
	}
}

func BenchmarkConv(b *testing.B) {
	s := Shape{N: 1, C: 64, H: 56, W: 56, OC: 64, OH: 56, OW: 56, KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: 1, PadL: 1}
	x, w, y := make([]float32, 64*56*56), make([]float32, 64*64*9), make([]float32, 64*56*56)
	d := s
	d.Groups = 64
	direct := s
	direct.DilH, direct.PadT = 2, 2 // as much work, without Winograd
	for _, c := range []struct {
		name string
		macs int
		k    *Float32
	}{
		{"nchw", 64 * 64 * 9 * 56 * 56, NewNCHW(direct, w, nil, activation.Clamp{})},
		{"nhwc", 64 * 64 * 9 * 56 * 56, NewNHWC(s, w, nil, activation.Clamp{})},
		{"winograd-nchw", 64 * 64 * 9 * 56 * 56, NewNCHW(s, w, nil, activation.Clamp{})},
		{"depthwise-nchw", 64 * 9 * 56 * 56, NewNCHW(d, w[:64*9], nil, activation.Clamp{})},
		{"depthwise-nhwc", 64 * 9 * 56 * 56, NewNHWC(d, w[:64*9], nil, activation.Clamp{})},
	} {
		b.Run(c.name, func(b *testing.B) {
			kernels.Quickest(b, "GFLOP/s", 2*float64(c.macs), func() { c.k.Run(nil, x, y) })
		})
	}
}
