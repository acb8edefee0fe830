package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// depthwiseNHWC runs a depthwise convolution over [N,H,W,C] without SIMD.
func depthwiseNHWC[T int8 | uint8](p *workers.Pool, c *intConv, x []T, to epilogue) {
	s := &c.s
	workers.Each(p, s.N*s.OH, max(1, 1<<13/max(1, s.OW*s.OC*s.KH*s.KW)), depthwiseQ[T]{s, c.og, x, c.wd, c.zeroPoint, to})
}

// depthwiseQ is a work item of a depthwise convolution with int32 weights w [KH,KW,OC] minus their
// zero point; og is the channel multiplier.
type depthwiseQ[T int8 | uint8] struct {
	s    *Shape
	og   int
	x    []T
	w    []int32
	zero int32
	to   epilogue
}

// Piece computes rows lo to hi of all images.
func (d depthwiseQ[T]) Piece(lo, hi int) {
	s := d.s
	sc, fs := scratch.Borrow(2 * s.OC)
	acc, inner := scratch.AsInt32(fs[:s.OC]), scratch.AsInt32(fs[s.OC:])
	innerBias(inner, d.w, d.zero)
	for r := lo; r < hi; r++ {
		n, oy := r/s.OH, r%s.OH
		in := d.x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
		y0 := oy*s.StrideH - s.PadT
		ky0, ky1 := taps(y0, s.DilH, s.KH, s.H)
		for ox := range s.OW {
			x0 := ox*s.StrideW - s.PadL
			kx0, kx1 := taps(x0, s.DilW, s.KW, s.W)
			if d.og == 1 && s.KH == 3 && s.KW == 3 && ky1-ky0 == 3 && kx1-kx0 == 3 {
				taps3x3Q(s, acc, in, d.w, inner, y0, x0)
			} else {
				clear(acc)
				for ky := ky0; ky < ky1; ky++ {
					for kx := kx0; kx < kx1; kx++ {
						src := in[((y0+ky*s.DilH)*s.W+x0+kx*s.DilW)*s.C:][:s.C]
						tapQ(acc, src, d.w[(ky*s.KW+kx)*s.OC:], d.og, d.zero)
					}
				}
			}
			if at := (r*s.OW + ox) * s.OC; d.to.sums != nil {
				copy(d.to.sums[at:], acc)
			} else {
				quantise.RequantRow(d.to.y[at:][:s.OC], acc, d.to.q, 0)
			}
		}
	}
	scratch.Float32s.Put(sc)
}

// innerBias adds the contribution of the input zero point if all taps lie inside.
func innerBias(b, w []int32, zero int32) {
	clear(b)
	for len(w) >= len(b) && len(b) > 0 {
		for i, v := range w[:len(b)] {
			b[i] -= v * zero
		}
		w = w[len(b):]
	}
}

// tapQ adds the products of one tap.
func tapQ[T int8 | uint8](acc []int32, src []T, w []int32, og int, zero int32) {
	w = w[:len(acc)]
	if og == 1 {
		src = src[:len(acc)]
		for i := range acc {
			acc[i] += (int32(src[i]) - zero) * w[i]
		}
		return
	}
	for i, v := range src {
		d := int32(v) - zero
		for m := range og {
			acc[i*og+m] += d * w[i*og+m]
		}
	}
}

// taps3x3Q is the 3×3 case with all taps inside the image: the zero point is included once, in b.
func taps3x3Q[T int8 | uint8](s *Shape, acc []int32, in []T, w, b []int32, y0, x0 int) {
	n, col := len(acc), s.DilW*s.C
	copy(acc, b)
	for ky := range 3 {
		line := in[((y0+ky*s.DilH)*s.W+x0)*s.C:]
		p, q, r := line[:n], line[col:][:n], line[2*col:][:n]
		u, v, t := w[:n], w[n:][:n], w[2*n:][:n]
		for i := range acc {
			acc[i] += int32(p[i])*u[i] + int32(q[i])*v[i] + int32(r[i])*t[i]
		}
		w = w[3*n:]
	}
}
