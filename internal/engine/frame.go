package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// frame is a graph planned for one set of input shapes.
type frame struct {
	s     *Session
	g     *graph.Graph
	outer *frame
	vals  []*tensor.Tensor // by value id, nil where never made
	fixed []bool           // by value id: keeps its value for the life of the frame
	steps []step
	sig   []*tensor.Tensor // types and shapes that the plan was made for
	body  map[int]*body

	arenaBytes, valueBytes int
	spent                  int // bytes taken beside the arena
	placed                 []Placed
}

// step is one node, or a node with others fused into it.
type step struct {
	node    *graph.Node
	def     *op.Def
	call    op.Call
	run     op.Run
	state   StepState
	dynamic bool  // outputs are inferred and made at run time
	err     error // why the step does not run
	fused   []*graph.Node
	seen    []*tensor.Tensor // shapes that a dynamic step was prepared for
	bufs    [][]byte         // a dynamic step's output memory, kept between runs
}

// plan makes a frame: values, steps, fusion, memory.
func (s *Session) plan(g *graph.Graph, in []*tensor.Tensor, outer *frame) (*frame, error) {
	f := &frame{s: s, g: g, outer: outer, vals: make([]*tensor.Tensor, len(g.Values)), fixed: make([]bool, len(g.Values)), body: map[int]*body{}}
	if err := f.seed(in); err != nil {
		return nil, err
	}
	f.steps = make([]step, len(g.Nodes))
	for i, n := range g.Nodes {
		f.steps[i].node = n
	}
	if !s.opts.KeepAll {
		f.fuse()
	}
	for i := range f.steps {
		if f.steps[i].state != Fused {
			f.planStep(&f.steps[i])
		}
	}
	if err := f.place(); err != nil {
		return nil, err
	}
	s.frames[g.Index] = f
	return f, nil
}

// describe copies type and shape without the elements.
func describe(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return &tensor.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape), Elem: t.Elem, Quant: t.Quant}
}

// seed fills in constants, variables, inputs and captured values.
func (f *frame) seed(in []*tensor.Tensor) error {
	for i, v := range f.g.Values {
		switch {
		case v.Variable:
			t, err := f.s.variable(f.g, v)
			if err != nil {
				return err
			}
			f.vals[i] = t
		case v.Const != nil:
			f.vals[i], f.fixed[i] = v.Const, true
		}
	}
	for i, id := range f.g.Inputs {
		f.sig = append(f.sig, describe(in[i]))
		if v := f.g.Values[id]; in[i] != nil && !v.Variable {
			f.vals[id] = describe(in[i])
			if v.Quant != nil {
				f.vals[id].Quant = v.Quant
			}
		}
	}
	for _, c := range f.g.Captures {
		o := f.outer.vals[c.Outer]
		f.sig = append(f.sig, describe(o))
		switch {
		case o == nil:
		case f.outer.fixed[c.Outer]:
			f.vals[c.Inner], f.fixed[c.Inner] = o, true
		default:
			f.vals[c.Inner] = describe(o)
		}
	}
	return nil
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

// planStep infers, prepares and, when all inputs are fixed, computes a step.
func (f *frame) planStep(st *step) {
	n := st.node
	st.def = f.s.opts.Registry.Find(n.Domain, n.Op, n.Version)
	c := &st.call
	c.Model, c.Graph, c.Node, c.Pool, c.Limit = f.s.Model, f.g, n, f.s.pool, f.s.opts.MaxBytes
	fixed, missing := f.inputs(st), st.err
	f.outputs(st)
	switch {
	case missing != nil:
		f.giveUp(st, Skipped, missing)
		return
	case f.s.disabled[f.g.Nodes[n.Index]] != nil:
		f.giveUp(st, Failed, f.s.disabled[f.g.Nodes[n.Index]])
		return
	case st.def == nil:
		f.giveUp(st, Unsupported, op.Unsupported("operator %s version %d", n.Key(), n.Version))
		return
	}
	for _, t := range c.In {
		if t != nil && t.Type == tensor.Invalid {
			st.dynamic = true // the input itself is known only at run time
		}
	}
	if !st.dynamic {
		if err := f.infer(st); err != nil {
			f.giveUp(st, stateOf(err), err)
			return
		}
	}
	if st.dynamic {
		for _, t := range c.Out {
			if t != nil {
				t.Type, t.Shape = tensor.Invalid, nil
			}
		}
		return
	}
	if err := f.prepare(st); err != nil {
		f.giveUp(st, stateOf(err), err)
		return
	}
	if err := f.spend(st.call.ScratchBytes()); err != nil {
		f.giveUp(st, Failed, err)
		return
	}
	if (fixed || st.def.OfShape) && !st.def.Stateful && f.foldable(st) {
		for _, t := range c.Out {
			if t != nil {
				t.Alloc()
			}
		}
		if err := guard(func() error { return st.run(c) }); err != nil {
			f.giveUp(st, Failed, err)
			return
		}
		st.state = Folded
		for _, id := range n.Outputs {
			if id >= 0 {
				f.fixed[id] = true
			}
		}
	}
}

func stateOf(err error) StepState {
	if errors.Is(err, op.ErrUnsupported) {
		return Unsupported
	}
	return Failed
}

// foldLimit bounds the memory that one folded step may make: larger results are
// cheaper to compute again than to keep.
const foldLimit = 256 << 20

func (f *frame) foldable(st *step) bool {
	n := 0
	for _, t := range st.call.Out {
		if t != nil {
			n += t.Bytes()
		}
	}
	return n <= foldLimit && f.spend(n) == nil
}

// spend notes that the frame takes n more bytes beside its arena, and fails when
// that is beyond the limit.
func (f *frame) spend(n int) error {
	if limit := f.s.opts.MaxBytes; limit > 0 && f.spent+n > limit {
		return &op.LimitError{Want: f.spent + n, Limit: limit}
	}
	f.spent += n
	return nil
}

// inputs joins the step to its input values and reports whether all are fixed.
func (f *frame) inputs(st *step) (fixed bool) {
	c := &st.call
	fixed = true
	for _, id := range c.Node.Inputs {
		var t *tensor.Tensor
		ok := true
		if id >= 0 {
			ok = f.fixed[id]
			if t = f.vals[id]; t == nil {
				st.err = fmt.Errorf("%w: %q", errMissing, f.g.Values[id].Name)
			}
		}
		c.In = append(c.In, t)
		c.Fixed = append(c.Fixed, ok)
		fixed = fixed && ok
	}
	if len(c.Node.Attrs) > 0 && fixed {
		for _, id := range f.captured(c.Node) {
			fixed = fixed && f.fixed[id]
		}
	}
	return fixed
}

// captured lists the values of f that the node's nested graphs read.
func (f *frame) captured(n *graph.Node) []int {
	var ids []int
	add := func(g graph.GraphRef) {
		for _, c := range f.s.Model.Graphs[g].Captures {
			ids = append(ids, c.Outer)
		}
	}
	for _, a := range n.Attrs {
		switch a := a.(type) {
		case graph.GraphRef:
			add(a)
		case []graph.GraphRef:
			for _, g := range a {
				add(g)
			}
		}
	}
	return ids
}

func (f *frame) outputs(st *step) {
	for _, id := range st.call.Node.Outputs {
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
}

// infer sets the outputs' shapes, or marks the step dynamic.
func (f *frame) infer(st *step) error {
	err := guard(func() error { return st.def.Infer(&st.call) })
	if errors.Is(err, op.ErrDynamic) {
		st.dynamic = true
		return nil
	}
	return err
}

// prepare gets a step ready to run. Output shapes must be known and are checked.
func (f *frame) prepare(st *step) error {
	for i, t := range st.call.Out {
		if t == nil {
			continue
		}
		if t.Type == tensor.Invalid {
			return fmt.Errorf("output %d has no type", i)
		}
		if err := st.call.AffordTensor(t.Type, t.Shape); err != nil {
			return err
		}
	}
	return f.choose(st)
}

func (f *frame) choose(st *step) error {
	st.call.Env, st.call.Kernel = f, ""
	return guard(func() (err error) { st.run, err = st.def.Prepare(&st.call); return err })
}

// giveUp notes why a step does not run and gives its outputs the shapes that the
// file declares, filled with zeros, so that what follows can still be timed.
func (f *frame) giveUp(st *step, state StepState, err error) {
	st.state, st.err = state, err
	for i, id := range st.call.Node.Outputs {
		if id < 0 || i >= len(st.call.Out) {
			continue
		}
		v, t := f.g.Values[id], st.call.Out[i]
		if n, err := tensor.CheckShape(v.Type, v.Shape); err == nil && v.HasShape && v.Type.Bytes(n) <= substituteLimit && v.Type != tensor.Invalid && f.spend(v.Type.Bytes(n)) == nil {
			t.Type, t.Shape = v.Type, v.Shape
			t.Alloc()
		} else {
			f.vals[id] = nil
		}
	}
}

// substituteLimit bounds a zero-filled stand-in, in bytes: the shape comes from
// the file alone and nobody has computed it.
const substituteLimit = 1 << 30

// guard turns a panic in an operator into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = panicked(e)
		}
	}()
	return fn()
}

// panicked makes an error of a panic in an operator. Elements of an unexpected
// type are a mixture of types that the operator does not do; a memory fault means
// that the mapped model file was cut short by somebody else.
func panicked(e any) error {
	if err, ok := e.(*op.LimitError); ok {
		return err
	}
	if t, ok := e.(*tensor.TypeError); ok {
		return op.Unsupported("%v", t)
	}
	if fault, ok := e.(interface {
		error
		Addr() uintptr
	}); ok {
		return fmt.Errorf("memory fault: a model file was changed while in use, or an internal error: %w", fault)
	}
	return fmt.Errorf("internal error: %v", e)
}
