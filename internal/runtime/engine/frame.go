package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// frame is a graph planned and prepared for one combination of input shapes.
type frame struct {
	s         *Session
	g         *graph.Graph // the file's graph, with constants added by passes
	p         *plan.Graph
	outer     *frame
	vals      []*tensor.Tensor // by value id, nil if never computed
	fixed     []bool           // by value id: constant for the life of the frame
	steps     []step
	signature []*tensor.Tensor // types and shapes that the plan was made for
	body      map[int]*body
	workspace op.Workspace // scratch memory of the steps

	ownMemory map[int]bool // carried values, which have their own memory
	inPlace   map[int]int  // by output: the input whose memory it may be written to

	// Of a nested graph: its outputs, and the output lists of the last two runs.
	results []bodyResult
	lists   [2][]*tensor.Tensor
	turn    int

	watched [][]int // by step: watched sets that are complete after it, or nil

	arenaBytes, valueBytes int
	spent                  int // bytes of the plan, as counted by the session
	kept                   int // bytes that dynamic steps keep
	planned                bool
	placed                 []Placed
}

// step is one task of the plan with its state at run time.
type step struct {
	*plan.Task
	run  op.Run
	seen []*tensor.Tensor // shapes that a dynamic step was prepared for
	bufs [][]byte         // output memory of a dynamic step, kept between runs
	// unplanned says that the memory plan does not place the step's outputs; unplannedBytes is
	// their size in the last run.
	unplanned      bool
	unplannedBytes int
	kept           int // bytes that a dynamic step keeps
	// prepared is the time that Prepare took when the plan was made, in nanoseconds.
	prepared int64
}

// plan makes a frame: values, steps, memory.
func (s *Session) plan(g *graph.Graph, in []*tensor.Tensor, outer *frame) (*frame, error) {
	f := &frame{s: s, outer: outer, body: map[int]*body{}, ownMemory: map[int]bool{}}
	var around *plan.Graph
	if outer != nil {
		around = outer.p
	}
	p, err := plan.New(s.Model, g, in, around, s.planning(), plan.Host{
		Bind:     func(c *op.Call) { c.Pool, c.Env = s.pool, f },
		Variable: func(v *graph.Value) (*tensor.Tensor, error) { return s.variable(g, v) },
	})
	if err != nil {
		return nil, err
	}
	if err := p.Malformed(); err != nil {
		return nil, err
	}
	f.p, f.g, f.vals, f.fixed = p, p.Graph, p.Values, p.Fixed
	f.setSignature(in)
	f.steps = make([]step, len(p.Tasks))
	for i := range f.steps {
		f.steps[i].Task = &p.Tasks[i]
	}
	f.prepareAll()
	f.findWatched()
	f.findInPlace()
	f.initResults()
	if err := f.placeValues(); err != nil {
		return nil, err
	}
	if outer == nil && g == s.Model.Main() {
		if err := s.doubleBuffer(f); err != nil {
			return nil, err
		}
	}
	for i := range f.steps {
		f.steps[i].unplanned = hasUnplannedOutputs(&f.steps[i])
	}
	f.spent = f.p.Reserved
	s.held += f.spent
	f.planned = true
	s.frames[g.Index] = f
	return f, nil
}

// foldBytes bounds the memory of a node that is computed because a shape depends on it: the same
// as for other folded nodes.
const foldBytes = 256 << 20

func (s *Session) planning() plan.Options {
	return plan.Options{
		Registry: s.opts.Registry, MaxBytes: s.freeBytes(), HeldBytes: s.held, FoldBytes: foldBytes,
		Exact: s.opts.Exact, KeepAll: s.opts.KeepAll, Disabled: s.disabled, Static: s.opts.Static,
	}
}

// setSignature records the types and shapes that the plan was made for.
func (f *frame) setSignature(in []*tensor.Tensor) {
	for i := range f.g.Inputs {
		f.signature = append(f.signature, describe(in[i]))
	}
	for _, c := range f.g.Captures {
		f.signature = append(f.signature, describe(f.outer.vals[c.Outer]))
	}
}

// describe copies type and shape without the elements.
func describe(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return &tensor.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape), Elem: t.Elem, Quant: t.Quant}
}

// variable returns a TFLite variable tensor of the session, created on first use.
func (s *Session) variable(g *graph.Graph, v *graph.Value) (*tensor.Tensor, error) {
	key := fmt.Sprintf("variable/%d/%d", g.Index, v.ID)
	if t, ok := s.state[key].(*tensor.Tensor); ok {
		return t, nil
	}
	if _, err := tensor.CheckShape(v.Type, v.Shape); err != nil {
		return nil, fmt.Errorf("variable %q: %w", v.Name, err)
	}
	n := v.Type.Bytes(tensor.Elements(v.Shape))
	if err := s.checkHeld(n); err != nil {
		return nil, fmt.Errorf("variable %q: %w", v.Name, err)
	}
	s.held, s.fixed = s.held+n, s.fixed+n
	t := tensor.New(v.Type, v.Shape...)
	t.Quant = v.Quant
	if v.Const != nil {
		copy(t.Data, v.Const.Data)
	} else if v.Quant != nil && len(v.Quant.Zero) == 1 {
		fill(t, v.Quant.Zero[0])
	}
	s.state[key] = t
	return t, nil
}

// fill sets a fresh quantised variable to its zero point, which represents 0.
func fill(t *tensor.Tensor, zero int64) {
	switch t.Type {
	case tensor.Int8:
		for i, v := 0, tensor.Of[int8](t); i < len(v); i++ {
			v[i] = int8(zero)
		}
	case tensor.Uint8:
		for i, v := 0, tensor.Of[uint8](t); i < len(v); i++ {
			v[i] = uint8(zero)
		}
	case tensor.Int16:
		for i, v := 0, tensor.Of[int16](t); i < len(v); i++ {
			v[i] = int16(zero)
		}
	}
}

// prepareAll prepares every step whose shapes are known, in order, and computes the constants
// that it reads. A step that cannot be prepared changes the plan of the steps after it.
func (f *frame) prepareAll() {
	for {
		f.prepareSteps()
		// A constant that cannot be computed changes steps before the one that reads it.
		if f.ready() && f.compute(f.g.Outputs, -1) {
			f.p.FreeSpare()
			return
		}
	}
}

// ready reports whether the plan of no step has changed since it was prepared.
func (f *frame) ready() bool {
	for i := range f.steps {
		if st := &f.steps[i]; !st.Ready && st.State != plan.Fused {
			return false
		}
	}
	return true
}

func (f *frame) prepareSteps() {
	for i := 0; i < len(f.steps); i++ {
		st := &f.steps[i]
		if st.Ready {
			continue
		}
		switch st.State {
		case plan.Runs:
			if f.s.opts.Static && f.awaits(st) {
				break
			}
			if !f.constants(i) {
				i-- // the plan has changed: retry
				continue
			}
			if st.Dynamic {
				st.run, st.seen, st.bufs = nil, nil, nil
				break
			}
			begin := now()
			err := f.prepareStep(st)
			if st.prepared = now() - begin; errors.Is(err, op.ErrPlanned) {
				st.run = nil
			} else if err != nil {
				if st.Lowered {
					i = f.p.Revert(i) - 1
				} else {
					f.p.MarkFailed(i, plan.StateOf(err), err)
					i--
				}
				continue
			}
		case plan.Folded:
			if f.s.opts.KeepAll && !f.compute(st.Node.Outputs, -1) {
				i--
				continue
			}
		case plan.Unsupported, plan.Skipped, plan.Failed:
			f.fillWithZeros(st)
		}
		st.Ready = true
	}
}

func (f *frame) prepareStep(st *step) error {
	before := f.workspace.Bytes()
	if err := f.prepareKernel(st); err != nil {
		return err
	}
	f.releasePages(st)
	f.discardCopied(st)
	n := f.workspace.Bytes() - before
	if f.s.opts.Static {
		st.run = nil
	} else if !st.Call.Kept() {
		for k, t := range st.Call.In {
			if t != nil && st.Call.IsCopied(k) {
				n += len(t.Data)
			}
		}
	}
	return f.p.Reserve(n)
}

// staticBytes bounds what a node of a static session keeps, and the constants that are computed
// for it, in bytes.
const staticBytes = 1 << 20

// Keep implements [op.Keeper].
func (f *frame) Keep(n int) error {
	switch {
	case f.s.opts.Static && n > staticBytes:
		return op.ErrPlanned
	case f.planned:
		f.kept += n
		return f.s.checkHeld(n) // a dynamic step replaces what it kept
	}
	return f.p.Reserve(n)
}

// awaits reports whether a step reads large constants that are not computed yet, or constants that
// the model lacks.
func (f *frame) awaits(st *step) bool {
	return slices.ContainsFunc(f.neededInputs(st.Task), func(id int) bool {
		t := f.vals[max(id, 0)]
		return id >= 0 && f.fixed[id] && !t.Known() && (t.Bytes() > staticBytes || f.s.Model.Absent != nil || f.s.Model.Convert != nil)
	})
}

// discardCopied releases folded constants that the step has copied, so that the next step can
// reuse their memory. Constants of bodies stay, because an observer of their runs may read them.
func (f *frame) discardCopied(st *step) {
	if f.outer != nil || f.s.opts.KeepAll || st.Dynamic {
		return
	}
	for k, id := range st.Call.Node.Inputs {
		if id >= 0 && st.Call.IsCopied(k) {
			f.p.Discard(id)
		}
	}
}

// releaseBytes is the minimum size of a constant whose pages are released.
const releaseBytes = 1 << 16

// releasePages releases the pages of large constants: most have been packed, and those that are
// read in runs are paged in from the file again, unless the step keeps them.
func (f *frame) releasePages(st *step) {
	for k, t := range st.Call.In {
		if t != nil && len(t.Data) >= releaseBytes && (!st.Call.IsPacked(k) || st.Call.IsCopied(k)) {
			mapped.Release(t.Data)
		}
	}
}

// constants computes the folded values that step i and its nested graphs read. It reports false
// when the plan has changed meanwhile.
func (f *frame) constants(i int) bool {
	n := f.steps[i].Node
	return f.compute(f.neededInputs(f.steps[i].Task), i) && f.compute(f.p.Captured(n), i)
}

// neededInputs lists the inputs of a task whose elements it needs. It omits uniform constants
// that the task accepts without elements.
func (f *frame) neededInputs(t *plan.Task) []int {
	ids, c := t.Node.Inputs, &t.Call
	c.Uniform = nil
	if t.Def.AcceptsUniform == nil || t.Dynamic || f.s.opts.KeepAll {
		return ids
	}
	for k, id := range t.Node.Inputs {
		if id < 0 {
			continue
		}
		if one := f.p.Uniform(id); one != nil && t.Def.AcceptsUniform(c, k, one) {
			if c.Uniform == nil {
				ids, c.Uniform = slices.Clone(ids), make([]*tensor.Tensor, len(c.In))
			}
			ids[k], c.Uniform[k] = -1, one
		}
	}
	return ids
}

// compute computes folded values for the step that reads them. It reports false when the plan has
// changed meanwhile.
func (f *frame) compute(ids []int, reader int) bool {
	for _, id := range ids {
		if id < 0 || !f.fixed[id] || f.vals[id].Known() {
			continue
		}
		failed, err := f.p.Materialise(id)
		switch {
		case err == nil && f.fixed[id]:
			continue
		case err == nil: // it is computed in every run from now on
		case failed >= 0:
			f.p.MarkFailed(failed, plan.StateOf(err), err)
		case reader >= 0:
			f.p.MarkFailed(reader, plan.Failed, err)
		default:
			continue
		}
		return false
	}
	return true
}

// fillWithZeros gives the outputs of a step that does not run zeros if the file declares their
// shapes, so that the steps after it can still be timed.
func (f *frame) fillWithZeros(st *step) {
	for k, id := range st.Node.Outputs {
		if id >= 0 && f.vals[id] != nil && k < len(st.Call.Out) && f.vals[id] == st.Call.Out[k] && !f.g.Values[id].Variable {
			f.vals[id].Alloc()
		}
	}
}

// prepareKernel calls the operator's Prepare. Steps run one after another and share a workspace.
func (f *frame) prepareKernel(st *step) error {
	f.p.Bind(&st.Call)
	f.workspace.Begin(&st.Call)
	defer f.workspace.End()
	return plan.Guard(func() (err error) { st.run, err = st.Def.Prepare(&st.Call); return err })
}

// prepareDynamic checks the outputs of a dynamic step and prepares it.
func (f *frame) prepareDynamic(st *step) error {
	if err := plan.Check(&st.Call); err != nil {
		return err
	}
	return f.prepareKernel(st)
}
