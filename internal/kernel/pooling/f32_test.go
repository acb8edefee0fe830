package pooling

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// anyShape draws windows of up to 4×4 with any stride, dilation and padding.
func anyShape(r *rand.Rand) conv.Shape {
	s := conv.Shape{
		N: 1 + r.IntN(2), KH: 1 + r.IntN(4), KW: 1 + r.IntN(4), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(3),
		DilH: 1 + r.IntN(2), DilW: 1 + r.IntN(2), OH: 1 + r.IntN(12), OW: 1 + r.IntN(20),
	}
	if r.IntN(3) == 0 {
		s.StrideH, s.StrideW, s.DilH, s.DilW = 1, 1, 1, 1
	}
	if r.IntN(12) == 0 {
		s.OH, s.OW = 1+r.IntN(40), 1+r.IntN(80)
	}
	// Padding on all sides, none, or output beyond the input.
	seenH, seenW := (s.OH-1)*s.StrideH+(s.KH-1)*s.DilH+1, (s.OW-1)*s.StrideW+(s.KW-1)*s.DilW+1
	s.PadT, s.PadL = r.IntN(min(4, seenH)), r.IntN(min(4, seenW))
	s.H, s.W = max(1, seenH-s.PadT-r.IntN(4)), max(1, seenW-s.PadL-r.IntN(4))
	if r.IntN(3) == 0 {
		s.PadT, s.PadL, s.H, s.W = 0, 0, seenH+r.IntN(3), seenW+r.IntN(3)
	}
	return s
}

// TestPoolSets compares windows with their definition.
func TestPoolSets(t *testing.T) {
	sets.Every(t, func(t *testing.T, _ func(func())) {
		r := rand.New(rand.NewPCG(9, 10))
		pool := workers.New(2, nil)
		defer pool.Close()
		for range sets.Rounds(400) {
			s := anyShape(r)
			s.C = 1 + r.IntN(70)
			p := Float32{Shape: s, NHWC: r.IntN(2) == 0, Max: r.IntN(2) == 0, NaN: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				p.Clamp = activation.Clamp{On: true, Min: -1, Max: 1}
			}
			if !p.Prepare() {
				t.Skip("plain Go")
			}
			s = p.Shape
			x := kernels.Values(r, true, s.N*s.C*s.H*s.W)
			if r.IntN(4) == 0 {
				x[r.IntN(len(x))] = float32(math.NaN())
			}
			at := func(n, ch, y, x, h, w int) int {
				if p.NHWC {
					return ((n*h+y)*w+x)*s.C + ch
				}
				return ((n*s.C+ch)*h+y)*w + x
			}
			got, want := make([]float32, s.Outputs()), make([]float32, s.Outputs())
			counts := make([]float32, s.OH*s.OW)
			for i := range want {
				ox, oy, ch, n := i%s.OW, i/s.OW%s.OH, i/s.OW/s.OH%s.C, i/s.OW/s.OH/s.C
				sum, cells := float32(0), 0
				if p.Max {
					sum = float32(math.Inf(-1))
				}
				for ky := range s.KH {
					for kx := range s.KW {
						iy, ix := oy*s.StrideH+ky*s.DilH-s.PadT, ox*s.StrideW+kx*s.DilW-s.PadL
						if iy < 0 || iy >= s.H || ix < 0 || ix >= s.W {
							continue
						}
						v := x[at(n, ch, iy, ix, s.H, s.W)]
						cells++
						switch {
						case !p.Max:
							sum += v
						case p.NaN:
							sum = max(sum, v)
						case v > sum:
							sum = v
						}
					}
				}
				counts[oy*s.OW+ox] = float32(max(cells, 1))
				switch {
				case !p.Max:
					sum /= float32(max(cells, 1))
				case p.Clamp.On:
					sum = min(max(sum, p.Clamp.Min), p.Clamp.Max)
				}
				want[at(n, ch, oy, ox, s.OH, s.OW)] = sum
			}
			for range 2 {
				p.Run(pool, x, got)
				if !p.Max {
					p.Divide(pool, got, counts)
				}
				sets.Agree(t, p, got, want)
			}
		}
	})
}
