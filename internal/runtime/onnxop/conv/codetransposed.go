package conv

import (
	"encoding/binary"
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// QLinearConvTranspose has the inputs of QLinearConv: x, x_scale, x_zero, w, w_scale, w_zero,
// y_scale, y_zero, bias, with weights [C,M/groups,...]. It is computed phase by phase; see
// [kernel.PhaseRun].

// phase is the convolution of one phase of both axes.
type phase struct {
	planar *conv.Sums
	h, l   conv.PhaseRun
	codes  []uint8 // [N,M,h,l]
}

func newCodesTransposed(c *op.Call) (*convolution, error) {
	v, err := newTransposed(&op.Call{Node: c.Node, In: []*tensor.Tensor{c.In[0], c.In[3], c.Input(8)}})
	if err != nil {
		return nil, err
	}
	if len(v.In) > 2 || !quant.IsByte(c.In[0]) || !quant.IsByte(c.In[3]) || !quant.IsByte(c.In[7]) || !c.Const(3) || c.Has(5) && !c.Const(5) {
		return nil, op.Unsupported("a transposed convolution of codes %s by %s", tensor.FormatShape(c.In[0].Shape), tensor.FormatShape(c.In[3].Shape))
	}
	if tensor.Elements(v.Out) == 0 {
		return nil, op.Unsupported("a transposed convolution of no codes")
	}
	c.SetOut(0, c.In[7].Type, append([]int{v.n, v.m}, v.In...))
	return v, nil
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
	last := len(v.In) - 1
	t := &codesTransposed{convolution: v, h: 1, w: v.In[last]}
	if last == 1 {
		t.h = v.In[0]
	}
	w := t.lifted(c)
	c.Kernel = "unused"
	axes := make([][]conv.PhaseRun, len(v.In))
	for i := range axes {
		axes[i] = conv.SinglePhases(v.phasesOf(i), v.In[i], v.Stride[i])
	}
	high := []conv.PhaseRun{{N: 1, Out: 1}}
	if last == 1 {
		high = axes[0]
	}
	for _, h := range high {
		for _, l := range axes[last] {
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

// lifted returns the weights minus their zero points.
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

// phase prepares the convolution of phases of both axes.
func (t *codesTransposed) phase(c *op.Call, w []int32, h, l conv.PhaseRun) *phase {
	part := phasePart{phases: 1, runs: []conv.PhaseRun{h, l}, out: []int{h.Out, l.Out}}
	if len(t.In) == 1 {
		part.runs, part.out = part.runs[1:], part.out[1:]
	}
	p := &phase{planar: conv.NewSums(part.shape(t.convolution).planar2D(), false, false), h: h, l: l}
	conv.SetSumWeights(p.planar, phaseWeights(&part, t.convolution, w), 0)
	n := t.n * t.m * h.Out * l.Out
	p.codes = c.Scratch(n)
	if !p.planar.UsesSIMD() && n > len(t.sums) {
		t.sums = op.ScratchOf[int32](c, n)
	}
	return p
}

// run computes the quantised output of a phase.
func (t *codesTransposed) run(c *op.Call, p *phase, r *quantise.Rescale) {
	if p.planar.UsesSIMD() {
		p.planar.RunRescaled(c.Pool, c.In[0].Data, p.codes, r)
		return
	}
	p.planar.Run(c.Pool, c.In[0].Data, t.sums[:len(p.codes)])
	area := p.h.Out * p.l.Out
	for i := range t.n * t.m {
		r.Rows(p.codes, i*area, area, t.sums[i*area:], area, 1, area, i%t.m)
	}
}

// interleave writes the results of planes lo to hi of all phases to their positions.
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
			for n < len(row) && row[n].h.First == row[0].h.First {
				n++
			}
			row, k = row[:n], k+n
			for y := range row[0].h.Out {
				line := plane[(row[0].h.First+y*sh)*t.w:][:t.w]
				if sw == 2 && n == 2 {
					pairs(line, row[0].line(i, y), row[1].line(i, y))
					continue
				}
				for _, p := range row {
					at := p.l.First
					for _, v := range p.line(i, y) {
						line[at] = v
						at += sw
					}
				}
			}
		}
	}
}

// line returns line y of plane i.
func (p *phase) line(i, y int) []uint8 {
	n := p.l.Out
	return p.codes[(i*p.h.Out+y)*n:][:n]
}

// pairs interleaves the bytes of a and b, a first. dst has the length of both together, where a
// may have one more than b.
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
