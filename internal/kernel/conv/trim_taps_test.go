package conv

import (
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestTrimTaps compares windows with taps that only cover padding with the
// definition.
func TestTrimTaps(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		r := rand.New(rand.NewPCG(1, 2))
		pool := workers.New(2, nil)
		defer pool.Close()
		cut, gaps := 0, 0
		for range sets.Rounds(300) {
			s := Shape{
				N: 1, Groups: 1 + r.IntN(2), H: 1 + r.IntN(9), W: 1 + r.IntN(9), KH: 1 + r.IntN(4), KW: 1 + r.IntN(4),
				DilH: 1 + r.IntN(12), DilW: 1 + r.IntN(12), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3),
			}
			s.C, s.OC = s.Groups*(1+r.IntN(20)), s.Groups*(1+r.IntN(20))
			s.PadT, s.PadL = r.IntN((s.KH-1)*s.DilH+1), r.IntN((s.KW-1)*s.DilW+1)
			s.OH, s.OW = 1+r.IntN(s.H+2), 1+r.IntN(s.W+2)
			if same := s; same.trimTaps() != nil {
				cut++
			}
			x, w, bias := kernels.Wholes(r, s.H*s.W*s.C), kernels.Wholes(r, s.OC*s.C/s.Groups*s.KH*s.KW), kernels.Wholes(r, s.OC)
			cg, og := s.C/s.Groups, s.OC/s.Groups
			want := make([]float32, s.Outputs())
			for o := range s.OC {
				for oy := range s.OH {
					for ox := range s.OW {
						sum := bias[o]
						for i := range cg {
							for ky := range s.KH {
								for kx := range s.KW {
									y, x0 := oy*s.StrideH-s.PadT+ky*s.DilH, ox*s.StrideW-s.PadL+kx*s.DilW
									if y >= 0 && y < s.H && x0 >= 0 && x0 < s.W {
										sum += x[((o/og*cg+i)*s.H+y)*s.W+x0] * w[((o*cg+i)*s.KH+ky)*s.KW+kx]
									}
								}
							}
						}
						want[(o*s.OH+oy)*s.OW+ox] = sum
					}
				}
			}
			c, got := NewNCHW(s, w, bias, activation.Clamp{}), make([]float32, s.Outputs())
			if c.tapGemms != nil {
				gaps++
			}
			for range 2 {
				c.Run(pool, x, got)
				sets.Agree(t, s, got, want)
				c.SetWeights(w, bias)
			}
			// The same with channels last.
			xl, wl, gotL, wantL := lastly(x, s.C, s.H*s.W), make([]float32, 0, len(w)), make([]float32, s.Outputs()), lastly(want, s.OC, s.OH*s.OW)
			for o := range s.OC {
				wl = append(wl, lastly(w[o*cg*s.KH*s.KW:][:cg*s.KH*s.KW], cg, s.KH*s.KW)...)
			}
			l := NewNHWC(s, wl, bias, activation.Clamp{})
			for range 2 {
				l.Run(pool, xl, gotL)
				sets.Agree(t, s, gotL, wantL)
				l.SetWeights(wl, bias)
			}
		}
		if cut < sets.Rounds(300)/10 {
			t.Errorf("taps were cut %d times", cut)
		}
		if simd.FloatKernels() != nil && gaps == 0 {
			t.Error("no taps were computed one by one")
		}
	})
}

// lastly moves channels last.
func lastly(v []float32, channels, places int) []float32 {
	out := make([]float32, len(v))
	for c := range channels {
		for p := range places {
			out[p*channels+c] = v[c*places+p]
		}
	}
	return out
}

// TestTrimTapsInt8 is the same for 8-bit values, in both layouts.
func TestTrimTapsInt8(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		r := rand.New(rand.NewPCG(3, 2))
		pool := workers.New(2, nil)
		defer pool.Close()
		cut := 0
		for range sets.Rounds(300) {
			cg, groups := 1+r.IntN(20), 1+r.IntN(2)
			if r.IntN(3) == 0 {
				cg, groups = 1, 1+r.IntN(20)
			}
			s := Shape{
				N: 1, C: groups * cg, OC: groups * (1 + r.IntN(20)), Groups: groups, H: 1 + r.IntN(9), W: 1 + r.IntN(9), KH: 1 + r.IntN(4), KW: 1 + r.IntN(4),
				DilH: 1 + r.IntN(12), DilW: 1 + r.IntN(12), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3),
			}
			s.PadT, s.PadL = r.IntN((s.KH-1)*s.DilH+1), r.IntN((s.KW-1)*s.DilW+1)
			s.OH, s.OW = 1+r.IntN(s.H+2), 1+r.IntN(s.W+2)
			if same := s; same.trimTaps() != nil {
				cut++
			}
			testQuantisedConv(t, r, pool, s, cg)
		}
		if cut < sets.Rounds(300)/10 {
			t.Errorf("taps were cut %d times", cut)
		}
	})
}
