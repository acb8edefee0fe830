package kernel

import (
	"github.com/opmeter/opmeter/internal/op"
)

// ConvShape describes a two-dimensional convolution. Output sizes and top/left
// padding are given; what lies outside the input counts as zero.
type ConvShape struct {
	N, C, H, W       int // batch and input
	OC, OH, OW       int // output
	KH, KW           int
	StrideH, StrideW int
	DilH, DilW       int
	PadT, PadL       int
	Groups           int // 0 means 1
}

// Conv is a prepared convolution. Run may be called from one goroutine at a time
// for each output; it keeps no state.
type Conv struct {
	s       ConvShape
	nhwc    bool
	weights []float32 // packed, group after group; or as given for depthwise
	bias    []float32
	act     op.Activation
	// cg and og are input and output channels per group; k the length of a patch.
	cg, og, k int
	depthwise bool
}

func newConv(s ConvShape, nhwc bool, w, bias []float32, act op.Activation) *Conv {
	s.Groups = max(s.Groups, 1)
	c := &Conv{s: s, nhwc: nhwc, act: act, cg: s.C / s.Groups, og: s.OC / s.Groups}
	c.k = c.cg * s.KH * s.KW
	c.depthwise = c.cg == 1 && s.Groups > 1
	c.SetWeights(w, bias)
	return c
}

// NewConvNHWC prepares a convolution over [N,H,W,C] with weights [OC,KH,KW,C/Groups].
func NewConvNHWC(s ConvShape, w, bias []float32, act op.Activation) *Conv {
	return newConv(s, true, w, bias, act)
}

// NewConvNCHW prepares a convolution over [N,C,H,W] with weights [OC,C/Groups,KH,KW].
func NewConvNCHW(s ConvShape, w, bias []float32, act op.Activation) *Conv {
	return newConv(s, false, w, bias, act)
}

// NewDepthwiseNHWC prepares a depthwise convolution over [N,H,W,C] with weights
// [1,KH,KW,OC], OC a multiple of C. s.Groups is not looked at.
func NewDepthwiseNHWC(s ConvShape, w, bias []float32, act op.Activation) *Conv {
	s.Groups = s.C
	c := &Conv{s: s, nhwc: true, act: act, cg: 1, og: s.OC / s.C, k: s.KH * s.KW, depthwise: true}
	c.weights, c.bias = w, bias
	return c
}

// SetWeights exchanges the weights, laid out as for the constructor, and the
// bias, nil for none. The slices must not change while they are in use.
func (c *Conv) SetWeights(w, bias []float32) {
	s := c.s
	c.bias = bias
	if c.depthwise {
		if !c.nhwc {
			c.weights = w
			return
		}
		if len(c.weights) != len(w) {
			c.weights = make([]float32, len(w))
		}
		taps := s.KH * s.KW
		for o := range s.OC {
			for t := range taps {
				c.weights[t*s.OC+o] = w[o*taps+t]
			}
		}
		return
	}
	width := colsPanel
	if !c.nhwc {
		width = rowsPanel
	}
	per := roundUp(c.og, width) * c.k
	if len(c.weights) != per*s.Groups {
		c.weights = make([]float32, per*s.Groups)
	}
	for g := range s.Groups {
		pack(c.weights[g*per:], w[g*c.og*c.k:], c.og, c.k, width, c.k, 1)
	}
}

// Run convolves x into y, both in the layout of the constructor.
func (c *Conv) Run(p *op.Pool, x, y []float32) {
	switch {
	case c.depthwise && c.nhwc:
		c.depthwiseNHWC(p, x, y)
	case c.depthwise:
		c.depthwiseNCHW(p, x, y)
	default:
		c.product(p, x, y)
	}
}

// product runs the convolution as a matrix product over patches. Work is cut into
// blocks of output positions and, where those are few, of output channels.
func (c *Conv) product(p *op.Pool, x, y []float32) {
	s := c.s
	width, wwidth := rowsPanel, colsPanel // of the patches, of the weights
	if !c.nhwc {
		width, wwidth = colsPanel, rowsPanel
	}
	area := s.OH * s.OW
	block := max(width, min(roundUp(area, width), packBlock/max(c.k, 1)/width*width))
	if t := p.Threads(); t > 1 {
		block = max(width, min(block, roundUp((area+2*t-1)/(2*t), width)))
	}
	blocks := (area + block - 1) / block
	parts := 1
	if jobs := s.N * s.Groups * blocks; jobs < p.Threads() {
		parts = min((p.Threads()+jobs-1)/max(jobs, 1), (c.og+wwidth-1)/wwidth)
	}
	step := roundUp((c.og+parts-1)/parts, wwidth)
	per := roundUp(c.og, wwidth) * c.k
	p.For(s.N*s.Groups*blocks*parts, 1, func(lo, hi int) {
		sc, buf := borrow(block * c.k)
		for i := lo; i < hi; i++ {
			part := i % parts
			b := i / parts % blocks
			g := i / parts / blocks % s.Groups
			n := i / parts / blocks / s.Groups
			p0 := b * block
			np := min(block, area-p0)
			o0, o1 := part*step, min((part+1)*step, c.og)
			if o0 >= o1 {
				continue
			}
			w := c.weights[g*per : (g+1)*per]
			if c.nhwc {
				c.patchesNHWC(buf, x[n*s.H*s.W*s.C:][:s.H*s.W*s.C], g, p0, np)
				c.tilesNHWC(buf, w, y[n*area*s.OC:][:area*s.OC], g, p0, np, o0, o1)
			} else {
				c.patchesNCHW(buf, x[(n*s.C+g*c.cg)*s.H*s.W:][:c.cg*s.H*s.W], p0, np)
				c.tilesNCHW(buf, w, y[(n*s.OC+g*c.og)*area:][:c.og*area], g, p0, np, o0, o1)
			}
		}
		scratch.Put(sc)
	})
}

// patchesNHWC packs np patches from position p0 on into panels of two, in the
// order tap, channel.
func (c *Conv) patchesNHWC(dst, x []float32, g, p0, np int) {
	s := c.s
	for i := range roundUp(np, rowsPanel) {
		d := dst[i/rowsPanel*rowsPanel*c.k:][:rowsPanel*c.k]
		d = d[i%rowsPanel:]
		if i >= np {
			for j := 0; j < len(d); j += rowsPanel {
				d[j] = 0
			}
			continue
		}
		oy, ox := (p0+i)/s.OW, (p0+i)%s.OW
		k := 0
		for ky := range s.KH {
			iy := oy*s.StrideH - s.PadT + ky*s.DilH
			for kx := range s.KW {
				ix := ox*s.StrideW - s.PadL + kx*s.DilW
				t := d[k:]
				if uint(iy) < uint(s.H) && uint(ix) < uint(s.W) {
					for j, v := range x[(iy*s.W+ix)*s.C+g*c.cg:][:c.cg] {
						t[j*rowsPanel] = v
					}
				} else {
					for j := range c.cg {
						t[j*rowsPanel] = 0
					}
				}
				k += c.cg * rowsPanel
			}
		}
	}
}

func (c *Conv) tilesNHWC(buf, w, y []float32, g, p0, np, o0, o1 int) {
	var acc [8]float32
	k, oc := c.k, c.s.OC
	for o := o0; o < o1; o += colsPanel {
		pw := w[o*k : (o+colsPanel)*k]
		n := min(colsPanel, o1-o)
		var b [colsPanel]float32
		if c.bias != nil {
			copy(b[:n], c.bias[g*c.og+o:])
		}
		for i := 0; i < np; i += rowsPanel {
			micro(k, buf[i*k:(i+rowsPanel)*k], pw, &acc)
			for r := range min(rowsPanel, np-i) {
				row := y[(p0+i+r)*oc+g*c.og+o:][:n]
				for j := range row {
					row[j] = acc[r*colsPanel+j] + b[j]
				}
				if c.act.On {
					clamp(row, c.act)
				}
			}
		}
	}
}

// patchesNCHW packs np patches into panels of four, in the order channel, tap.
// It walks tap by tap, because neighbouring positions lie side by side in x.
func (c *Conv) patchesNCHW(dst, x []float32, p0, np int) {
	s := c.s
	k := 0
	pad := roundUp(np, colsPanel)
	for ch := range c.cg {
		plane := x[ch*s.H*s.W:][:s.H*s.W]
		for ky := range s.KH {
			for kx := range s.KW {
				oy, ox := p0/s.OW, p0%s.OW
				for i := 0; i < np; {
					// One output row, or what is left of it.
					run := min(s.OW-ox, np-i)
					iy := oy*s.StrideH - s.PadT + ky*s.DilH
					if uint(iy) >= uint(s.H) {
						for j := range run {
							dst[((i+j)/colsPanel*c.k+k)*colsPanel+(i+j)%colsPanel] = 0
						}
					} else {
						line := plane[iy*s.W:][:s.W]
						ix := ox*s.StrideW - s.PadL + kx*s.DilW
						for j := range run {
							var v float32
							if uint(ix) < uint(len(line)) {
								v = line[ix]
							}
							at := i + j
							dst[(at/colsPanel*c.k+k)*colsPanel+at%colsPanel] = v
							ix += s.StrideW
						}
					}
					i += run
					ox = 0
					oy++
				}
				for i := np; i < pad; i++ {
					dst[(i/colsPanel*c.k+k)*colsPanel+i%colsPanel] = 0
				}
				k++
			}
		}
	}
}

func (c *Conv) tilesNCHW(buf, w, y []float32, g, p0, np, o0, o1 int) {
	var acc [8]float32
	k, area := c.k, c.s.OH*c.s.OW
	for i := 0; i < np; i += colsPanel {
		pb := buf[i*k : (i+colsPanel)*k]
		n := min(colsPanel, np-i)
		for o := o0; o < o1; o += rowsPanel {
			micro(k, w[o*k:(o+rowsPanel)*k], pb, &acc)
			for r := range min(rowsPanel, o1-o) {
				var b float32
				if c.bias != nil {
					b = c.bias[g*c.og+o+r]
				}
				row := y[(o+r)*area+p0+i:][:n]
				for j := range row {
					row[j] = acc[r*colsPanel+j] + b
				}
				if c.act.On {
					clamp(row, c.act)
				}
			}
		}
	}
}
