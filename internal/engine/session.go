package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// Options sets how a session plans and runs.
type Options struct {
	Registry *op.Registry // required
	Threads  int          // workers, the caller included; 0 means 1
	// Pin runs on each worker's thread before it works (worker 0 is the caller's
	// business), to bind it to a processor. May be nil.
	Pin func(worker int)
	// KeepAll gives every value its own memory, so that all of them can be read
	// after a run, and switches fusion off.
	KeepAll bool
}

// Session is a model made ready to run. It is for one goroutine at a time.
type Session struct {
	Model *graph.Model
	opts  Options
	pool  *op.Pool
	main  *frame
	state map[string]any
	bodyf map[bodyKey]*frame
	depth int
	in    []*tensor.Tensor
}

type bodyKey struct {
	outer *frame
	graph int
}

// maxDepth bounds nested control flow; real models stay below five.
const maxDepth = 64

// New makes a session. The inputs give the shapes to plan for and must follow
// the main graph's inputs; they can be exchanged later with [Session.SetInput].
func New(m *graph.Model, inputs []*tensor.Tensor, o Options) (*Session, error) {
	if o.Registry == nil {
		return nil, errors.New("engine: no operator registry")
	}
	s := &Session{Model: m, opts: o, pool: op.NewPool(o.Threads, o.Pin), state: map[string]any{}, bodyf: map[bodyKey]*frame{}}
	if n := len(m.Main().Inputs); len(inputs) != n {
		s.Close()
		return nil, fmt.Errorf("model has %d inputs, %d given", n, len(inputs))
	}
	s.in = slices.Clone(inputs)
	f, err := s.plan(m.Main(), inputs, nil)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.main = f
	return s, nil
}

// Close ends the workers.
func (s *Session) Close() { s.pool.Close() }

// SetInput exchanges an input. A new shape or type makes the next Run plan again.
func (s *Session) SetInput(i int, t *tensor.Tensor) { s.in[i] = t }

// Run computes one inference.
func (s *Session) Run(ctx context.Context) error {
	if !s.main.fits(s.in) {
		f, err := s.plan(s.Model.Main(), s.in, nil)
		if err != nil {
			return err
		}
		s.main = f
	}
	s.main.bind(s.in)
	return s.main.run(ctx)
}

// Output returns main-graph output i after a run; the next run overwrites it.
func (s *Session) Output(i int) *tensor.Tensor {
	return s.main.vals[s.Model.Main().Outputs[i]]
}

// Value returns any value of the main graph after a run. Without
// Options.KeepAll its memory may have been used again.
func (s *Session) Value(id int) *tensor.Tensor { return s.main.vals[id] }

// State, SetState and Body make the session an op.Env for the main graph.

// frame is a graph planned for one set of input shapes.
type frame struct {
	s     *Session
	g     *graph.Graph
	outer *frame
	vals  []*tensor.Tensor // by value id, nil where never made
	steps []step
	sig   []*tensor.Tensor // types and shapes that the plan was made for
}

type step struct {
	node    *graph.Node
	def     *op.Def
	call    op.Call
	run     op.Run
	folded  bool  // computed while planning
	dynamic bool  // outputs are inferred and made at run time
	err     error // why the step cannot run: unsupported or input missing
	seen    []*tensor.Tensor
}

// State implements op.Env.
func (f *frame) State(key string) any { return f.s.state[key] }

// SetState implements op.Env.
func (f *frame) SetState(key string, v any) { f.s.state[key] = v }

// Body implements op.Env.
func (f *frame) Body(g int) (op.Body, error) {
	if g < 0 || g >= len(f.s.Model.Graphs) {
		return nil, fmt.Errorf("graph %d of %d", g, len(f.s.Model.Graphs))
	}
	return &body{f: f, g: f.s.Model.Graphs[g]}, nil
}

type body struct {
	f     *frame
	g     *graph.Graph
	inner *frame
}

func (b *body) Run(in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	s := b.f.s
	if s.depth++; s.depth > maxDepth {
		return nil, fmt.Errorf("control flow nests deeper than %d", maxDepth)
	}
	defer func() { s.depth-- }()
	if len(in) != len(b.g.Inputs) {
		return nil, fmt.Errorf("graph %q takes %d inputs, %d given", b.g.Name, len(b.g.Inputs), len(in))
	}
	if b.inner == nil || !b.inner.fits(in) {
		inner, err := s.plan(b.g, in, b.f)
		if err != nil {
			return nil, err
		}
		b.inner = inner
	}
	b.inner.bind(in)
	if err := b.inner.run(context.Background()); err != nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(b.g.Outputs))
	for i, id := range b.g.Outputs {
		if id >= 0 {
			out[i] = b.inner.vals[id].Clone()
		}
	}
	return out, nil
}

func sameShape(a, b *tensor.Tensor) bool {
	return a == b || a != nil && b != nil && a.Type == b.Type && slices.Equal(a.Shape, b.Shape)
}

func (f *frame) fits(in []*tensor.Tensor) bool {
	if !slices.EqualFunc(in, f.sig[:len(in)], sameShape) {
		return false
	}
	for i, c := range f.g.Captures {
		if !sameShape(f.outer.vals[c.Outer], f.sig[len(in)+i]) {
			return false
		}
	}
	return true
}

// bind points the inputs and captured values at the caller's tensors.
func (f *frame) bind(in []*tensor.Tensor) {
	for i, id := range f.g.Inputs {
		if in[i] != nil {
			q := f.vals[id].Quant
			*f.vals[id] = *in[i]
			if q != nil {
				f.vals[id].Quant = q
			}
		}
	}
	for _, c := range f.g.Captures {
		if o := f.outer.vals[c.Outer]; o != nil {
			*f.vals[c.Inner] = *o
		}
	}
}

func (s *Session) plan(g *graph.Graph, in []*tensor.Tensor, outer *frame) (*frame, error) {
	f := &frame{s: s, g: g, outer: outer, vals: make([]*tensor.Tensor, len(g.Values))}
	desc := func(t *tensor.Tensor) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return &tensor.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape), Elem: t.Elem}
	}
	for i, v := range g.Values {
		switch {
		case v.Variable:
			key := fmt.Sprintf("variable/%d/%d", g.Index, i)
			if t, ok := s.state[key].(*tensor.Tensor); ok {
				f.vals[i] = t
				continue
			}
			if _, err := tensor.CheckShape(v.Type, v.Shape); err != nil {
				return nil, fmt.Errorf("variable %q: %w", v.Name, err)
			}
			t := tensor.New(v.Type, v.Shape...)
			t.Quant = v.Quant
			if v.Const != nil {
				copy(t.Data, v.Const.Data)
			} else if v.Quant != nil && len(v.Quant.Zero) == 1 {
				fill(t, v.Quant.Zero[0])
			}
			s.state[key] = t
			f.vals[i] = t
		case v.Const != nil:
			f.vals[i] = v.Const
		}
	}
	for i, id := range g.Inputs {
		f.sig = append(f.sig, desc(in[i]))
		if in[i] == nil {
			continue
		}
		f.vals[id] = desc(in[i])
		f.vals[id].Quant = g.Values[id].Quant
	}
	for _, c := range g.Captures {
		d := desc(outer.vals[c.Outer])
		f.sig = append(f.sig, d)
		if d != nil {
			f.vals[c.Inner] = desc(d)
			f.vals[c.Inner].Quant = outer.vals[c.Outer].Quant
		}
	}
	f.steps = make([]step, len(g.Nodes))
	for i, n := range g.Nodes {
		f.planStep(&f.steps[i], n)
	}
	return f, nil
}

// fill writes a zero point into a fresh quantised variable.
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

func (f *frame) planStep(st *step, n *graph.Node) {
	st.node = n
	st.def = f.s.opts.Registry.Find(n.Domain, n.Op, n.Version)
	st.call = op.Call{Model: f.s.Model, Graph: f.g, Node: n, Pool: f.s.pool}
	allKnown := true
	for _, id := range n.Inputs {
		var t *tensor.Tensor
		if id >= 0 {
			t = f.vals[id]
			if t == nil {
				st.err = fmt.Errorf("input %q was not computed", f.g.Values[id].Name)
			} else if v := f.g.Values[id]; !t.Known() || v.Variable {
				allKnown = false
			}
		}
		st.call.In = append(st.call.In, t)
	}
	for _, id := range n.Outputs {
		var t *tensor.Tensor
		if id >= 0 {
			v := f.g.Values[id]
			if v.Variable {
				t = f.vals[id]
			} else {
				t = &tensor.Tensor{Type: v.Type, Quant: v.Quant, Elem: v.Elem}
				f.vals[id] = t
			}
		}
		st.call.Out = append(st.call.Out, t)
	}
	if st.err == nil && st.def == nil {
		st.err = op.Unsupported("operator %s version %d", n.Key(), n.Version)
	}
	if st.err != nil {
		f.substitute(st)
		return
	}
	for _, t := range st.call.In {
		if t != nil && t.Type == tensor.Invalid {
			st.dynamic = true // an input is itself dynamic
		}
	}
	if !st.dynamic {
		switch err := guard(func() error { return st.def.Infer(&st.call) }); {
		case errors.Is(err, op.ErrDynamic):
			st.dynamic = true
		case err != nil:
			st.err = err
		}
	}
	if st.dynamic {
		for _, t := range st.call.Out {
			if t != nil {
				t.Type = tensor.Invalid
			}
		}
		return
	}
	if st.err == nil {
		st.err = f.prepare(st)
	}
	if st.err != nil {
		f.substitute(st)
		return
	}
	if allKnown && !st.def.Stateful {
		if err := f.exec(st); err != nil {
			st.err = err
			f.substitute(st)
			return
		}
		st.folded = true
		return
	}
	f.allocate(st)
}

// allocate gives the step's outputs their memory.
func (f *frame) allocate(st *step) {
	for _, t := range st.call.Out {
		if t != nil && t.Data == nil {
			// Known only after a run: planning must not take the zeros for values.
			t.Data = nil
		}
	}
}

// substitute gives the outputs of a step that cannot run the shapes that the
// file declares, so that what follows can still be planned and timed.
func (f *frame) substitute(st *step) {
	for i, id := range st.node.Outputs {
		if id < 0 {
			continue
		}
		v, t := f.g.Values[id], st.call.Out[i]
		if _, err := tensor.CheckShape(v.Type, v.Shape); err == nil && v.HasShape && v.Type != tensor.Invalid {
			t.Type, t.Shape = v.Type, v.Shape
			t.Alloc()
		} else {
			f.vals[id] = nil
		}
	}
}

func (f *frame) prepare(st *step) error {
	st.call.Env = f
	for _, t := range st.call.Out {
		if t == nil {
			continue
		}
		if _, err := tensor.CheckShape(t.Type, t.Shape); err != nil {
			return err
		}
	}
	err := op.Unsupported("no kernel for this machine")
	for _, v := range st.def.Variants {
		if !v.ISA.Has() {
			continue
		}
		err = guard(func() (e error) { st.run, e = v.Prepare(&st.call); return })
		if !errors.Is(err, op.ErrUnsupported) {
			return err
		}
	}
	return err
}

// guard turns a panic in an operator into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("internal error: %v", e)
		}
	}()
	return fn()
}

func (f *frame) run(ctx context.Context) error {
	for i := range f.steps {
		st := &f.steps[i]
		if st.folded || st.err != nil {
			continue
		}
		if err := f.exec(st); err != nil {
			return fmt.Errorf("node %d (%s %q): %w", st.node.Index, st.node.Key(), st.node.Name, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (f *frame) exec(st *step) error {
	if st.dynamic {
		if err := f.redo(st); err != nil {
			return err
		}
	} else {
		for _, t := range st.call.Out {
			if t != nil && t.Data == nil {
				t.Alloc()
			}
		}
	}
	return guard(func() error { return st.run(&st.call) })
}

// redo infers and, where shapes changed, prepares a dynamic step again.
func (f *frame) redo(st *step) error {
	for _, t := range st.call.Out {
		if t != nil {
			*t = tensor.Tensor{Quant: t.Quant}
		}
	}
	err := guard(func() error { return st.def.Infer(&st.call) })
	free := errors.Is(err, op.ErrDynamic)
	if err != nil && !free {
		return err
	}
	if st.run == nil || !slices.EqualFunc(st.call.In, st.seen, sameShape) {
		if free {
			st.call.Env = f
			err = op.Unsupported("no kernel")
			for _, v := range st.def.Variants {
				if v.ISA.Has() {
					if err = guard(func() (e error) { st.run, e = v.Prepare(&st.call); return }); !errors.Is(err, op.ErrUnsupported) {
						break
					}
				}
			}
		} else {
			err = f.prepare(st)
		}
		if err != nil {
			return err
		}
		st.seen = st.seen[:0]
		for _, t := range st.call.In {
			if t == nil {
				st.seen = append(st.seen, nil)
				continue
			}
			st.seen = append(st.seen, &tensor.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape)})
		}
	}
	if !free {
		for _, t := range st.call.Out {
			if t != nil {
				if _, err := tensor.CheckShape(t.Type, t.Shape); err != nil {
					return err
				}
				t.Alloc()
			}
		}
	}
	return nil
}
