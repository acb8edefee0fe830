package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Limits of counting the iterations of a loop by computing its condition.
const (
	maxTripWork  = 200_000 // nodes computed for all loops of a plan: a fraction of a second
	maxTripNodes = 256     // nodes that a condition depends on
	maxTripBytes = 4096    // size of a value that a condition depends on
)

// calls says how often one execution of a task runs each of its graphs, as far as constants,
// shapes and the counters of loops determine it.
func (g *Graph) calls(t *Task, n *graph.Node) []count.Calls {
	if len(Bodies(n)) == 0 {
		return nil
	}
	in := g.describeAll(n.Inputs)
	if g.bodies != nil {
		for k, id := range n.Inputs {
			if x := g.element(id, 0); x != nil {
				in[k] = x
			}
		}
	}
	calls := count.Bodies(g.model, n, in, g.describeAll(n.Outputs))
	trips, ok := g.trips(t, n, in)
	if !ok {
		return calls
	}
	for i := range calls {
		v := trips
		if r, is := n.Attrs.Graph("cond_subgraph_index"); is && r == calls[i].Graph {
			v++ // the condition is also computed after the last iteration
		}
		calls[i].Times = &v
	}
	return calls
}

// element returns a value that is the same in each run and each iteration, nil for others.
func (g *Graph) element(id, depth int) *tensor.Tensor {
	if id < 0 || id >= len(g.Values) || depth > maxDepth {
		return nil
	}
	if x := g.Values[id]; g.Fixed[id] && x != nil {
		if x.Type.IsContainer() || x.Bytes() > maxTripBytes || g.compute(id, g.opts.FoldBytes, 0) != nil || !x.Known() {
			return nil
		}
		return x
	}
	if g.Outer == nil {
		return nil
	}
	for _, c := range g.File.Captures {
		if c.Inner == id {
			return g.Outer.element(c.Outer, depth+1)
		}
	}
	if k := slices.Index(g.File.Inputs, id); k >= 0 {
		return g.Outer.element(g.argument(k), depth+1)
	}
	return nil
}

// argument returns the value of the enclosing graph that input k of this one always has. It is -1
// if another node may run the graph, or a loop may change the value.
func (g *Graph) argument(k int) int {
	var owner *graph.Node
	for _, f := range g.model.Graphs {
		for _, n := range f.Nodes {
			if len(n.Attrs) == 0 || !slices.Contains(Bodies(n), g.File.Index) {
				continue
			}
			if owner != nil || f.Index != g.Outer.File.Index {
				return -1
			}
			owner = n
		}
	}
	if owner == nil {
		return -1
	}
	body, kept := g.File, k // a loop keeps input k of its body if it is output kept
	switch owner.Op {
	case "CALL":
		return entry(owner.Inputs, k)
	case "IF", "STABLEHLO_CASE":
		return entry(owner.Inputs, k+1)
	case "WHILE", "STABLEHLO_WHILE":
		if r, ok := owner.Attrs.Graph("body_subgraph_index"); ok && r >= 0 && r < len(g.model.Graphs) {
			body = g.model.Graphs[r]
		}
	case "Loop":
		kept--
		if k < 2 {
			return -1
		}
	default:
		return -1
	}
	if k >= len(body.Inputs) || kept >= len(body.Outputs) || body.Outputs[kept] != body.Inputs[k] {
		return -1
	}
	return entry(owner.Inputs, k)
}

// entry returns an entry of a list of values, -1 beyond its end.
func entry(list []int, i int) int {
	if i < 0 || i >= len(list) {
		return -1
	}
	return list[i]
}

// trips returns how often one execution of a loop runs its body. in are the node's inputs, with
// elements where they are known.
func (g *Graph) trips(t *Task, n *graph.Node, in []*tensor.Tensor) (int64, bool) {
	if g.bodies == nil {
		return 0, false
	}
	l := &loop{work: &g.bodies.tripWork}
	plan := func(attr string) *cone {
		r, ok := n.Attrs.Graph(attr)
		if !ok {
			return nil
		}
		for _, p := range slices.Backward(t.ran) {
			if p.File.Index == r {
				return &cone{g: p, done: map[int]bool{}, values: map[int]*tensor.Tensor{}}
			}
		}
		return nil
	}
	switch n.Op {
	case "WHILE", "STABLEHLO_WHILE":
		l.cond, l.body, l.states = plan("cond_subgraph_index"), plan("body_subgraph_index"), in
		if l.cond == nil || l.body == nil || len(l.cond.g.File.Outputs) == 0 {
			return 0, false
		}
		return l.run(l.cond, l.cond.g.File.Outputs[0], func(k int) int { return k })
	case "Loop":
		l.most, l.limited = tripLimit(in)
		if len(in) < 2 || n.Inputs[1] < 0 { // the body's condition is ignored
			return l.most, l.limited
		}
		first, ok := truthOf(in[1])
		if ok && !first || l.limited && l.most == 0 {
			return 0, true
		}
		if l.body = plan("body"); !ok || l.body == nil || len(l.body.g.File.Outputs) == 0 || len(l.body.g.File.Inputs) < 2 {
			return 0, false
		}
		l.states = slices.Clone(in)
		l.states[0], l.states[1] = scalar(l.body.g.File, 0, tensor.Int64), scalar(l.body.g.File, 1, tensor.Bool)
		l.states[0].Alloc()
		l.states[1].Data = []byte{1}
		l.counts = true
		return l.run(l.body, l.body.g.File.Outputs[0], func(k int) int { return k - 1 })
	}
	return 0, false
}

// tripLimit returns the trip count of an ONNX Loop, if it is known.
func tripLimit(in []*tensor.Tensor) (int64, bool) {
	if len(in) == 0 || !in[0].Known() || in[0].Len() != 1 {
		return 0, false
	}
	v, err := op.Ints(in[0])
	if err != nil || len(v) != 1 {
		return 0, false
	}
	return max(0, int64(v[0])), true
}

// loop counts the iterations of a loop: it computes the condition, and of the body only what the
// condition of the next iteration depends on.
type loop struct {
	cond, body *cone
	states     []*tensor.Tensor // inputs of the body, nil or without elements if unknown
	counts     bool             // input 0 is the iteration, input 1 is true
	most       int64            // maximum number of iterations if limited
	limited    bool
	work       *int // nodes computed so far, for all loops of the plan
}

// run counts the iterations. The condition is value test of the graph at. Input k of the body is
// its output next(k) of the iteration before.
func (l *loop) run(at *cone, test int, next func(k int) int) (int64, bool) {
	if !at.need(test) {
		return 0, false
	}
	for more := true; more; { // until the inputs that are needed need no others
		more = false
		for _, k := range l.inputs() {
			if l.counts && k < 2 {
				continue
			}
			outs := l.body.g.File.Outputs
			if j := next(k); j < 0 || j >= len(outs) {
				return 0, false
			} else if before := len(l.body.reads); !l.body.need(outs[j]) {
				return 0, false
			} else if len(l.body.reads) > before {
				more = true
			}
		}
	}
	reads := l.inputs()
	for _, k := range reads {
		if k >= len(l.states) || !l.states[k].Known() || l.states[k].Bytes() > maxTripBytes {
			return 0, false
		}
	}
	if l.counts && len(l.body.steps) == 0 && len(reads) == 0 { // a constant condition
		return l.constant(test)
	}
	return l.count(at, test, reads, next)
}

// inputs lists the inputs of the body that the condition depends on.
func (l *loop) inputs() []int {
	reads := slices.Clone(l.body.reads)
	if l.cond != nil {
		reads = append(reads, l.cond.reads...)
	}
	slices.Sort(reads)
	return slices.Compact(reads)
}

// constant counts the iterations of a body with a constant condition.
func (l *loop) constant(test int) (int64, bool) {
	switch yes, ok := truthOf(l.body.values[test]); {
	case !ok:
		return 0, false
	case !yes:
		return 1, true
	}
	return l.most, l.limited
}

func (l *loop) count(at *cone, test int, reads []int, next func(k int) int) (int64, bool) {
	if l.counts && slices.Equal(reads, []int{1}) && len(l.body.steps) == 0 { // true stays true
		return l.most, l.limited
	}
	states := slices.Clone(l.states)
	for n := int64(0); ; n++ {
		if l.limited && n >= l.most {
			return n, true
		}
		if *l.work++; *l.work > maxTripWork {
			return 0, false
		}
		if l.counts {
			states[0] = tensor.From(tensor.Int64, l.states[0].Shape, []int64{n})
		}
		if l.cond != nil {
			if !l.cond.compute(states, l.work) {
				return 0, false
			}
			if yes, ok := truthOf(l.cond.values[test]); !ok || !yes {
				return n, ok
			}
		}
		if !l.body.compute(states, l.work) {
			return 0, false
		}
		if at == l.body {
			if yes, ok := truthOf(l.body.values[test]); !ok || !yes {
				return n + 1, ok
			}
		}
		was := slices.Clone(states)
		for _, k := range reads {
			if l.counts && k < 2 {
				continue
			}
			x := l.body.values[l.body.g.File.Outputs[next(k)]]
			if x == nil || x.Bytes() > maxTripBytes {
				return 0, false
			}
			was[k] = x.Clone()
		}
		states = was
	}
}

func truthOf(x *tensor.Tensor) (yes, ok bool) {
	if !x.Known() || x.Type != tensor.Bool || len(x.Data) != 1 {
		return false, false
	}
	return x.Data[0] != 0, true
}

// cone is the part of a planned graph that some of its values depend on.
type cone struct {
	g      *Graph
	done   map[int]bool // by value
	reads  []int        // inputs of the graph
	steps  []int        // nodes, in order
	values map[int]*tensor.Tensor
}

// need adds a value. It fails if the value depends on anything but small inputs and constants, or
// on operators that do more than compute their outputs.
func (c *cone) need(id int) bool {
	if id < 0 || id >= len(c.g.File.Values) {
		return false
	}
	if c.done[id] {
		return true
	}
	c.done[id] = true
	if x := c.g.element(id, 0); x != nil {
		c.values[id] = x
		return true
	}
	if k := slices.Index(c.g.File.Inputs, id); k >= 0 {
		c.reads = append(c.reads, k)
		return true
	}
	i := slices.IndexFunc(c.g.File.Nodes, func(n *graph.Node) bool { return slices.Contains(n.Outputs, id) })
	if i < 0 || len(c.steps) == maxTripNodes {
		return false
	}
	n := c.g.File.Nodes[i]
	d := c.def(n)
	if d == nil || d.Stateful || len(Bodies(n)) > 0 {
		return false
	}
	if !slices.Contains(c.steps, i) {
		c.steps = append(c.steps, i)
		slices.Sort(c.steps)
	}
	for _, in := range n.Inputs {
		if in >= 0 && !c.need(in) {
			return false
		}
	}
	return true
}

func (c *cone) def(n *graph.Node) *op.Def {
	if !c.g.mayName(n.Domain) {
		return nil
	}
	return c.g.opts.Registry.Find(n.Domain, n.Op, n.Version)
}

// compute computes all values for inputs of the graph.
func (c *cone) compute(in []*tensor.Tensor, work *int) bool {
	for _, k := range c.reads {
		c.values[c.g.File.Inputs[k]] = in[k]
	}
	for _, i := range c.steps {
		if *work++; *work > maxTripWork || !c.step(c.g.File.Nodes[i]) {
			return false
		}
	}
	return true
}

// step computes one node.
func (c *cone) step(n *graph.Node) bool {
	t := &op.Call{Model: c.g.model, Graph: c.g.File, Node: n, Limit: maxTripBytes, Fixed: make([]bool, len(n.Inputs))}
	for _, id := range n.Inputs {
		var x *tensor.Tensor
		if id >= 0 {
			if x = c.values[id]; !x.Known() {
				return false
			}
		}
		t.In = append(t.In, x)
	}
	for _, id := range n.Outputs {
		var x *tensor.Tensor
		if id >= 0 {
			v := c.g.File.Values[id]
			if v.Variable {
				return false
			}
			x = &tensor.Tensor{Type: v.Type, Quant: v.Quant, Elem: v.Elem}
			c.values[id] = x
		}
		t.Out = append(t.Out, x)
	}
	d := c.def(n)
	return Guard(func() error {
		if err := c.g.opts.Registry.Check(n, t.In, t.Out); err != nil {
			return err
		}
		if err := d.Infer(t); err != nil {
			return err
		}
		if outBytes(t) > maxTripBytes {
			return errTooLarge
		}
		if err := c.g.opts.Registry.Check(n, t.In, t.Out); err != nil {
			return err
		}
		c.g.Bind(t)
		run, err := d.Prepare(t)
		if err != nil {
			return err
		}
		for _, x := range t.Out {
			if x != nil {
				x.Alloc()
			}
		}
		return run(t)
	}) == nil
}
