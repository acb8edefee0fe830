package engine

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// findInPlace finds the outputs of the main graph that may be written to the memory of an input:
// the operator can update it, and no later step reads it.
func (f *frame) findInPlace() {
	if len(f.s.opts.InPlace) == 0 || f.s.opts.KeepAll || f.p.File != f.s.Model.Main() {
		return
	}
	wanted := map[int]int{}
	for _, c := range f.s.opts.InPlace {
		if out := f.g.Outputs[c.Output]; out >= 0 && !f.s.carries(f, out) {
			wanted[out] = f.g.Inputs[c.Input]
		}
	}
	f.inPlace = map[int]int{}
	last, taken := f.lastUses(), map[int]bool{}
	for i := range f.steps {
		st := &f.steps[i]
		if st.State != plan.Runs {
			continue
		}
		ins, outs := st.Call.Node.Inputs, st.Call.Node.Outputs
		for _, p := range st.Def.Updates {
			if p[0] >= len(ins) || p[1] >= len(outs) {
				continue
			}
			in, out := ins[p[0]], outs[p[1]]
			if want, ok := wanted[out]; !ok || want != in || taken[in] || f.fixed[in] || last[in] != i || count(ins, in) != 1 {
				continue
			}
			f.inPlace[out], taken[in] = in, true
		}
	}
}

func count(list []int, v int) (n int) {
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}

// inputOf returns the input whose memory a value is written to; nil if it has memory of its own.
func (f *frame) inputOf(out int) *tensor.Tensor {
	in, ok := f.inPlace[out]
	if !ok || out < 0 {
		return nil
	}
	x, y := f.vals[in], f.vals[out]
	if x == nil || !sameShape(x, y) || x.Type == tensor.String {
		return nil
	}
	return x
}
