package engine

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// frame is a graph planned and prepared for one set of input shapes.
type frame struct {
	s     *Session
	g     *graph.Graph // the file's graph, with constants that passes have added
	p     *plan.Graph
	outer *frame
	vals  []*tensor.Tensor // by value id, nil where never made
	fixed []bool           // by value id: keeps its value for the life of the frame
	steps []step
	sig   []*tensor.Tensor // types and shapes that the plan was made for
	body  map[int]*body
	rooms op.Workspace // working memory of the steps

	apart map[int]bool // values that have memory of their own because they are carried

	// Of a nested graph: its outputs, and those of the last two runs.
	results []result
	lists   [2][]*tensor.Tensor
	turn    int

	watched [][]int // by step: sets of watched values that are there after it; nil where none are

	arenaBytes, valueBytes int
	spent                  int // bytes that the plan takes, as the session counts them
	placed                 []Placed
}

// step is one task of the plan with what it takes to run it.
type step struct {
	*plan.Task
	run  op.Run
	seen []*tensor.Tensor // shapes that a dynamic step was prepared for
	bufs [][]byte         // a dynamic step's output memory, kept between runs
	// weighs says that what the step makes has no place in the plan, weight what that
	// was in its last run, in bytes.
	weighs bool
	weight int
	// prepared is the time that preparing took when the plan was made, nanoseconds.
	prepared int64
}

// plan makes a frame: values, steps, memory.
func (s *Session) plan(g *graph.Graph, in []*tensor.Tensor, outer *frame) (*frame, error) {
	f := &frame{s: s, outer: outer, body: map[int]*body{}, apart: map[int]bool{}}
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
	f.sign(in)
	f.steps = make([]step, len(p.Tasks))
	for i := range f.steps {
		f.steps[i].Task = &p.Tasks[i]
	}
	f.prepareAll()
	f.watch()
	f.resultsOf()
	if err := f.place(); err != nil {
		return nil, err
	}
	if outer == nil && g == s.Model.Main() {
		if err := s.double(f); err != nil {
			return nil, err
		}
	}
	for i := range f.steps {
		f.steps[i].weighs = weighs(&f.steps[i])
	}
	f.spent = f.p.Spent
	s.held += f.spent
	s.frames[g.Index] = f
	return f, nil
}

// foldBytes is what a node may take for it to be computed where a shape depends on
// it: as much as one that is folded anyway.
const foldBytes = 256 << 20

func (s *Session) planning() plan.Options {
	return plan.Options{
		Registry: s.opts.Registry, MaxBytes: s.free(), FoldBytes: foldBytes,
		Exact: s.opts.Exact, KeepAll: s.opts.KeepAll, Disabled: s.disabled,
	}
}

// sign notes what the plan was made for.
func (f *frame) sign(in []*tensor.Tensor) {
	for i := range f.g.Inputs {
		f.sig = append(f.sig, describe(in[i]))
	}
	for _, c := range f.g.Captures {
		f.sig = append(f.sig, describe(f.outer.vals[c.Outer]))
	}
}

// describe copies type and shape without the elements.
func describe(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return &tensor.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape), Elem: t.Elem, Quant: t.Quant}
}

// variable returns a TFLite variable tensor of the session, made on first use.
func (s *Session) variable(g *graph.Graph, v *graph.Value) (*tensor.Tensor, error) {
	key := fmt.Sprintf("variable/%d/%d", g.Index, v.ID)
	if t, ok := s.state[key].(*tensor.Tensor); ok {
		return t, nil
	}
	if _, err := tensor.CheckShape(v.Type, v.Shape); err != nil {
		return nil, fmt.Errorf("variable %q: %w", v.Name, err)
	}
	if n := v.Type.Bytes(tensor.Elements(v.Shape)); s.opts.MaxBytes > 0 && n > s.opts.MaxBytes {
		return nil, fmt.Errorf("variable %q: %w", v.Name, &op.LimitError{Want: n, Limit: s.opts.MaxBytes})
	}
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

// fill writes a zero point into a fresh quantised variable: it stands for 0.
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

// prepareAll gets every step ready whose shapes are known, in order, and computes
// the constants that it reads. A step that cannot be prepared changes the plan of
// those after it.
func (f *frame) prepareAll() {
	for {
		f.prepareSteps()
		// A constant that cannot be computed changes steps before the one that reads it.
		if f.ready() && f.compute(f.g.Outputs, -1) {
			f.p.Tidy()
			return
		}
	}
}

// ready reports whether nothing has changed the plan of a step since it was made ready.
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
			if !f.constants(i) {
				i-- // the plan has changed: look again
				continue
			}
			if st.Dynamic {
				st.run, st.seen, st.bufs = nil, nil, nil
				break
			}
			begin := now()
			err := f.prepareStep(st)
			if st.prepared = now() - begin; err != nil {
				if st.Lowered {
					i = f.p.Revert(i) - 1
				} else {
					f.p.GiveUp(i, plan.StateOf(err), err)
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
			f.standIn(st)
		}
		st.Ready = true
	}
}

func (f *frame) prepareStep(st *step) error {
	before := f.rooms.Bytes()
	if err := f.choose(st); err != nil {
		return err
	}
	f.release(st)
	f.drop(st)
	return f.p.Spend(f.rooms.Bytes() - before)
}

// drop forgets folded constants that the step has copied: their memory serves those of the next step. Those of bodies stay, since whoever
// is told of their runs may read them.
func (f *frame) drop(st *step) {
	if f.outer != nil || f.s.opts.KeepAll || st.Dynamic {
		return
	}
	for k, id := range st.Call.Node.Inputs {
		if id >= 0 && st.Call.IsCopied(k) {
			f.p.Drop(id)
		}
	}
}

// releaseBytes is the least size of a constant whose pages are given back.
const releaseBytes = 1 << 16

// release gives the pages of large constants back: most have been packed, and those that are read in runs come
// back from the file, unless the step says that it keeps them.
func (f *frame) release(st *step) {
	for k, t := range st.Call.In {
		if t != nil && len(t.Data) >= releaseBytes && (!st.Call.IsPacked(k) || st.Call.IsCopied(k)) {
			mapped.Release(t.Data)
		}
	}
}

// constants computes the folded values that step i and its nested graphs read. It
// reports false when the plan has changed on the way.
func (f *frame) constants(i int) bool {
	n := f.steps[i].Node
	return f.compute(f.written(f.steps[i].Task), i) && f.compute(f.p.Captured(n), i)
}

// written lists the inputs of a task whose elements it needs: not those that have one value everywhere, if it does without.
func (f *frame) written(t *plan.Task) []int {
	ids, c := t.Node.Inputs, &t.Call
	c.Uniform = nil
	if t.Def.AcceptsUniform == nil || t.Dynamic || f.s.opts.KeepAll {
		return ids
	}
	for k, id := range t.Node.Inputs {
		if id < 0 {
			continue
		}
		if one := f.p.Same(id); one != nil && t.Def.AcceptsUniform(c, k, one) {
			if c.Uniform == nil {
				ids, c.Uniform = slices.Clone(ids), make([]*tensor.Tensor, len(c.In))
			}
			ids[k], c.Uniform[k] = -1, one
		}
	}
	return ids
}

// compute makes folded values, for the step that reads them. It reports false when
// the plan has changed on the way.
func (f *frame) compute(ids []int, reader int) bool {
	for _, id := range ids {
		if id < 0 || !f.fixed[id] || f.vals[id].Known() {
			continue
		}
		failed, err := f.p.Force(id)
		switch {
		case err == nil && f.fixed[id]:
			continue
		case err == nil: // it is computed in every run from now on
		case failed >= 0:
			f.p.GiveUp(failed, plan.StateOf(err), err)
		case reader >= 0:
			f.p.GiveUp(reader, plan.Failed, err)
		default:
			continue
		}
		return false
	}
	return true
}

// standIn fills the outputs of a step that does not run with zeros where the file
// declares their shapes, so that what follows can still be timed.
func (f *frame) standIn(st *step) {
	for k, id := range st.Node.Outputs {
		if id >= 0 && f.vals[id] != nil && k < len(st.Call.Out) && f.vals[id] == st.Call.Out[k] && !f.g.Values[id].Variable {
			f.vals[id].Alloc()
		}
	}
}

// choose lets the operator prepare itself. Steps run one after another, and share working memory.
func (f *frame) choose(st *step) error {
	f.p.Bind(&st.Call)
	f.rooms.Begin(&st.Call)
	defer f.rooms.End()
	return plan.Guard(func() (err error) { st.run, err = st.Def.Prepare(&st.Call); return err })
}

// prepare checks the outputs of a dynamic step and prepares it.
func (f *frame) prepare(st *step) error {
	if err := plan.Check(&st.Call); err != nil {
		return err
	}
	return f.choose(st)
}
