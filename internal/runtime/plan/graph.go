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
	// MaxBytes bounds each value, and all folded values of a graph together, in bytes; 0 means no
	// limit.
	MaxBytes int
	// Static is for plans of models that never run: values that nothing computes while planning take
	// no memory, and MaxBytes does not bound them.
	Static bool
	// HeldBytes is what a limit of the model has lost to others: MaxBytes is the rest. It is only
	// for messages.
	HeldBytes int
	// FoldBytes bounds the bytes that one folded node may read and write to be computed while
	// planning; 0 means 1 MiB. The result of a larger node is known to be constant, but its
	// elements are not known.
	FoldBytes int
	// Exact leaves operators between DequantizeLinear and QuantizeLinear in floating point, as in
	// the file, and rounds float16 results after each operator and before a clamp. It disables
	// fusions that change the last digits of results, and approximations that the file permits.
	Exact bool
	// KeepAll materialises every value of the file: no node is fused into another.
	KeepAll bool
	// Disabled maps nodes of the file that must not run to the reason.
	Disabled map[*graph.Node]error
}

// Host provides the services of the engine that runs the graph. The zero value is for planning
// without running.
type Host struct {
	// Bind completes a call before it is prepared (thread pool, environment).
	Bind func(*op.Call)
	// Variable returns the tensor behind a TFLite variable.
	Variable func(*graph.Value) (*tensor.Tensor, error)
}

// Graph is the plan of one graph for one set of shapes.
type Graph struct {
	File *graph.Graph // the graph of the file
	// Graph is what Tasks refer to: the file's graph, with the constants that passes have added
	// after its values.
	Graph    *graph.Graph
	Outer    *Graph           // plan of the enclosing graph, nil for the main graph
	Values   []*tensor.Tensor // by value id; nil if never computed, without a type if unknown
	Fixed    []bool           // by value id: constant for the life of the plan
	Tasks    []Task           // one per node of the file
	Reserved int              // bytes reserved so far, see [Graph.Reserve]

	model        *graph.Model
	opts         Options
	host         Host
	maker        []int                  // by value id: one plus the task that computes it
	dirty        []bool                 // by value id: changed since its readers were inferred
	claims       map[int]*tensor.Tensor // partial knowledge of values without full shapes
	bodies       *bodies                // nil if nested graphs are not planned too
	inner        []*Graph               // plans of the bodies
	float16Twins map[int]tensor.Type    // by value id: 16-bit type that a float32 twin replaces
	// types holds element types by value id where shapes are known only at run time.
	types []tensor.Type
	// malformed is the first node that breaks a rule of the format.
	malformed *MalformedError
	worked    int64           // number of operations folded
	tensors   []tensor.Tensor // allocated in advance, unused
	spare     op.Recycler     // memory of folded values
}

// Task is one node, or a node with others fused into it.
type Task struct {
	Node    *graph.Node // the node that runs: the file's unless a pass has changed it
	Def     *op.Def
	Call    op.Call
	State   State
	Dynamic bool  // outputs are inferred and allocated at run time
	Err     error // reason why the node does not run
	Into    int   // task into which this one is fused if State is Fused
	Fused   []int // tasks fused into this one
	// Lowered says that a pass runs another operator than the file names. If that one cannot be
	// prepared, [Graph.Revert] restores the file's.
	Lowered bool
	// Ready is for the code that prepares tasks: planning sets it to false whenever the task
	// changes.
	Ready bool

	act     activation.Clamp
	nhwc    [2]bool // its quantised inputs, and outputs, are channels-last
	pair    int     // one plus the task that was lowered with this one
	wide    bool    // converts 16-bit inputs and outputs and computes in float32
	settled bool
	final   bool // no pass may change it again
	noFold  bool // runs every time although constant: it needs too much memory
	failed  error
	work    int64    // estimated operations to fold it
	ran     []*Graph // plans of the graphs that it runs, if nested graphs are planned too
}

// New plans one graph for inputs of the given types and shapes. outer is the plan of the
// enclosing graph, nil if absent. It fails only when a variable cannot be created.
func New(m *graph.Model, g *graph.Graph, in []*tensor.Tensor, outer *Graph, o Options, h Host) (*Graph, error) {
	p, err := newGraph(m, g, in, outer, o, h)
	if err != nil {
		return nil, err
	}
	p.apply()
	return p, nil
}

// newGraph makes a plan in which inputs and constants are known and no task is inferred yet.
func newGraph(m *graph.Model, g *graph.Graph, in []*tensor.Tensor, outer *Graph, o Options, h Host) (*Graph, error) {
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

// seed sets constants, variables, inputs and captured values.
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

// ErrMissing reports that the node that computes an input does not run.
var ErrMissing = errors.New("an input could not be computed")

// InferAll infers all tasks that are new or that read a changed value.
func (g *Graph) InferAll() {
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.State == Fused || t.settled && !g.stale(t) {
			continue
		}
		was := g.snapshots(t.Node)
		g.inferTask(i)
		for k := range was {
			if id := t.Node.Outputs[k]; was[k].made && !was[k].same(g.snapshotOf(id)) {
				g.dirty[id] = true
			}
		}
	}
	clear(g.dirty)
}

// snapshot is the state of a value that its readers depend on.
type snapshot struct {
	t     *tensor.Tensor
	is    tensor.Tensor // without elements
	known bool
	fixed bool
	made  bool
}

// snapshotOf records the current state of a value. Code that changes a shape replaces the slice
// and never writes to the old one.
func (g *Graph) snapshotOf(id int) snapshot {
	s := snapshot{t: g.Values[id], fixed: g.Fixed[id], made: true}
	if s.t != nil {
		s.is, s.known = tensor.Tensor{Type: s.t.Type, Shape: s.t.Shape}, s.t.Known()
	}
	return s
}

func (s snapshot) same(o snapshot) bool {
	return s.t == o.t && s.fixed == o.fixed && s.known == o.known && s.is.Type == o.is.Type && slices.Equal(s.is.Shape, o.is.Shape)
}

// snapshots records the node's outputs; nil if none has been computed.
func (g *Graph) snapshots(n *graph.Node) (out []snapshot) {
	for k, id := range n.Outputs {
		if id >= 0 && g.maker[id] > 0 {
			if out == nil {
				out = make([]snapshot, len(n.Outputs))
			}
			out[k] = g.snapshotOf(id)
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

// add adds a value to the graph.
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

// temporary adds a value of type t that replaces the value with this name.
func (g *Graph) temporary(name string, t tensor.Type) int {
	return g.add(&graph.Value{Name: name, Type: t, Offset: -1}, &tensor.Tensor{})
}

// mayName reports whether a file of the model's format may use operators of a domain. It may not
// use the operators of planning passes, which trust their inputs, nor those of another format. The
// nodes of a GGUF file are those of its reader.
func (g *Graph) mayName(domain string) bool {
	switch domain {
	case graph.Own:
		return g.model.Format == "gguf"
	case graph.TFLite, graph.TFLiteCustom:
		return !g.model.ONNX()
	}
	return true
}

// inferTask infers one task.
func (g *Graph) inferTask(i int) {
	t := &g.Tasks[i]
	n := t.Node
	t.Def = nil
	if n != g.File.Nodes[i] || g.mayName(n.Domain) {
		t.Def = g.opts.Registry.Find(n.Domain, n.Op, n.Version)
	}
	if t.Def != nil && t.wide {
		t.Def = g.widened(t.Def)
	}
	t.Call = op.Call{Model: g.model, Graph: g.Graph, Node: n, Limit: g.opts.MaxBytes, Held: g.opts.HeldBytes, Exact: g.opts.Exact, Activation: t.act, NHWCIn: t.nhwc[0], NHWCOut: t.nhwc[1]}
	t.State, t.Dynamic, t.Err, t.Ready, t.settled, t.failed = Runs, false, nil, false, true, nil
	c := &t.Call
	fixed, missing := g.inputs(t)
	g.outputs(i)
	off := g.opts.Disabled[g.File.Nodes[i]]
	switch {
	case missing != nil:
		g.markFailed(i, Skipped, missing)
		return
	case off != nil:
		g.markFailed(i, Failed, off)
		return
	case t.Def == nil:
		g.markFailed(i, Unsupported, g.opts.Registry.Unknown(n.Domain, n.Op, n.Version))
		return
	case g.scratch(n):
		g.markFailed(i, Unsupported, op.Unsupported("inputs that are scratch memory"))
		return
	}
	if err := g.validate(i); err != nil {
		g.markFailed(i, StateOf(err), err)
		return
	}
	for _, x := range c.In {
		if x != nil && x.Type == tensor.Invalid {
			t.Dynamic = true // the input is known only at run time
		}
	}
	if !t.Dynamic {
		err := g.infer(t)
		if err == nil && !t.Dynamic {
			err = g.check(c)
		}
		if err == nil && !t.Dynamic {
			err = g.validateOutputs(i)
		}
		if err != nil {
			g.markFailed(i, StateOf(err), err)
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
		g.bodies.planBodies(g, t)
	}
	if t.Dynamic {
		return
	}
	if (fixed || t.Def.ShapeOnly) && !t.Def.Stateful && !t.noFold && (t.Def.Uniform != nil || outBytes(c) <= foldLimit) {
		if !t.Def.ShapeOnly {
			t.work = g.workOf(t)
		}
		if t.work > maxFoldWork {
			g.markFailed(i, Failed, &op.WorkError{Want: t.work, Limit: maxFoldWork})
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

// scratch reports whether the node reads memory that is never written.
func (g *Graph) scratch(n *graph.Node) bool {
	return slices.ContainsFunc(n.Inputs, func(id int) bool { return id >= 0 && g.Graph.Values[id].Scratch })
}

// infer sets the shapes of the outputs, or marks the task dynamic. Constant values that a shape
// depends on are computed.
func (g *Graph) infer(t *Task) error {
	err := Guard(func() error { return t.Def.InferOutputs(&t.Call) })
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
		err = Guard(func() error { return t.Def.InferOutputs(&t.Call) })
	}
	if errors.Is(err, op.ErrDynamic) {
		t.Dynamic, err = true, nil
	}
	return err
}

// check is [Check], without memory for a model that never runs.
func (g *Graph) check(c *op.Call) error {
	if !g.opts.Static {
		return Check(c)
	}
	free := *c
	free.Limit = 0
	return Check(&free)
}

// Check verifies that outputs have types and that their shapes fit into memory.
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

// StateOf returns the state of a node whose planning fails with err.
func StateOf(err error) State {
	if errors.Is(err, op.ErrUnsupported) {
		return Unsupported
	}
	return Failed
}

// inputs connects the task to its input values and reports whether all are fixed.
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

// newTensor returns an empty tensor; tensors are allocated in batches.
func (g *Graph) newTensor() *tensor.Tensor {
	if len(g.tensors) == 0 {
		g.tensors = make([]tensor.Tensor, min(len(g.Tasks), 32))
	}
	x := &g.tensors[0]
	g.tensors = g.tensors[1:]
	return x
}

// outputs gives the task fresh tensors for its outputs.
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
				// Readers keep their pointer when the value is computed anew.
				if x = g.Values[id]; x == nil || v.Const != nil {
					x = g.newTensor()
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
		// A body of another graph reads no values of this one.
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

// Bodies lists the graphs that a node runs, sorted by attribute name.
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

// MarkFailed records why a task does not run and updates the tasks that depend on it: its outputs
// have the shapes that the file declares, or are never computed.
func (g *Graph) MarkFailed(i int, s State, err error) {
	g.markFailed(i, s, err)
	g.propagate(i)
}

// propagate infers the readers of the outputs of task i.
func (g *Graph) propagate(i int) {
	for _, id := range g.Tasks[i].Node.Outputs {
		if id >= 0 {
			g.dirty[id] = true
		}
	}
	g.InferAll()
}

// substituteLimit bounds a placeholder tensor, in bytes: its shape comes from the file alone and
// nothing has verified it.
const substituteLimit = 1 << 30

func (g *Graph) markFailed(i int, s State, err error) {
	t := &g.Tasks[i]
	t.State, t.Err, t.Dynamic, t.Ready = s, err, false, false
	if g.malformed == nil && errors.Is(err, op.ErrMalformed) {
		g.malformed = &MalformedError{Graph: g.File.Index, Node: g.File.Nodes[i], Err: err}
	}
	for k, id := range t.Node.Outputs {
		if id < 0 || k >= len(t.Call.Out) || g.Graph.Values[id].Variable {
			continue
		}
		v := g.Graph.Values[id]
		g.Fixed[id] = false
		n, err := tensor.CheckShape(v.Type, v.Shape)
		if err == nil && v.HasShape && v.Type.Bytes(n) <= substituteLimit && v.Type != tensor.Invalid && g.Reserve(v.Type.Bytes(n)) == nil {
			*t.Call.Out[k] = tensor.Tensor{Type: v.Type, Shape: v.Shape, Quant: v.Quant, Elem: v.Elem}
		} else {
			g.Values[id] = nil
		}
	}
}

// Reserve records that the graph takes n more bytes, and fails with an [op.LimitError] when the
// total exceeds the limit.
func (g *Graph) Reserve(n int) error {
	if limit := g.opts.MaxBytes; limit > 0 && g.Reserved+n > limit {
		return &op.LimitError{Want: g.opts.HeldBytes + g.Reserved + n, Limit: g.opts.HeldBytes + limit}
	}
	g.Reserved += n
	return nil
}

// Guard converts a panic in an operator into an error. Elements of an unexpected type are a
// combination of types that the operator does not support. A fault in a mapped file is passed on:
// it ends all work with the model, and [mapped.Guard] handles it.
func Guard(fn func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = Panicked(e)
		}
	}()
	return fn()
}

// Panicked converts the value that an operator panicked with into an error. It panics again for
// faults in mapped files.
func Panicked(e any) error {
	if mapped.Fault(e) != nil {
		panic(e)
	}
	if err, ok := e.(*op.LimitError); ok {
		return err
	}
	if err, ok := e.(error); ok && (errors.Is(err, op.ErrPlanned) || errors.Is(err, workers.ErrStopped)) {
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
