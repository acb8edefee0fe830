package conv

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Convolution kernels compute the phases of a transposed convolution, see [kernel.PhaseRun], and
// the results are interleaved.

// phasesOf returns the phase runs of axis i.
func (v *convolution) phasesOf(i int) []conv.PhaseRun {
	return conv.PhaseRuns(v.In[i], v.Kernel[i], v.Stride[i], v.Dilation[i], v.Begin[i])
}

// phases is a transposed convolution with constant weights over up to three axes.
type phases struct {
	v     *convolution
	parts []phasePart
	total int // the number of their results
	// their results, one part after the other; nil where a part gives those of the node
	workspace []float32
	y         []float32 // of the run, whose loop is made once
	spread    func(lo, hi int)
}

// phasePart is a run of phases of each axis: the results of a channel are [phase][position].
type phasePart struct {
	conv   *conv.Float32
	runs   []conv.PhaseRun
	phases int // in all
	out    []int
	area   int
	at     int // where its results begin
}

// wastedPhases is how many times the multiplications of a transposed convolution the phases may
// take at most: their windows extend beyond the input, where the other method computes nothing.
const wastedPhases = 1.5

// newPhases returns nil for convolutions that are computed otherwise.
func newPhases(c *op.Call, v *convolution) *phases {
	const maxParts = 64
	if c.In[1].Type != tensor.Float32 || !c.Const(1) || !c.In[1].Known() || c.Has(2) && (!c.Const(2) || !c.In[2].Known()) || len(v.In) > 3 {
		return nil
	}
	if tensor.Elements(c.Out[0].Shape) == 0 || tensor.Elements(c.In[0].Shape) == 0 || v.c/v.groups < 2 {
		return nil
	}
	axes, together, count, work := make([][]conv.PhaseRun, len(v.In)), make([][]conv.PhaseRun, len(v.In)), 1, 1.0
	for i := range axes {
		if v.Stride[i] > maxParts {
			return nil
		}
		axes[i] = v.phasesOf(i)
		products := 0
		for _, r := range axes[i] {
			products += r.N * r.Kernel * r.Out
		}
		together[i] = []conv.PhaseRun{joined(axes[i])}
		count *= len(axes[i])
		work *= float64(products) / float64(v.Out[i]*v.Kernel[i])
	}
	if work > wastedPhases || count > maxParts {
		return nil
	}
	p := &phases{v: v}
	if !p.divide(c, axes) {
		return nil
	}
	if one := (&phases{v: v}); count > 1 && one.divide(c, together) && one.parts[0].conv.UsesWinograd() && one.time() < p.time() {
		p = one
	}
	p.spread = p.channels
	if tensor.Elements(v.Stride) > 1 {
		p.workspace = op.ScratchOf[float32](c, p.total)
	}
	c.Copied(1)
	c.Kernel = p.parts[0].conv.Name()
	return p
}

// joined merges the runs of an axis into one, whose windows see everything that theirs see.
// Winograd needs fewer multiplications for such windows than all phases together.
func joined(runs []conv.PhaseRun) conv.PhaseRun {
	all := conv.PhaseRun{Dilation: runs[0].Dilation, Out: runs[0].Out, Pad: runs[0].Pad}
	last := -all.Pad
	for _, r := range runs {
		all.Pad = max(all.Pad, r.Pad)
		last = max(last, (r.Kernel-1)*r.Dilation-r.Pad)
	}
	all.Kernel = (last+all.Pad)/all.Dilation + 1
	for _, r := range runs {
		for _, taps := range r.Taps {
			own := make([]int, all.Kernel)
			element.Fill(own, -1)
			copy(own[(all.Pad-r.Pad)/all.Dilation:], taps)
			all.Taps = append(all.Taps, own)
			all.N++
		}
	}
	return all
}

// divide makes the parts for the runs of each axis; false if one has no kernel.
func (p *phases) divide(c *op.Call, axes [][]conv.PhaseRun) bool {
	v, count := p.v, make([]int, len(axes))
	for i := range axes {
		count[i] = len(axes[i])
	}
	at := make([]int, len(axes))
	for range tensor.Elements(count) {
		part := phasePart{phases: 1, at: p.total}
		for i, k := range at {
			r := axes[i][k]
			part.runs, part.out = append(part.runs, r), append(part.out, r.Out)
			part.phases *= r.N
		}
		part.area = tensor.Elements(part.out)
		if part.conv = part.prepare(c, v); part.conv == nil {
			return false
		}
		p.total += v.n * v.m * part.phases * part.area
		p.parts = append(p.parts, part)
		tensor.Next(at, count)
	}
	return true
}

// time estimates the time of an image.
func (p *phases) time() (ns float64) {
	for i := range p.parts {
		ns += p.parts[i].conv.EstimatedTime()
	}
	return ns
}

// shape returns the convolution of a part.
func (q *phasePart) shape(v *convolution) *convolution {
	s := &convolution{n: v.n, c: v.c, m: v.m * q.phases, groups: v.groups, Window: &window.Window{In: v.Out, Out: q.out}}
	for _, r := range q.runs {
		s.Kernel, s.Dilation, s.Begin, s.Stride = append(s.Kernel, r.Kernel), append(s.Dilation, r.Dilation), append(s.Begin, r.Pad), append(s.Stride, 1)
	}
	return s
}

// phaseWeights returns the weights of the convolution of a part, whose channels are
// [group][phase][channel], from those of v.
func phaseWeights[T tensor.Number](q *phasePart, v *convolution, from []T) []T {
	s := q.shape(v)
	rank := len(v.In)
	phases := make([]int, rank)
	for i, r := range q.runs {
		phases[i] = r.N
	}
	cg, mg, taps, own := v.c/v.groups, v.m/v.groups, tensor.Elements(v.Kernel), tensor.Elements(s.Kernel)
	w := make([]T, 0, s.m*cg*own)
	phase, tap := make([]int, rank), make([]int, rank)
	for g := range v.groups {
		for p := range q.phases {
			tensor.Unravel(p, phases, phase)
			for m := range mg {
				for ch := range cg {
					for t := range own {
						tensor.Unravel(t, s.Kernel, tap)
						k, none := 0, false
						for i, r := range q.runs {
							at := r.Taps[phase[i]][tap[i]]
							k, none = k*v.Kernel[i]+at, none || at < 0
						}
						var weight T
						if !none {
							weight = from[((g*cg+ch)*mg+m)*taps+k]
						}
						w = append(w, weight)
					}
				}
			}
		}
	}
	return w
}

// prepare makes the convolution of a part.
func (q *phasePart) prepare(c *op.Call, v *convolution) *conv.Float32 {
	var bias []float32
	if c.Has(2) {
		mg := v.m / v.groups
		for g := range v.groups {
			for range q.phases {
				bias = append(bias, tensor.Of[float32](c.In[2])[g*mg:][:mg]...)
			}
		}
	}
	return q.shape(v).prepared(phaseWeights(q, v, tensor.Of[float32](c.In[1])), bias, c.Activation)
}

func (p *phases) run(pool *workers.Pool, x, y []float32) {
	if p.workspace == nil {
		p.parts[0].conv.Run(pool, x, y)
		return
	}
	for i := range p.parts {
		q := &p.parts[i]
		q.conv.Run(pool, x, p.workspace[q.at:][:p.v.n*p.v.m*q.phases*q.area])
	}
	p.y = y
	pool.For(p.v.n*p.v.m, max(1, workers.Grain(0.5)/tensor.Elements(p.v.In)), p.spread)
	p.y = nil
}

// channels writes the results of channels lo to hi to their positions.
func (p *phases) channels(lo, hi int) {
	v := p.v
	mg, area, last := v.m/v.groups, tensor.Elements(v.In), len(v.In)-1
	for ch := lo; ch < hi; ch++ {
		y := p.y[ch*area:][:area]
		for i := range p.parts {
			q := &p.parts[i]
			// Channels of a group are [phase][channel].
			group, m := ch/mg, ch%mg
			from := p.workspace[q.at+(group*q.phases*mg+m)*q.area:]
			q.place(v, y, from, mg*q.area, last)
		}
	}
}

// place writes the results of a channel, whose phases are step apart, to their positions.
func (q *phasePart) place(v *convolution, y, from []float32, step, last int) {
	var phase, at [window.MaxSpatial]int
	run := &q.runs[last]
	outer := q.phases / run.N
	for p := range outer {
		left := p
		for i := last - 1; i >= 0; i-- {
			phase[i], left = left%q.runs[i].N, left/q.runs[i].N
		}
		at = [window.MaxSpatial]int{}
		for line := 0; line < q.area; line += run.Out {
			pos, inside := 0, true
			for i := range last {
				o := at[i]*v.Stride[i] + q.runs[i].First + phase[i]
				inside = inside && o < v.In[i]
				pos = pos*v.In[i] + o
			}
			if inside {
				spreadPhases(y[pos*v.In[last]:][run.First:v.In[last]], from[p*run.N*step+line:], v.Stride[last], run.N, step)
			}
			tensor.Next(at[:last], q.out[:last])
		}
	}
}

// spreadPhases writes lines of src, step apart, as the first phases of each stride values of dst.
func spreadPhases(dst, src []float32, stride, phases, step int) {
	rows := 0
	if len(dst) >= phases {
		rows = (len(dst)-phases)/stride + 1
	}
	switch {
	case phases == 1:
		for i, v := range src[:rows] {
			dst[i*stride] = v
		}
	case phases == 2 && stride == 2:
		a, b := src[:rows], src[step:][:rows]
		d := dst[:2*rows]
		for i, v := range a {
			if 2*i+1 < len(d) {
				d[2*i], d[2*i+1] = v, b[i]
			}
		}
	default:
		move.Transpose(dst, stride, src, step, rows, phases)
	}
	for i := range phases {
		if at := rows*stride + i; at < len(dst) {
			dst[at] = src[i*step+rows]
		}
	}
}
