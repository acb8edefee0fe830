package kernel

import (
	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/op"
)

// Requant turns the 32-bit sums of an output channel into quantised values.
type Requant struct {
	Bias     []int32            // one a channel, nil for none
	Mul      []fixed.Multiplier // one a channel, or a single one for all
	Zero     int32              // output zero point
	Min, Max int32              // clamp, after the zero point
}

func (q *Requant) mul(ch int) fixed.Multiplier {
	if len(q.Mul) == 1 {
		return q.Mul[0]
	}
	return q.Mul[ch]
}

// One quantises the sum acc of channel ch.
func (q *Requant) One(acc int32, ch int) int32 {
	if q.Bias != nil {
		acc += q.Bias[ch]
	}
	v := q.mul(ch).Apply(acc) + q.Zero
	return min(max(v, q.Min), q.Max)
}

// ConvQ is a convolution over 8-bit activations in [N,H,W,C] with 32-bit sums.
//
// The products are computed by the float micro-kernel on small whole numbers and
// added up in integers before a partial sum could leave the 24 bits in which
// float32 is exact. That is faster than scalar integer code and gives the same
// bits.
type ConvQ[T int8 | uint8] struct {
	c     *Conv
	zero  int32 // input zero point
	chunk int   // steps of k that stay exact
	q     Requant
	wd    []int32 // [KH,KW,OC] of a depthwise convolution
}

// NewConvQ prepares a convolution with weights [OC,KH,KW,C/Groups], given as
// differences to their zero point, of at most maxWeight in size.
func NewConvQ[T int8 | uint8](s ConvShape, w []int16, maxWeight int, zero int32, q Requant) *ConvQ[T] {
	f := make([]float32, len(w))
	for i, v := range w {
		f[i] = float32(v)
	}
	// |x - zero| is at most 255.
	chunk := (1 << 24) / (255 * max(maxWeight, 1)) / 2 * 2
	c := newConv(s, true, f, nil, op.Activation{})
	r := &ConvQ[T]{c: c, zero: zero, chunk: max(chunk, 2), q: q}
	if c.depthwise {
		// Sums in integers: there is no reuse for the micro-kernel to gain from.
		r.wd = make([]int32, len(c.weights))
		for i, v := range c.weights {
			r.wd[i] = int32(v)
		}
	}
	return r
}

// Run convolves x into y.
func (c *ConvQ[T]) Run(p *op.Pool, x, y []T) {
	if c.c.depthwise {
		DepthwiseQ(p, c.c.s, c.c.og, x, y, c.wd, c.zero, &c.q)
		return
	}
	s := c.c.s
	k, og := c.c.k, c.c.og
	area := s.OH * s.OW
	block := max(rowsPanel, min(roundUp(area, rowsPanel), packBlock/max(k, 1)/rowsPanel*rowsPanel))
	if t := p.Threads(); t > 1 {
		block = max(rowsPanel, min(block, roundUp((area+2*t-1)/(2*t), rowsPanel)))
	}
	blocks := (area + block - 1) / block
	per := roundUp(og, colsPanel) * k
	p.For(s.N*s.Groups*blocks, 1, func(lo, hi int) {
		sc, buf := borrow(block * k)
		for i := lo; i < hi; i++ {
			b, g, n := i%blocks, i/blocks%s.Groups, i/blocks/s.Groups
			p0 := b * block
			np := min(block, area-p0)
			c.patches(buf, x[n*s.H*s.W*s.C:][:s.H*s.W*s.C], g, p0, np)
			c.tiles(buf, c.c.weights[g*per:(g+1)*per], y[n*area*s.OC:][:area*s.OC], g, p0, np)
		}
		scratch.Put(sc)
	})
}

// patches is Conv.patchesNHWC for quantised input: values less their zero point,
// so that padding is 0.
func (c *ConvQ[T]) patches(dst []float32, x []T, g, p0, np int) {
	s, k, cg := c.c.s, c.c.k, c.c.cg
	for i := range roundUp(np, rowsPanel) {
		d := dst[i/rowsPanel*rowsPanel*k:][:rowsPanel*k]
		d = d[i%rowsPanel:]
		if i >= np {
			for j := 0; j < len(d); j += rowsPanel {
				d[j] = 0
			}
			continue
		}
		oy, ox := (p0+i)/s.OW, (p0+i)%s.OW
		at := 0
		for ky := range s.KH {
			iy := oy*s.StrideH - s.PadT + ky*s.DilH
			for kx := range s.KW {
				ix := ox*s.StrideW - s.PadL + kx*s.DilW
				t := d[at:]
				if uint(iy) < uint(s.H) && uint(ix) < uint(s.W) {
					for j, v := range x[(iy*s.W+ix)*s.C+g*cg:][:cg] {
						t[j*rowsPanel] = float32(int32(v) - c.zero)
					}
				} else {
					for j := range cg {
						t[j*rowsPanel] = 0
					}
				}
				at += cg * rowsPanel
			}
		}
	}
}

func (c *ConvQ[T]) tiles(buf, w []float32, y []T, g, p0, np int) {
	k, og, oc := c.c.k, c.c.og, c.c.s.OC
	var acc [8]float32
	for o := 0; o < og; o += colsPanel {
		pw := w[o*k : (o+colsPanel)*k]
		n := min(colsPanel, og-o)
		for i := 0; i < np; i += rowsPanel {
			pa := buf[i*k : (i+rowsPanel)*k]
			var sum [8]int32
			for k0 := 0; k0 < k; k0 += c.chunk {
				kc := min(c.chunk, k-k0)
				micro(kc, pa[k0*rowsPanel:], pw[k0*colsPanel:], &acc)
				for j, v := range acc {
					sum[j] += int32(v)
				}
			}
			for r := range min(rowsPanel, np-i) {
				row := y[(p0+i+r)*oc+g*og+o:][:n]
				for j := range row {
					row[j] = T(c.q.One(sum[r*colsPanel+j], g*og+o+j))
				}
			}
		}
	}
}

// DepthwiseQ is a depthwise convolution with int32 weights [KH,KW,OC], less their
// zero point; og is the channel multiplier.
func DepthwiseQ[T int8 | uint8](p *op.Pool, s ConvShape, og int, x, y []T, w []int32, zero int32, q *Requant) {
	grain := max(1, 1<<13/max(1, s.OW*s.OC*s.KH*s.KW))
	p.For(s.N*s.OH, grain, func(lo, hi int) {
		sc, fs := borrow(s.OC)
		acc := asInt32(fs)
		for r := lo; r < hi; r++ {
			n, oy := r/s.OH, r%s.OH
			in := x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
			y0 := oy*s.StrideH - s.PadT
			ky0, ky1 := taps(y0, s.DilH, s.KH, s.H)
			for ox := range s.OW {
				x0 := ox*s.StrideW - s.PadL
				kx0, kx1 := taps(x0, s.DilW, s.KW, s.W)
				clear(acc)
				for ky := ky0; ky < ky1; ky++ {
					for kx := kx0; kx < kx1; kx++ {
						src := in[((y0+ky*s.DilH)*s.W+x0+kx*s.DilW)*s.C:][:s.C]
						wt := w[(ky*s.KW+kx)*s.OC:][:len(acc)]
						if og == 1 {
							src = src[:len(acc)]
							for i := range acc {
								acc[i] += (int32(src[i]) - zero) * wt[i]
							}
							continue
						}
						for i, v := range src {
							d := int32(v) - zero
							for m := range og {
								acc[i*og+m] += d * wt[i*og+m]
							}
						}
					}
				}
				out := y[(r*s.OW+ox)*s.OC:][:s.OC]
				for i := range out {
					out[i] = T(q.One(acc[i], i))
				}
			}
		}
		scratch.Put(sc)
	})
}
