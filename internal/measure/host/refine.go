package host

import (
	"errors"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// refine reports how the engine computes each layer as far as it differs from earlier reports:
// state, kernel, shapes that became known.
func (r *runner) refine() error {
	at := map[[2]int]int{} // slot by graph and node
	for i := range r.slots {
		at[[2]int{r.slots[i].Graph, r.slots[i].Node.Index}] = i
	}
	for i := range r.slots {
		s, l := &r.slots[i], &r.p.Layers[i]
		e := profile.Refined{Layer: int64(i)}
		state, cause := profileState(s)
		changed := l.State != state
		l.State, l.Cause, l.FusedInto = state, cause, nil
		if state == profile.Fused {
			l.FusedInto = new(int64(at[[2]int{s.Graph, s.Into}]))
		}
		if changed || cause != nil {
			e.State, e.Cause, e.FusedInto = l.State, l.Cause, l.FusedInto
		}
		if k := s.Kernel; k != l.Kernel {
			l.Kernel, e.Kernel = k, k
		}
		if s.Computes != tensor.Invalid && l.Computes == "" {
			l.Computes = s.Computes.String()
			e.Computes = l.Computes
		}
		in, out := describe.Ports(r.m.Graphs[s.Graph], s)
		keepKnown(in, l.Inputs)
		keepKnown(out, l.Outputs)
		if !slices.EqualFunc(in, l.Inputs, sameShape) {
			l.Inputs, e.Inputs = in, in
		}
		if !slices.EqualFunc(out, l.Outputs, sameShape) {
			l.Outputs, e.Outputs = out, out
		}
		if e.State == "" && e.Kernel == "" && e.Computes == "" && e.Inputs == nil && e.Outputs == nil {
			continue
		}
		if err := r.send(profile.Event{Refined: &e}); err != nil {
			return err
		}
		if e.Inputs != nil || e.Outputs != nil {
			if err := r.recount(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// outputs returns the model's outputs of the last run: shapes that depend on data are known only
// then. Nil if nothing new is known.
func (r *runner) outputs() []profile.Tensor {
	g := r.m.Main()
	made := map[int]profile.Tensor{}
	for i := range r.slots {
		s := &r.slots[i]
		if s.Graph != 0 {
			continue
		}
		for k, t := range s.Out {
			if id := s.Node.Outputs[k]; id >= 0 && t != nil {
				made[id] = describe.Port(g, id, t)
			}
		}
	}
	out := slices.Clone(r.p.Model.Outputs)
	at, changed := 0, false
	for _, id := range g.Outputs {
		if id < 0 || at >= len(out) {
			continue
		}
		if t, ok := made[id]; ok && !sameShape(t, out[at]) {
			out[at], changed = t, true
		}
		at++
	}
	if !changed {
		return nil
	}
	r.p.Model.Outputs = out
	return out
}

// inPlace records the outputs that were written to the memory of inputs.
func (r *runner) inPlace() {
	g := r.m.Main()
	for _, c := range r.s.InPlace() {
		if r.p.Settings.InPlace == nil {
			r.p.Settings.InPlace = map[string]string{}
		}
		r.p.Settings.InPlace[g.Values[g.Outputs[c.Output]].Name] = g.Values[g.Inputs[c.Input]].Name
	}
}

// keepKnown keeps the shapes that planning knows and the engine does not know before a run.
func keepKnown(now, before []profile.Tensor) {
	for k := range now {
		if k < len(before) && open(now[k]) && !open(before[k]) {
			now[k] = before[k]
		}
	}
}

// open reports whether the shape of a value is not fully known.
func open(t profile.Tensor) bool {
	return !t.Absent && (t.Shape == nil || slices.ContainsFunc(t.Shape, func(d int64) bool { return d < 0 }))
}

func sameShape(a, b profile.Tensor) bool {
	return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape)
}

// recount counts the operations of a layer again for the shapes of the run.
func (r *runner) recount(i int) error {
	l := &r.p.Layers[i]
	known := *l
	w := describe.Work(r.m, &r.slots[i])
	for _, x := range []struct {
		key       string
		have, now *int64
	}{
		{"ops", known.Ops, w.Ops},
		{"macs", known.MACs, w.MACs},
		{"macs_executed", known.MACsExecuted, w.MACsExecuted},
		{"mltk_ops", known.MLTKOps, w.MLTKOps},
		{"mltk_macs", known.MLTKMACs, w.MLTKMACs},
		{"bytes_read", known.BytesRead, w.BytesRead},
		{"bytes_written", known.BytesWritten, w.BytesWritten},
	} {
		if x.now == nil {
			continue
		}
		now := *x.now
		if l.Calls != nil { // counts cover all calls
			now = int64(float64(now) * *l.Calls)
		}
		if x.have != nil && *x.have == now {
			continue
		}
		m := profile.Value(profile.Counted, float64(now), "")
		if err := l.Set(x.key, m); err != nil {
			return err
		}
		if err := r.send(profile.Event{Counted: &profile.Figure{Layer: new(int64(i)), Quantity: x.key, Metric: m}}); err != nil {
			return err
		}
	}
	return nil
}

// profileState translates the engine's state of a step.
func profileState(s *plan.Slot) (profile.State, *profile.Cause) {
	switch s.State {
	case plan.Folded:
		return profile.Folded, nil
	case plan.Fused:
		return profile.Fused, nil
	case plan.Unsupported:
		c := &profile.Cause{Code: profile.ByUse, Text: detail(s.Err)}
		if errors.Is(s.Err, op.ErrUnknown) {
			c.Code = profile.ByOperator
		}
		return profile.Unsupported, c
	case plan.Skipped:
		return profile.Skipped, &profile.Cause{Code: profile.ByInput, Text: s.Err.Error()}
	case plan.Failed:
		c := &profile.Cause{Code: profile.ByError, Text: s.Err.Error()}
		if _, ok := errors.AsType[*op.LimitError](s.Err); ok {
			c.Code = profile.ByMemory
		}
		if _, ok := errors.AsType[*op.WorkError](s.Err); ok {
			c.Code = profile.ByLimit
		}
		if _, ok := errors.AsType[*op.LoopError](s.Err); ok {
			c.Code = profile.ByLoop
		}
		return profile.Failed, c
	}
	return profile.Ran, nil
}

// detail returns the reason why an operator is not supported: the error without the sentinel's
// text.
func detail(err error) string {
	if d, ok := errors.AsType[*op.UnsupportedError](err); ok {
		return d.Detail
	}
	return err.Error()
}
