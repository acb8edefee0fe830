package conv

import (
	"encoding/binary"
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/onnxop/quant"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// QLinearConvTranspose has the inputs of QLinearConv: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias, and weights
// [C,M/groups,...]. Results whose places have the same remainder by the stride see the same taps of the window, one stride apart: they are
// a convolution of step one, and there is one for each remainder.

// phase is the convolution of one remainder along both axes.
type phase struct {
	planar *kernel.ConvSums
	tapsH  taps
	tapsW  taps
	codes  []uint8 // [N,M,places,places]
}

// taps are those of a remainder along an axis: every stride-th tap of the window from first on, backwards.
type taps struct {
	first, n      int
	place, places int // first place of the results, and how many
	pad           int
}

// remainders lists the taps along axis i. Those beyond the window have a weight of zero: a remainder may have no other tap, and padding may
// leave out the first inputs.
func (v *convolution) remainders(i int) []taps {
	s, k, p := v.Stride[i], v.Kernel[i], v.Begin[i]
	var all []taps
	for r := range s {
		t := taps{first: r, n: max(1, (k-r+s-1)/s), place: ((r-p)%s + s) % s}
		if t.places = (v.In[i] - t.place + s - 1) / s; t.places <= 0 {
			continue
		}
		first := (t.place + p - r) / s // input that tap r sees at the first place
		t.n = max(t.n, first+1)
		t.pad = t.n - 1 - first
		all = append(all, t)
	}
	return all
}

func newCodesTransposed(c *op.Call) (*convolution, error) {
	if err := c.NeedInputs(8); err != nil {
		return nil, err
	}
	v, err := newTransposed(&op.Call{Node: c.Node, In: []*tensor.Tensor{c.In[0], c.In[3], c.Input(8)}})
	if err != nil {
		return nil, err
	}
	if len(v.In) > 2 || !quant.IsByte(c.In[0]) || !quant.IsByte(c.In[3]) || !quant.IsByte(c.In[7]) || !c.Const(3) || c.Has(5) && !c.Const(5) {
		return nil, op.Unsupported("a transposed convolution of codes %s by %s", tensor.FormatShape(c.In[0].Shape), tensor.FormatShape(c.In[3].Shape))
	}
	for i := range v.In {
		if v.Dilation[i] != 1 || v.Out[i] == 0 {
			return nil, op.Unsupported("a transposed convolution of codes with dilations")
		}
	}
	return v, nil
}

func inferCodesTransposed(c *op.Call) error {
	v, err := newCodesTransposed(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[7].Type, append([]int{v.n, v.m}, v.In...))
	return nil
}

// codesTransposed is a prepared node.
type codesTransposed struct {
	*convolution
	phases []*phase // of the second axis innermost
	h, w   int      // of the result
	sums   []int32  // where there are no kernels in vectors
	y      []uint8  // of a run
}

func prepareCodesTransposed(c *op.Call) (op.Run, error) {
	v, err := newCodesTransposed(c)
	if err != nil {
		return nil, err
	}
	q, err := newRequantised(c, v.m)
	if err != nil {
		return nil, err
	}
	if z := c.Input(5); z != nil && z.Len() != 1 && z.Len() != v.m {
		return nil, fmt.Errorf("weight zero point %s for %d channels", tensor.FormatShape(z.Shape), v.m)
	}
	t := &codesTransposed{convolution: v, h: 1, w: v.In[len(v.In)-1]}
	high := []taps{{n: 1, places: 1}}
	if len(v.In) == 2 {
		t.h, high = v.In[0], v.remainders(0)
	}
	w := t.lifted(c)
	c.Kernel = "unused"
	for _, h := range high {
		for _, l := range v.remainders(len(v.In) - 1) {
			t.phases = append(t.phases, t.phase(c, w, h, l))
			c.Kernel = t.phases[0].planar.Name()
		}
	}
	interleave := t.interleave // made once: a run must not allocate
	return func(c *op.Call) error {
		q.prepare(c)
		zero := quant.Zero(c.Input(2))
		for _, p := range t.phases {
			p.planar.SetZero(c.In[0].Type == tensor.Int8, zero)
			t.run(c, p, q.Rescale)
		}
		t.y = c.Out[0].Data
		c.Pool.For(v.n*v.m, max(1, 1<<14/max(1, t.h*t.w)), interleave)
		return nil
	}, nil
}

// lifted are the weights less their zero points.
func (t *codesTransposed) lifted(c *op.Call) []int32 {
	w := make([]int32, c.In[3].Len())
	quant.Lift(w, c.In[3], 0)
	z, area, mg := quant.Zeros(c.Input(5)), tensor.Elements(t.Kernel), t.m/t.groups
	if len(z) == 0 {
		return w
	}
	for i := range w {
		o := i/area/mg/(t.c/t.groups)*mg + i/area%mg
		w[i] -= z[min(o, len(z)-1)]
	}
	return w
}

// phase prepares the convolution of remainders along both axes.
func (t *codesTransposed) phase(c *op.Call, w []int32, h, l taps) *phase {
	last := len(t.In) - 1
	s := kernel.ConvShape{
		N: t.n, C: t.c, OC: t.m, Groups: t.groups, H: 1, W: t.Out[last], OH: h.places, OW: l.places, KH: h.n, KW: l.n,
		StrideH: 1, StrideW: 1, DilH: 1, DilW: 1, PadT: h.pad, PadL: l.pad,
	}
	kh, kw, sh, sw := 1, t.Kernel[last], 1, t.Stride[last]
	if last == 1 {
		s.H, kh, sh = t.Out[0], t.Kernel[0], t.Stride[0]
	}
	cg, mg := t.c/t.groups, t.m/t.groups
	turned := make([]int32, t.m*cg*h.n*l.n)
	for o := range t.m {
		for i := range cg {
			from, to := w[((o/mg*cg+i)*mg+o%mg)*kh*kw:][:kh*kw], turned[(o*cg+i)*h.n*l.n:][:h.n*l.n]
			for y := range h.n {
				for x := range l.n {
					if ky, kx := h.first+y*sh, l.first+x*sw; ky < kh && kx < kw {
						to[(h.n-1-y)*l.n+l.n-1-x] = from[ky*kw+kx]
					}
				}
			}
		}
	}
	p := &phase{planar: kernel.NewConvSums(s, false, false), tapsH: h, tapsW: l}
	p.planar.SetWeights(turned)
	n := t.n * t.m * h.places * l.places
	p.codes = c.Scratch(n)
	if !p.planar.Vectors() && n > len(t.sums) {
		t.sums = op.ScratchOf[int32](c, n)
	}
	return p
}

// run computes the codes of a remainder.
func (t *codesTransposed) run(c *op.Call, p *phase, r *kernel.Rescale) {
	if p.planar.Vectors() {
		p.planar.Codes(c.Pool, c.In[0].Data, p.codes, r)
		return
	}
	p.planar.Run(c.Pool, c.In[0].Data, t.sums[:len(p.codes)])
	area := p.tapsH.places * p.tapsW.places
	for i := range t.n * t.m {
		r.Rows(p.codes, i*area, area, t.sums[i*area:], area, 1, area, i%t.m)
	}
}

// interleave puts the codes of planes lo to hi of all remainders where they belong.
func (t *codesTransposed) interleave(lo, hi int) {
	sh, sw := 1, t.Stride[len(t.In)-1]
	if len(t.In) == 2 {
		sh = t.Stride[0]
	}
	for i := lo; i < hi; i++ {
		plane := t.y[i*t.h*t.w:][:t.h*t.w]
		for k := 0; k < len(t.phases); {
			row := t.phases[k:]
			n := 1
			for n < len(row) && row[n].tapsH == row[0].tapsH {
				n++
			}
			row, k = row[:n], k+n
			for y := range row[0].tapsH.places {
				line := plane[(row[0].tapsH.place+y*sh)*t.w:][:t.w]
				if sw == 2 && n == 2 && row[0].tapsW.place == 0 {
					pairs(line, row[0].line(i, y), row[1].line(i, y))
					continue
				}
				if sw == 2 && n == 2 {
					pairs(line, row[1].line(i, y), row[0].line(i, y))
					continue
				}
				for _, p := range row {
					at := p.tapsW.place
					for _, v := range p.line(i, y) {
						line[at] = v
						at += sw
					}
				}
			}
		}
	}
}

// line is line y of plane i.
func (p *phase) line(i, y int) []uint8 {
	n := p.tapsW.places
	return p.codes[(i*p.tapsH.places+y)*n:][:n]
}

// pairs writes bytes of a and b in turns, a first; dst has as many as both, where a may have one more.
func pairs(dst, a, b []uint8) {
	for len(b) >= 4 && len(a) >= 4 {
		x, y := uint64(binary.LittleEndian.Uint32(a)), uint64(binary.LittleEndian.Uint32(b))
		x, y = (x|x<<16)&0x0000ffff0000ffff, (y|y<<16)&0x0000ffff0000ffff
		x, y = (x|x<<8)&0x00ff00ff00ff00ff, (y|y<<8)&0x00ff00ff00ff00ff
		binary.LittleEndian.PutUint64(dst, x|y<<8)
		dst, a, b = dst[8:], a[4:], b[4:]
	}
	for i, v := range a {
		if dst[2*i] = v; i < len(b) {
			dst[2*i+1] = b[i]
		}
	}
}
