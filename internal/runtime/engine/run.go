package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// State implements op.Env.
func (f *frame) State(key string) any { return f.s.state[key] }

// SetState implements op.Env.
func (f *frame) SetState(key string, v any) { f.s.state[key] = v }

// Body implements op.Env.
func (f *frame) Body(g int) (op.Body, error) {
	if g < 0 || g >= len(f.s.Model.Graphs) {
		return nil, fmt.Errorf("graph %d of %d", g, len(f.s.Model.Graphs))
	}
	b := f.body[g]
	if b == nil {
		b = &body{f: f, g: f.s.Model.Graphs[g]}
		f.body[g] = b
	}
	return b, nil
}

// body runs a nested graph for a frame. It keeps the plans for the last few combinations of
// shapes, because loops often alternate between a few.
type body struct {
	f     *frame
	g     *graph.Graph
	inner []*frame // most recently used first
}

const keptPlans = 4

func (b *body) frame(in []*tensor.Tensor) (*frame, error) {
	for i, f := range b.inner {
		if f.fits(in) {
			copy(b.inner[1:i+1], b.inner[:i])
			b.inner[0] = f
			return f, nil
		}
	}
	f, err := b.f.s.plan(b.g, in, b.f)
	if err != nil {
		return nil, err
	}
	b.inner = slices.Insert(b.inner, 0, f)
	if len(b.inner) > keptPlans {
		for _, old := range b.inner[keptPlans:] {
			b.f.s.held -= old.heldBytes()
		}
		clear(b.inner[keptPlans:])
		b.inner = b.inner[:keptPlans]
	}
	return f, nil
}

// Run implements op.Body.
func (b *body) Run(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	s := b.f.s
	if s.depth++; s.depth > maxDepth {
		s.depth--
		return nil, fmt.Errorf("control flow nests deeper than %d", maxDepth)
	}
	defer func() { s.depth-- }()
	if b.f.stopped() {
		return nil, errStopped // a body that computes nothing has no step to stop at
	}
	if len(in) != len(b.g.Inputs) {
		return nil, fmt.Errorf("graph %q takes %d inputs, %d given", b.g.Name, len(b.g.Inputs), len(in))
	}
	f, err := b.frame(in)
	if err != nil {
		return nil, err
	}
	f.bind(in)
	f.beginRun(in)
	if s.timing != nil && b.g.Index > 0 {
		err = f.runBodyTimed(s.timing)
	} else {
		err = f.run()
	}
	if err != nil {
		return nil, err
	}
	if s.opts.Body != nil {
		s.opts.Body(b.g.Index, func(id int) *tensor.Tensor { return f.vals[id] })
	}
	return f.finishRun(in)
}

// missingOutput returns the error for an output that cannot be computed, with the first node that
// failed.
func (f *frame) missingOutput(output string) error {
	for i := range f.steps {
		if st := &f.steps[i]; st.Err != nil && (st.State == plan.Failed || st.State == plan.Unsupported) {
			return fmt.Errorf("output %q of graph %q could not be computed: node %d (%s): %w", output, f.p.File.Name, i, st.Node.Key(), st.Err)
		}
	}
	return fmt.Errorf("output %q of graph %q could not be computed", output, f.p.File.Name)
}

func sameShape(a, b *tensor.Tensor) bool {
	return a == b || a != nil && b != nil && a.Type == b.Type && slices.Equal(a.Shape, b.Shape)
}

// fits reports whether the frame was planned for these shapes of inputs and captured values.
func (f *frame) fits(in []*tensor.Tensor) bool {
	if !slices.EqualFunc(in, f.signature[:len(in)], sameShape) {
		return false
	}
	for i, c := range f.g.Captures {
		if !sameShape(f.outer.vals[c.Outer], f.signature[len(in)+i]) {
			return false
		}
	}
	return true
}

// bind points the inputs and captured values at the caller's tensors.
func (f *frame) bind(in []*tensor.Tensor) {
	for i, id := range f.g.Inputs {
		t := f.vals[id]
		if in[i] == nil || t == nil || f.g.Values[id].Variable {
			continue
		}
		q := t.Quant
		*t = *in[i]
		if q != nil {
			t.Quant = q
		}
	}
	for out := range f.inPlace {
		if x := f.inputOf(out); x != nil {
			f.vals[out].Data = x.Data
		}
	}
	for _, c := range f.g.Captures {
		if o := f.outer.vals[c.Outer]; o != nil && !f.fixed[c.Inner] {
			*f.vals[c.Inner] = *o
		}
	}
}

// errStopped reports that the run's context ended.
var errStopped = errors.New("stopped")

func (f *frame) stopped() bool {
	select {
	case <-f.s.done:
		return true
	default:
		return false
	}
}

func (f *frame) run() error {
	if f.watched == nil {
		return f.runAll()
	}
	for i := range f.steps {
		st := &f.steps[i]
		if st.State != plan.Runs {
			continue
		}
		if f.stopped() {
			return errStopped
		}
		if err := f.exec(st); err != nil {
			return err
		}
		if err := f.reportWatched(i); err != nil {
			return err
		}
	}
	return f.reportWatched(len(f.steps))
}

// runAll is run without watched outputs. One recover for all steps costs small models less than
// one for each step.
func (f *frame) runAll() (err error) {
	var st *step
	defer func() { err = f.nodeError(st, recover(), err) }()
	for i := range f.steps {
		if st = &f.steps[i]; st.State != plan.Runs {
			continue
		}
		if f.stopped() {
			return errStopped
		}
		if err := f.step(st); err != nil {
			return err
		}
	}
	return nil
}

// runTimed is run with one clock read at each boundary between steps.
func (f *frame) runTimed(tm *Timing) error {
	tm.begin()
	bounds := tm.Bounds
	bounds[0] = now()
	for i := range f.steps {
		if st := &f.steps[i]; st.State == plan.Runs {
			if f.stopped() {
				return errStopped
			}
			waited := tm.waited
			if err := f.exec(st); err != nil {
				return err
			}
			bounds[i+1] = now()
			tm.look(bounds[i], bounds[i+1])
			tm.Waits[i] = tm.waited - waited
		} else {
			bounds[i+1] = bounds[i]
		}
	}
	return nil
}

func (f *frame) runBodyTimed(tm *Timing) error {
	times := tm.Bodies[f.g.Index]
	t := now()
	for i := range f.steps {
		st := &f.steps[i]
		if st.State != plan.Runs {
			continue
		}
		if f.stopped() {
			return errStopped
		}
		// Reserve the entry before the step runs, so that events of nested steps come after it.
		at := len(tm.Events)
		kept := at < cap(tm.Events)
		if kept {
			tm.Events = tm.Events[:at+1]
		} else if at > 0 {
			tm.Missed++
		}
		waited := tm.waited
		if err := f.exec(st); err != nil {
			return err
		}
		u := now()
		tm.look(t, u)
		if kept {
			tm.Events[at] = BodyEvent{Graph: int32(f.g.Index), Node: int32(i), Start: t, End: u}
		}
		times[i].Nanoseconds += u - t - (tm.waited - waited)
		times[i].Calls++
		t = u
	}
	return nil
}

// exec runs one step. Errors name the node.
func (f *frame) exec(st *step) (err error) {
	defer func() { err = f.nodeError(st, recover(), err) }()
	return f.step(st)
}

// nodeError converts a step's panic into an error, and adds the node to its error.
func (f *frame) nodeError(st *step, panicked any, err error) error {
	if panicked != nil {
		err = plan.Panicked(panicked)
	}
	switch {
	case err == nil || errors.Is(err, errStopped) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, workers.ErrStopped):
		return errStopped
	}
	return &NodeError{Graph: f.g.Index, Node: f.p.File.Nodes[st.Node.Index], Err: err}
}

// step runs one step without recover.
func (f *frame) step(st *step) error {
	if !st.unplanned {
		return st.run(&st.Call)
	}
	f.releaseUnplanned(st)
	if st.Dynamic {
		if err := f.inferDynamic(st); err != nil {
			return err
		}
	}
	if err := st.run(&st.Call); err != nil {
		return err
	}
	return f.countUnplanned(st)
}

// NodeError reports the node of a model that failed while it ran.
type NodeError struct {
	Graph int
	Node  *graph.Node
	Err   error
}

// Error returns graph, index, operator and name of the node, then the cause.
func (e *NodeError) Error() string {
	where := ""
	if e.Graph > 0 {
		where = fmt.Sprintf("graph %d ", e.Graph)
	}
	name := ""
	if e.Node.Name != "" {
		name = fmt.Sprintf(" %q", e.Node.Name)
	}
	return fmt.Sprintf("%snode %d (%s%s): %v", where, e.Node.Index, e.Node.Key(), name, e.Err)
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// inferDynamic infers a dynamic step and, if shapes changed, prepares it again.
func (f *frame) inferDynamic(st *step) error {
	c := &st.Call
	for i, t := range c.Out {
		if t == nil || f.g.Values[c.Node.Outputs[i]].Variable {
			continue
		}
		v := f.g.Values[c.Node.Outputs[i]]
		*t = tensor.Tensor{Type: v.Type, Quant: v.Quant, Elem: v.Elem}
	}
	for i, t := range c.In {
		if t != nil && !t.Known() {
			return fmt.Errorf("%w: %q", plan.ErrMissing, f.g.Values[c.Node.Inputs[i]].Name)
		}
	}
	if err := f.checkTypes(st); err != nil {
		return err
	}
	err := st.Def.InferOutputs(c)
	free := errors.Is(err, op.ErrDynamic)
	if err != nil && !free {
		return err
	}
	parts := [2][]*tensor.Tensor{c.In, c.Out}
	if free {
		parts[1] = nil
	}
	if st.run == nil || !st.preparedFor(parts) {
		before := f.workspace.Bytes()
		f.kept -= st.kept
		others := f.kept
		if free {
			err = f.prepareKernel(st)
		} else {
			err = f.prepareDynamic(st)
		}
		st.kept = f.kept - others
		if err != nil {
			return err
		}
		if st.seen == nil {
			f.releasePages(st)
		}
		grown := f.workspace.Bytes() - before
		f.spent += grown
		if err := f.Hold(grown, true); err != nil {
			return err
		}
		st.seen = st.seen[:0]
		for _, p := range parts {
			for _, t := range p {
				st.seen = append(st.seen, describe(t))
			}
		}
	}
	if !free {
		return f.allocOutputs(st)
	}
	return nil
}

// preparedFor reports whether a dynamic step was prepared for these shapes of inputs and outputs.
func (st *step) preparedFor(parts [2][]*tensor.Tensor) bool {
	in, out := parts[0], parts[1]
	return len(st.seen) == len(in)+len(out) && slices.EqualFunc(in, st.seen[:len(in)], sameShape) && slices.EqualFunc(out, st.seen[len(in):], sameShape)
}

// checkTypes validates a dynamic step's inputs if their types differ from the last run.
func (f *frame) checkTypes(st *step) error {
	c := &st.Call
	same := func(a, b *tensor.Tensor) bool { return a == b || a != nil && b != nil && a.Type == b.Type }
	if st.run != nil && len(st.seen) >= len(c.In) && slices.EqualFunc(c.In, st.seen[:len(c.In)], same) {
		return nil
	}
	return f.s.opts.Registry.Check(c.Node, c.In, c.Out)
}

// allocOutputs allocates a dynamic step's outputs. It reuses the memory of the last run if that
// is large enough.
func (f *frame) allocOutputs(st *step) error {
	if st.bufs == nil {
		st.bufs = make([][]byte, len(st.Call.Out))
	}
	for i, t := range st.Call.Out {
		if t == nil || f.g.Values[st.Node.Outputs[i]].Variable {
			continue
		}
		if x := f.inputOf(st.Node.Outputs[i]); x != nil {
			t.Data = x.Data
			continue
		}
		if err := st.Call.AffordTensor(t.Type, t.Shape); err != nil {
			return err
		}
		b := t.Type.Bytes(tensor.Elements(t.Shape))
		if t.Type == tensor.String || t.Type.IsContainer() || t.Type == tensor.Resource || st.bufs[i] == nil || cap(st.bufs[i]) < b || f.s.opts.KeepAll {
			t.Alloc()
			st.bufs[i] = t.Data
			continue
		}
		t.Data = st.bufs[i][:b]
	}
	return nil
}
