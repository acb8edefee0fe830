package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
)

// taps returns the range of kernel indices whose input index start+i*dil lies in [0, size).
func taps(start, dil, k, size int) (lo, hi int) {
	hi = k
	for lo < k && start+lo*dil < 0 {
		lo++
	}
	for hi > lo && start+(hi-1)*dil >= size {
		hi--
	}
	return lo, hi
}

// depthwiseNHWC iterates over output positions; the inner loops run over channels, which are
// contiguous in input, weights and output.
func (c *Float32) depthwiseNHWC(p *workers.Pool, x, y []float32) {
	s := &c.s
	workers.Do(p, s.N*s.OH, max(1, 1<<14/max(1, s.OW*s.OC*c.k)), depthArgs{c, x, y}, depthArgs.lines)
}

// depthArgs holds the arguments of a work item.
type depthArgs struct {
	c    *Float32
	x, y []float32
}

// lines computes rows lo to hi of all images in NHWC.
func (q depthArgs) lines(lo, hi int) {
	c, s := q.c, &q.c.s
	for r := lo; r < hi; r++ {
		n, oy := r/s.OH, r%s.OH
		in := q.x[n*s.H*s.W*s.C:][:s.H*s.W*s.C]
		y0 := oy*s.StrideH - s.PadT
		ky0, ky1 := taps(y0, s.DilH, s.KH, s.H)
		for ox := range s.OW {
			out := q.y[(r*s.OW+ox)*s.OC:][:s.OC]
			x0 := ox*s.StrideW - s.PadL
			kx0, kx1 := taps(x0, s.DilW, s.KW, s.W)
			if c.og == 1 && s.KH == 3 && s.KW == 3 && ky1-ky0 == 3 && kx1-kx0 == 3 {
				c.taps3x3(out, in, y0, x0)
			} else {
				c.position(out, in, y0, x0, ky0, ky1, kx0, kx1)
			}
			if c.act.On {
				element.Bound(out, c.act.Min, c.act.Max)
			}
		}
	}
}

// position sums tap by tap and adds the bias at the end, in the order of the TFLite reference
// kernels: the result is bit-exact.
func (c *Float32) position(out, in []float32, y0, x0, ky0, ky1, kx0, kx1 int) {
	s := c.s
	clear(out)
	for ky := ky0; ky < ky1; ky++ {
		for kx := kx0; kx < kx1; kx++ {
			src := in[((y0+ky*s.DilH)*s.W+x0+kx*s.DilW)*s.C:][:s.C]
			w := c.weights[(ky*s.KW+kx)*s.OC:][:len(out)]
			if c.og == 1 {
				src = src[:len(out)]
				for i := range out {
					out[i] += float32(src[i] * w[i])
				}
				continue
			}
			for i, v := range src {
				o := out[i*c.og:][:c.og]
				u := w[i*c.og:][:c.og]
				for m := range o {
					o[m] += float32(v * u[m])
				}
			}
		}
	}
	if c.bias != nil {
		bias := c.bias[:len(out)]
		for i := range out {
			out[i] += bias[i]
		}
	}
}

// taps3x3 is the 3×3 case with all taps inside the image, one row of taps at a time: that many
// slices fit the registers. Sums keep the order of position.
func (c *Float32) taps3x3(out, in []float32, y0, x0 int) {
	s := &c.s
	n, col := len(out), s.DilW*s.C
	w := c.weights
	for ky := range 3 {
		line := in[((y0+ky*s.DilH)*s.W+x0)*s.C:]
		a, b, d := line[:n], line[col:][:n], line[2*col:][:n]
		u, v, t := w[:n], w[n:][:n], w[2*n:][:n]
		switch {
		case ky == 0:
			for i := range out {
				out[i] = float32(a[i]*u[i]) + float32(b[i]*v[i]) + float32(d[i]*t[i])
			}
		case ky == 1 || c.bias == nil:
			for i := range out {
				out[i] = out[i] + float32(a[i]*u[i]) + float32(b[i]*v[i]) + float32(d[i]*t[i])
			}
		default:
			bias := c.bias[:n]
			for i := range out {
				out[i] = out[i] + float32(a[i]*u[i]) + float32(b[i]*v[i]) + float32(d[i]*t[i]) + bias[i]
			}
		}
		w = w[3*n:]
	}
}

// depthwiseNCHW convolves plane by plane.
func (c *Float32) depthwiseNCHW(p *workers.Pool, x, y []float32) {
	s := &c.s
	workers.Do(p, s.N*s.OC, max(1, 1<<14/max(1, s.OH*s.OW*c.k)), depthArgs{c, x, y}, depthArgs.planes)
}

// planes computes planes lo to hi of all images in NCHW.
func (q depthArgs) planes(lo, hi int) {
	c, s := q.c, &q.c.s
	// The 3×3 case reads from a padded copy.
	pw, ph := (s.OW-1)*s.StrideW+3, (s.OH-1)*s.StrideH+3
	three := s.KH == 3 && s.KW == 3 && s.DilH == 1 && s.DilW == 1 && s.StrideW <= 2 && s.OW >= 4 && ph*pw <= scratch.Block
	var padded []float32
	if three {
		sc, buf := scratch.Borrow(pw * ph)
		defer scratch.Float32s.Put(sc)
		padded = buf
	}
	for i := lo; i < hi; i++ {
		n, o := i/s.OC, i%s.OC
		in := q.x[(n*s.C+o/c.og)*s.H*s.W:][:s.H*s.W]
		w := c.weights[o*c.k:][:c.k]
		out := q.y[i*s.OH*s.OW:][:s.OH*s.OW]
		var b float32
		if c.bias != nil {
			b = c.bias[o]
		}
		if three {
			if i == lo || o%c.og == 0 {
				s.pad(padded, in, pw, ph)
			}
			for oy := range s.OH {
				threeRow(out[oy*s.OW:][:s.OW], padded[oy*s.StrideH*pw:], pw, s.StrideW, (*[9]float32)(w), b)
			}
		} else {
			for oy := range s.OH {
				c.row(out[oy*s.OW:][:s.OW], in, w, b, oy*s.StrideH-s.PadT)
			}
		}
		if c.act.On {
			element.Bound(out, c.act.Min, c.act.Max)
		}
	}
}

// pad copies the input that a convolution reads of a plane, ph rows of pw columns, with padding.
func (s *Shape) pad(dst, in []float32, pw, ph int) {
	lo, hi := span(pw, 1, -s.PadL, s.W)
	for y := range ph {
		line := dst[y*pw:][:pw]
		iy := y - s.PadT
		if uint(iy) >= uint(s.H) || lo >= hi {
			clear(line)
			continue
		}
		clear(line[:lo])
		copy(line[lo:hi], in[iy*s.W+lo-s.PadL:])
		clear(line[hi:])
	}
}

// threeRow computes one row of a 3×3 convolution over a padded plane with rows of pw columns,
// four outputs at a time; out has at least four. The last four may overlap the previous ones.
func threeRow(out, in []float32, pw, stride int, w *[9]float32, b float32) {
	for i := 0; ; i = min(i+4, len(out)-4) {
		s0, s1, s2, s3 := b, b, b, b
		for ky := range 3 {
			w0, w1, w2 := w[3*ky], w[3*ky+1], w[3*ky+2]
			if stride == 1 {
				p := (*[6]float32)(in[ky*pw+i:])
				s0 += w0*p[0] + w1*p[1] + w2*p[2]
				s1 += w0*p[1] + w1*p[2] + w2*p[3]
				s2 += w0*p[2] + w1*p[3] + w2*p[4]
				s3 += w0*p[3] + w1*p[4] + w2*p[5]
				continue
			}
			p := (*[9]float32)(in[ky*pw+2*i:])
			s0 += w0*p[0] + w1*p[1] + w2*p[2]
			s1 += w0*p[2] + w1*p[3] + w2*p[4]
			s2 += w0*p[4] + w1*p[5] + w2*p[6]
			s3 += w0*p[6] + w1*p[7] + w2*p[8]
		}
		*(*[4]float32)(out[i:]) = [4]float32{s0, s1, s2, s3}
		if i+4 >= len(out) {
			return
		}
	}
}

// row computes one output row of a plane, tap by tap over the columns for which the tap lies
// inside the image.
func (c *Float32) row(out, in, w []float32, b float32, y0 int) {
	s := c.s
	for i := range out {
		out[i] = b
	}
	for ky := range s.KH {
		iy := y0 + ky*s.DilH
		if uint(iy) >= uint(s.H) {
			continue
		}
		line := in[iy*s.W:][:s.W]
		for kx := range s.KW {
			wv := w[ky*s.KW+kx]
			off := kx*s.DilW - s.PadL // ix = ox*stride + off
			lo, hi := span(s.OW, s.StrideW, off, s.W)
			if lo >= hi {
				continue
			}
			o := out[lo:hi]
			if s.StrideW == 1 {
				src := line[lo+off:][:len(o)]
				for i := range o {
					o[i] += wv * src[i]
				}
				continue
			}
			ix := lo*s.StrideW + off
			for i := range o {
				o[i] += wv * line[ix]
				ix += s.StrideW
			}
		}
	}
}
