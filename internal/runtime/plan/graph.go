package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Options sets how a model is planned.
type Options struct {
	Registry *op.Registry // required
	// MaxBytes bounds each value, and all that is folded of a graph together, in
	// bytes; 0 means no limit.
	MaxBytes int
	// FoldBytes bounds what one folded node may read and make for it to be computed
	// while planning, in bytes; 0 means 1 MiB. A larger one is known to be constant,
	// but not its elements.
	FoldBytes int
	// Exact leaves operators between DequantizeLinear and QuantizeLinear in floating
	// point, as the file says, rounds halves after each operator, and limits them then; it joins no operators whose
	// results would differ in the last digits.
	Exact bool
	// KeepAll makes every value of the file: no node is computed by another.
	KeepAll bool
	// Disabled holds nodes of the file that must not run, and why.
	Disabled map[*graph.Node]error
}

// Host is what somebody who runs the graph lends to its plan. The zero value is
// for a plan alone.
type Host struct {
	// Bind completes a call before it is prepared (workers, environment).
	Bind func(*op.Call)
	// Variable returns the tensor behind a TFLite variable.
	Variable func(*graph.Value) (*tensor.Tensor, error)
}

// Graph is the plan of one graph for one set of shapes.
type Graph struct {
	File *graph.Graph // as the file has it
	// Graph is what Tasks refer to: the file's graph, with constants that passes
	// have added after its values.
	Graph  *graph.Graph
	Outer  *Graph           // plan of the graph around a body, nil otherwise
	Values []*tensor.Tensor // by value id, nil where never made; no type where not known
	Fixed  []bool           // by value id: keeps its value for the life of the plan
	Tasks  []Task           // one for each node of the file
	Spent  int              // bytes taken so far, see [Graph.Spend]

	model  *graph.Model
	opts   Options
	host   Host
	maker  []int                  // by value id: one plus the task that makes it
	dirty  []bool                 // by value id: changed since its readers were settled
	claims map[int]*tensor.Tensor // what is known of values whose shapes are not known in full
	bodies *bodies                // nil where nested graphs are not planned along
	inner  []*Graph               // plans of the bodies
	half   map[int]tensor.Type    // by value id: halves that stay, where tasks in float32 make them
	// types are element types by value id where shapes are known only at run time.
	types []tensor.Type
	// broken is the first node that breaks a rule of the format.
	broken  *MalformedError
	worked  int64           // operations that were folded
	tensors []tensor.Tensor // that nobody has yet
	spare   op.Recycler     // memory of folded values
}

// Task is one node, or a node with others fused into it.
type Task struct {
	Node    *graph.Node // what runs: the file's node unless a pass has changed it
	Def     *op.Def
	Call    op.Call
	State   State
	Dynamic bool  // outputs are inferred and made at run time
	Err     error // why the node does not run
	Into    int   // task that computes this one when State is Fused
	Fused   []int // tasks that this one computes too
	// Lowered tells that a pass runs another operator than the file names. Where
	// that cannot be prepared after all, [Graph.Revert] goes back to the file's.
	Lowered bool
	// Ready is for the use of who prepares tasks: it becomes false whenever the
	// task has changed.
	Ready bool

	act     activation.Clamp
	last    [2]bool // pictures of codes that it reads, and makes, have their channels last
	pair    int     // one plus the task that was lowered with this one
	wide    bool    // halves among its inputs and outputs are converted, it computes in float32
	settled bool
	asIs    bool // no pass may change it again
	unfold  bool // computed in every run although constant: it takes too much memory
	failed  error
	work    int64 // operations that it takes to fold it, about
}

// New plans one graph for inputs of the given types and shapes. outer is the plan
// of the graph around it, nil for others. It fails only when a variable cannot be
// made.
func New(m *graph.Model, g *graph.Graph, in []*tensor.Tensor, outer *Graph, o Options, h Host) (*Graph, error) {
	p, err := seeded(m, g, in, outer, o, h)
	if err != nil {
		return nil, err
	}
	p.apply()
	return p, nil
}

// seeded is a plan in which inputs and constants are known and no task is settled.
func seeded(m *graph.Model, g *graph.Graph, in []*tensor.Tensor, outer *Graph, o Options, h Host) (*Graph, error) {
	n := len(g.Values)
	p := &Graph{
		File: g, Graph: g, Outer: outer, model: m, opts: o, host: h,
		Values: make([]*tensor.Tensor, n), Fixed: make([]bool, n), Tasks: make([]Task, len(g.Nodes)),
		maker: make([]int, n), dirty: make([]bool, n), claims: map[int]*tensor.Tensor{},
		types: make([]tensor.Type, n),
	}
	if p.opts.FoldBytes == 0 {
		p.opts.FoldBytes = 1 << 20
	}
	for i, node := range g.Nodes {
		p.Tasks[i].Node = node
	}
	return p, p.seed(in)
}

// apply runs the passes.
func (g *Graph) apply() {
	for _, p := range Passes() {
		if p.Name == "fold" || !g.opts.KeepAll && !(p.Rounds && g.opts.Exact) {
			p.Run(g)
		}
	}
}

// seed fills in constants, variables, inputs and captured values.
func (g *Graph) seed(in []*tensor.Tensor) error {
	for i, v := range g.File.Values {
		switch {
		case v.Variable && g.host.Variable == nil:
			g.Values[i] = &tensor.Tensor{Type: v.Type, Shape: v.Shape, Quant: v.Quant}
		case v.Variable:
			t, err := g.host.Variable(v)
			if err != nil {
				return err
			}
			g.Values[i] = t
		case v.Scratch:
			g.Values[i] = &tensor.Tensor{Type: v.Type, Shape: v.Shape, Quant: v.Quant}
		case v.Const != nil:
			g.Values[i], g.Fixed[i] = v.Const, true
		}
	}
	for i, id := range g.File.Inputs {
		if v := g.File.Values[id]; i < len(in) && in[i] != nil && !v.Variable {
			g.Values[id] = describe(in[i])
			if v.Quant != nil {
				g.Values[id].Quant = v.Quant
			}
		}
	}
	for _, c := range g.File.Captures {
		if g.Outer == nil || c.Outer < 0 || c.Outer >= len(g.Outer.Values) {
			continue
		}
		o := g.Outer.Values[c.Outer]
		switch {
		case o == nil:
		case g.Outer.Fixed[c.Outer]:
			g.Values[c.Inner], g.Fixed[c.Inner] = o, true
		default:
			g.Values[c.Inner] = describe(o)
		}
	}
	return nil
}

// ErrMissing tells that the maker of an input does not run.
var ErrMissing = errors.New("an input could not be computed")

// Settle infers all tasks that have not been, or that read what has changed.
func (g *Graph) Settle() {
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused || t.settled && !g.stale(t) {
			continue
		}
		was := g.sight(t.Node)
		g.settle(i)
		for k := range was {
			if id := t.Node.Outputs[k]; was[k].made && !was[k].same(g.look(id)) {
				g.dirty[id] = true
			}
		}
	}
	clear(g.dirty)
}

// sight is what readers of a value go by.
type sight struct {
	t     *tensor.Tensor
	is    tensor.Tensor // without elements
	known bool
	fixed bool
	made  bool
}

// look sees a value as it is. Whoever gives it another shape does not write to the old one.
func (g *Graph) look(id int) sight {
	s := sight{t: g.Values[id], fixed: g.Fixed[id], made: true}
	if s.t != nil {
		s.is, s.known = tensor.Tensor{Type: s.t.Type, Shape: s.t.Shape}, s.t.Known()
	}
	return s
}

func (s sight) same(o sight) bool {
	return s.t == o.t && s.fixed == o.fixed && s.known == o.known && s.is.Type == o.is.Type && slices.Equal(s.is.Shape, o.is.Shape)
}

// sight remembers the node's outputs as they are; nil where none has been made.
func (g *Graph) sight(n *graph.Node) (out []sight) {
	for k, id := range n.Outputs {
		if id >= 0 && g.maker[id] > 0 {
			if out == nil {
				out = make([]sight, len(n.Outputs))
			}
			out[k] = g.look(id)
		}
	}
	return out
}

func (g *Graph) stale(t *Task) bool {
	for _, id := range t.Node.Inputs {
		if id >= 0 && g.dirty[id] {
			return true
		}
	}
	if len(t.Node.Attrs) > 0 {
		for _, id := range g.Captured(t.Node) {
			if g.dirty[id] {
				return true
			}
		}
	}
	return false
}

// add gives the graph a further value.
func (g *Graph) add(v *graph.Value, x *tensor.Tensor) int {
	if g.Graph == g.File {
		c := *g.File
		c.Values = slices.Clone(c.Values)
		g.Graph = &c
	}
	v.ID = len(g.Graph.Values)
	g.Graph.Values = append(g.Graph.Values, v)
	g.Values = append(g.Values, x)
	g.Fixed = append(g.Fixed, v.Const != nil)
	g.maker = append(g.maker, 0)
	g.dirty = append(g.dirty, false)
	return v.ID
}

// temporary is a value that stands, in numbers of its own, for the one of this name.
func (g *Graph) temporary(name string, t tensor.Type) int {
	return g.add(&graph.Value{Name: name, Type: t, Offset: -1}, &tensor.Tensor{})
}

// names tells whether a file of the model's format may name operators of a domain: not those that only plans write, which trust
// what they get, nor those of another format.
func (g *Graph) names(domain string) bool {
	switch domain {
	case graph.Own:
		return false
	case graph.TFLite, graph.TFLiteCustom:
		return g.model.Format != "onnx"
	}
	return true
}

// settle infers one task.
func (g *Graph) settle(i int) {
	t := &g.Tasks[i]
	n := t.Node
	t.Def = nil
	if n != g.File.Nodes[i] || g.names(n.Domain) {
		t.Def = g.opts.Registry.Find(n.Domain, n.Op, n.Version)
	}
	if t.Def != nil && t.wide {
		t.Def = g.inWide(t.Def)
	}
	t.Call = op.Call{Model: g.model, Graph: g.Graph, Node: n, Limit: g.opts.MaxBytes, Activation: t.act, NHWCIn: t.last[0], NHWCOut: t.last[1]}
	t.State, t.Dynamic, t.Err, t.Ready, t.settled, t.failed = Runs, false, nil, false, true, nil
	c := &t.Call
	fixed, missing := g.inputs(t)
	g.outputs(i)
	off := g.opts.Disabled[g.File.Nodes[i]]
	switch {
	case missing != nil:
		g.giveUp(i, Skipped, missing)
		return
	case off != nil:
		g.giveUp(i, Failed, off)
		return
	case t.Def == nil:
		g.giveUp(i, Unsupported, op.Unknown(n.Version))
		return
	case g.scratch(n):
		g.giveUp(i, Unsupported, op.Unsupported("inputs that are scratch memory"))
		return
	}
	if err := g.fits(i); err != nil {
		g.giveUp(i, StateOf(err), err)
		return
	}
	for _, x := range c.In {
		if x != nil && x.Type == tensor.Invalid {
			t.Dynamic = true // the input itself is known only at run time
		}
	}
	if !t.Dynamic {
		err := g.infer(t)
		if err == nil && !t.Dynamic {
			err = Check(c)
		}
		if err == nil && !t.Dynamic {
			err = g.made(i)
		}
		if err != nil {
			g.giveUp(i, StateOf(err), err)
			return
		}
	}
	if t.Dynamic {
		for k, x := range c.Out {
			if x != nil && !g.Graph.Values[n.Outputs[k]].Variable {
				x.Type, x.Shape = tensor.Invalid, nil
			}
		}
	}
	if g.bodies != nil && len(n.Attrs) > 0 {
		g.bodies.under(g, t)
	}
	if t.Dynamic {
		return
	}
	if (fixed || t.Def.ShapeOnly) && !t.Def.Stateful && !t.unfold && (t.Def.Uniform != nil || outBytes(c) <= foldLimit) {
		if !t.Def.ShapeOnly {
			t.work = g.workOf(t)
		}
		if t.work > mostWork {
			g.giveUp(i, Failed, &op.WorkError{Want: t.work, Limit: mostWork})
			return
		}
		if t.work > foldWork {
			return
		}
		t.State = Folded
		for _, id := range n.Outputs {
			if id >= 0 {
				g.Fixed[id] = true
			}
		}
	}
}

// scratch reports whether the node reads memory that nobody fills.
func (g *Graph) scratch(n *graph.Node) bool {
	return slices.ContainsFunc(n.Inputs, func(id int) bool { return id >= 0 && g.Graph.Values[id].Scratch })
}

// infer sets the outputs' shapes, or marks the task dynamic. What a shape depends
// on is computed where it is constant.
func (g *Graph) infer(t *Task) error {
	err := Guard(func() error { return t.Def.Infer(&t.Call) })
	if err == nil {
		return nil
	}
	more := false
	for k, id := range t.Node.Inputs {
		if id >= 0 && g.Fixed[id] && !t.Call.In[k].Known() {
			more = g.compute(id, g.opts.FoldBytes, 0) == nil || more
		}
	}
	if more {
		err = Guard(func() error { return t.Def.Infer(&t.Call) })
	}
	if errors.Is(err, op.ErrDynamic) {
		t.Dynamic, err = true, nil
	}
	return err
}

// Check makes sure that outputs have types and shapes that memory can hold.
func Check(c *op.Call) error {
	for i, x := range c.Out {
		if x == nil {
			continue
		}
		if x.Type == tensor.Invalid {
			return fmt.Errorf("output %d has no type", i)
		}
		if err := c.AffordTensor(x.Type, x.Shape); err != nil {
			return err
		}
	}
	return nil
}

// StateOf is the state of a node that fails with err while it is planned.
func StateOf(err error) State {
	if errors.Is(err, op.ErrUnsupported) {
		return Unsupported
	}
	return Failed
}

// inputs joins the task to its input values and reports whether all are fixed.
func (g *Graph) inputs(t *Task) (fixed bool, missing error) {
	c := &t.Call
	fixed = true
	in, out := len(t.Node.Inputs), len(t.Node.Outputs)
	both := make([]*tensor.Tensor, in+out)
	c.In, c.Out, c.Fixed = both[:0:in], both[in:in], make([]bool, 0, in)
	for _, id := range t.Node.Inputs {
		var x *tensor.Tensor
		ok := true
		if id >= 0 {
			ok = g.Fixed[id]
			if x = g.Values[id]; x == nil {
				missing = fmt.Errorf("%w: %q", ErrMissing, g.Graph.Values[id].Name)
			}
		}
		c.In = append(c.In, x)
		c.Fixed = append(c.Fixed, ok)
		fixed = fixed && ok
	}
	if len(t.Node.Attrs) > 0 && fixed {
		for _, id := range g.Captured(t.Node) {
			fixed = fixed && g.Fixed[id]
		}
	}
	return fixed, missing
}

// fresh is a tensor for a value; they are made some at a time.
func (g *Graph) fresh() *tensor.Tensor {
	if len(g.tensors) == 0 {
		g.tensors = make([]tensor.Tensor, min(len(g.Tasks), 32))
	}
	x := &g.tensors[0]
	g.tensors = g.tensors[1:]
	return x
}

// outputs gives the task fresh tensors for what it makes.
func (g *Graph) outputs(i int) {
	t := &g.Tasks[i]
	for _, id := range t.Node.Outputs {
		var x *tensor.Tensor
		if id >= 0 {
			v := g.Graph.Values[id]
			g.maker[id] = i + 1
			if v.Variable {
				x = g.Values[id]
			} else {
				// Whoever reads the value keeps the same tensor when it is made anew.
				if x = g.Values[id]; x == nil || v.Const != nil {
					x = g.fresh()
				}
				*x = tensor.Tensor{Type: v.Type, Quant: v.Quant, Elem: v.Elem}
				g.Values[id], g.Fixed[id] = x, false
				delete(g.claims, id)
			}
		}
		t.Call.Out = append(t.Call.Out, x)
	}
}

// Captured lists the values that the node's nested graphs read.
func (g *Graph) Captured(n *graph.Node) []int {
	if len(g.model.Graphs) == 1 {
		return nil
	}
	var ids []int
	for _, b := range Bodies(n) {
		if b < 0 || b >= len(g.model.Graphs) {
			continue
		}
		// A body of another graph reads nothing of this one.
		if p := g.model.Graphs[b].Parent; p != nil && p.Index != g.File.Index {
			continue
		}
		for _, c := range g.model.Graphs[b].Captures {
			if c.Outer >= 0 && c.Outer < len(g.Values) {
				ids = append(ids, c.Outer)
			}
		}
	}
	return ids
}

// Bodies lists the graphs that a node runs, in order of their attributes' names.
func Bodies(n *graph.Node) []int {
	var names []string
	for name, a := range n.Attrs {
		switch a.(type) {
		case graph.GraphRef, []graph.GraphRef:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var gs []int
	for _, name := range names {
		switch a := n.Attrs[name].(type) {
		case graph.GraphRef:
			gs = append(gs, int(a))
		case []graph.GraphRef:
			for _, g := range a {
				gs = append(gs, int(g))
			}
		}
	}
	return gs
}

// GiveUp notes why a task does not run and lets what hangs on it follow: its
// outputs have the shapes that the file declares, or are never made.
func (g *Graph) GiveUp(i int, s State, err error) {
	g.giveUp(i, s, err)
	g.spread(i)
}

// spread settles what reads the outputs of task i.
func (g *Graph) spread(i int) {
	for _, id := range g.Tasks[i].Node.Outputs {
		if id >= 0 {
			g.dirty[id] = true
		}
	}
	g.Settle()
}

// substituteLimit bounds a stand-in, in bytes: the shape comes from the file alone
// and nobody has computed it.
const substituteLimit = 1 << 30

func (g *Graph) giveUp(i int, s State, err error) {
	t := &g.Tasks[i]
	t.State, t.Err, t.Dynamic, t.Ready = s, err, false, false
	if g.broken == nil && errors.Is(err, op.ErrMalformed) {
		g.broken = &MalformedError{Graph: g.File.Index, Node: g.File.Nodes[i], Err: err}
	}
	for k, id := range t.Node.Outputs {
		if id < 0 || k >= len(t.Call.Out) || g.Graph.Values[id].Variable {
			continue
		}
		v := g.Graph.Values[id]
		g.Fixed[id] = false
		n, err := tensor.CheckShape(v.Type, v.Shape)
		if err == nil && v.HasShape && v.Type.Bytes(n) <= substituteLimit && v.Type != tensor.Invalid && g.Spend(v.Type.Bytes(n)) == nil {
			*t.Call.Out[k] = tensor.Tensor{Type: v.Type, Shape: v.Shape, Quant: v.Quant, Elem: v.Elem}
		} else {
			g.Values[id] = nil
		}
	}
}

// Spend notes that the graph takes n more bytes, and fails with an
// [op.LimitError] when that is beyond the limit.
func (g *Graph) Spend(n int) error {
	if limit := g.opts.MaxBytes; limit > 0 && g.Spent+n > limit {
		return &op.LimitError{Want: g.Spent + n, Limit: limit}
	}
	g.Spent += n
	return nil
}

// Guard turns a panic in an operator into an error. Elements of an unexpected type
// are a mixture of types that the operator does not do. A fault in a mapped file goes
// on: it is the end of all work with the model, and [mapped.Guard] waits for it.
func Guard(fn func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = Panicked(e)
		}
	}()
	return fn()
}

// Panicked makes an error of what an operator panicked with. Faults in mapped files go
// on.
func Panicked(e any) error {
	if mapped.Fault(e) != nil {
		panic(e)
	}
	if err, ok := e.(*op.LimitError); ok {
		return err
	}
	if err, ok := e.(error); ok && errors.Is(err, workers.ErrStopped) {
		return err
	}
	if t, ok := e.(*tensor.TypeError); ok {
		return op.Unsupported("%v", t)
	}
	if t, ok := e.(*tensor.EmptyError); ok {
		return t
	}
	return fmt.Errorf("internal error: %v", e)
}
