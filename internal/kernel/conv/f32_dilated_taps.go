package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// Windows with a dilation close to the image size mostly cover padding: 72 % of the taps of 3×3
// with dilation 12 over 17×17 positions. Each tap is one GEMM over the input positions that it
// covers, with positions as rows. The resulting rows are added to their output positions.

// tapGemm is a tap that covers input for output rows y0 to y1 and columns x0 to x1.
type tapGemm struct {
	y0, y1, x0, x1 int
	at             int // input position for the first of these outputs
	weights        *gemm.PackedB
}

func (t *tapGemm) area() int { return (t.y1 - t.y0) * (t.x1 - t.x0) }

// tapGemmGain is the minimum estimated speed-up.
const tapGemmGain = 1.3

// rowTime is the time to copy or add a value of a row, in nanoseconds.
const rowTime = 0.15

// setTapGemms packs the weights of each tap if this algorithm is faster.
func (c *Float32) setTapGemms(w []float32) {
	s := &c.s
	if !c.usesPlanes() || c.sparse != nil || c.volume != nil || s.Groups > 1 || s.DilH == 1 && s.DilW == 1 {
		return
	}
	area := s.OH * s.OW
	time := transposeTime * float64(s.C*s.H*s.W+s.OC*area)
	var taps []tapGemm
	for ky := range s.KH {
		for kx := range s.KW {
			t := tapGemm{}
			t.y0, t.y1 = span(s.OH, s.StrideH, ky*s.DilH-s.PadT, s.H)
			t.x0, t.x1 = span(s.OW, s.StrideW, kx*s.DilW-s.PadL, s.W)
			t.at = (t.y0*s.StrideH+ky*s.DilH-s.PadT)*s.W + t.x0*s.StrideW + kx*s.DilW - s.PadL
			n, each := float64(t.area()), float64(s.C*s.OC)
			time += max(n*each/c.f.Rate(), 4*each/winograd4ReadRate) + rowTime*n*float64(s.C+s.OC)
			taps = append(taps, t)
		}
	}
	if tapGemmGain*time > c.denseTime()*float64(s.N) {
		return
	}
	one := make([]float32, s.OC*s.C)
	for i := range taps {
		for j := range one {
			one[j] = w[j*len(taps)+i]
		}
		taps[i].weights = gemm.PackB(s.C, s.OC, one, 0, true)
	}
	c.tapGemms, c.algorithm = taps, tapGEMMs
	c.weights, c.im2row, c.unpacked = nil, nil, false
}

// tapGEMMName returns the kernel name of the first tap.
func (c *Float32) tapGEMMName() string {
	t := &c.tapGemms[0]
	return t.weights.Name(gemm.Params{M: t.area(), N: c.s.OC, K: c.s.C})
}

// tapGemmArgs holds the arguments of a work item.
type tapGemmArgs struct {
	c    *Float32
	t    *tapGemm
	a, b []float32
}

// runTapGemms convolves x into y.
func (c *Float32) runTapGemms(p *workers.Pool, x, y []float32) {
	s := &c.s
	in, area := s.H*s.W, s.OH*s.OW
	sp, positions := scratch.Borrow(in * s.C)
	sg, seen := scratch.Borrow(area * s.C)
	sr, rows := scratch.Borrow(area * s.OC)
	ss, sums := scratch.Borrow(area * s.OC)
	for n := range s.N {
		workers.Do(p, in, max(1, scratch.CopyGrain/s.C), tapGemmArgs{c: c, a: positions, b: x[n*s.C*in:]}, func(g tapGemmArgs, lo, hi int) {
			s := &g.c.s
			move.Transpose(g.a[lo*s.C:], s.C, g.b[lo:], s.H*s.W, hi-lo, s.C)
		})
		for i := range area {
			row := sums[i*s.OC:][:s.OC]
			clear(row)
			copy(row, c.bias)
		}
		for i := range c.tapGemms {
			t := &c.tapGemms[i]
			m := t.area()
			if m == 0 {
				continue
			}
			workers.Do(p, m, max(1, scratch.CopyGrain/s.C), tapGemmArgs{c: c, t: t, a: seen, b: positions}, func(g tapGemmArgs, lo, hi int) {
				s, t := &g.c.s, g.t
				for r := lo; r < hi; r++ {
					y, x := r/(t.x1-t.x0), r%(t.x1-t.x0)
					copy(g.a[r*s.C:][:s.C], g.b[(t.at+y*s.StrideH*s.W+x*s.StrideW)*s.C:])
				}
			})
			gemm.MultiplyPacked(p, gemm.Params{M: m, N: s.OC, K: s.C}, seen, t.weights, rows)
			workers.Do(p, t.y1-t.y0, max(1, scratch.CopyGrain/(s.OC*(t.x1-t.x0))), tapGemmArgs{c: c, t: t, a: sums, b: rows}, func(g tapGemmArgs, lo, hi int) {
				s, t := &g.c.s, g.t
				n := (t.x1 - t.x0) * s.OC
				for l := lo; l < hi; l++ {
					to := g.a[((t.y0+l)*s.OW+t.x0)*s.OC:][:n]
					element.AddTo(to, to, g.b[l*n:])
				}
			})
		}
		workers.Do(p, s.OC, max(1, scratch.CopyGrain/area), tapGemmArgs{c: c, a: y[n*s.OC*area:], b: sums}, func(g tapGemmArgs, lo, hi int) {
			s := &g.c.s
			area := s.OH * s.OW
			to := g.a[lo*area : hi*area]
			move.Transpose(to, area, g.b[lo:], s.OC, hi-lo, area)
			if g.c.act.On {
				element.Bound(to, g.c.act.Min, g.c.act.Max)
			}
		})
	}
	scratch.Float32s.Put(ss)
	scratch.Float32s.Put(sr)
	scratch.Float32s.Put(sg)
	scratch.Float32s.Put(sp)
}
