package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// State says how a node is computed.
type State uint8

// States of a node after planning.
const (
	Runs        State = iota // computed in every run
	Folded                   // computed at most once: all inputs are constant
	Fused                    // computed as part of another node
	Unsupported              // no operator for it, or not for these types or options
	Skipped                  // an input could not be computed
	Failed                   // the node does not match its inputs
)

// String returns the state in lower case.
func (s State) String() string {
	return [...]string{"runs", "folded", "fused", "unsupported", "skipped", "failed"}[s]
}

// Step describes one node of a planned graph.
type Step struct {
	Graph int
	Node  *graph.Node // the file's node
	// Runs is the node that is computed in its place: Node itself unless a pass has changed it,
	// nil if it does not run.
	Runs *graph.Node
	// In and Out follow the inputs and outputs of Node and have types and shapes, with -1 for
	// unknown dimensions. An entry is nil if it is absent or unknown. Shapes that are known only
	// at run time are those of the engine's last run.
	In, Out []*tensor.Tensor
	State   State
	// Into is the index of the node that computes this one when State is Fused, -1 otherwise.
	Into int
	// Fused lists the indices of the nodes that are fused into this one.
	Fused []int
	Err   error // reason why the node does not run, nil if it runs
	// Calls says how often one execution of Node runs each graph that its attributes refer to.
	Calls []count.Calls
	// Kernel is the chosen kernel and Scratch its scratch memory in bytes. They are set only in a
	// plan that was prepared to run.
	Kernel  string
	Scratch int
	// Computes is the element type of the first operand of Runs if it differs from that of Node,
	// Invalid otherwise.
	Computes tensor.Type
}

// Steps describes the graph, one entry per node of the file, in order.
func (g *Graph) Steps() []Step {
	out := make([]Step, len(g.Tasks))
	d := describer{g: g, one: make([]*tensor.Tensor, len(g.Values))}
	for i := range g.Tasks {
		t := &g.Tasks[i]
		n := g.File.Nodes[i]
		s := Step{Graph: g.File.Index, Node: n, State: t.State, Err: t.Err, Into: -1, Fused: out[i].Fused}
		switch t.State {
		case Runs, Folded:
			s.Runs = t.Node
		case Fused:
			s.Into = t.Into
			for g.Tasks[s.Into].State == Fused { // fused tasks refer to their direct parent
				s.Into = g.Tasks[s.Into].Into
			}
			out[s.Into].Fused = append(out[s.Into].Fused, i)
		}
		s.In, s.Out = d.all(n.Inputs), d.all(n.Outputs)
		s.Calls = g.calls(t, n)
		if t.State == Runs && t.Node != n && len(t.Node.Inputs) > 0 && len(s.In) > 0 && s.In[0] != nil {
			if x := g.describeAll(t.Node.Inputs[:1])[0]; x != nil && x.Type != s.In[0].Type {
				s.Computes = x.Type
			}
		}
		out[i] = s
	}
	g.inferFused(out)
	return out
}

// inferFused infers the values between fused nodes of which nothing is known: where shapes are
// known only at run time, no node computes these values.
func (g *Graph) inferFused(steps []Step) {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.State == Fused }) {
		return
	}
	made := map[int]*tensor.Tensor{}
	for i := range steps {
		s := &steps[i]
		for k, id := range s.Node.Inputs {
			if x := made[id]; x != nil && !known(s.In[k]) {
				s.In[k] = x
			}
		}
		if s.State != Runs && s.State != Fused || !slices.ContainsFunc(s.Out, func(t *tensor.Tensor) bool { return !known(t) }) {
			continue
		}
		for k, t := range g.inferNode(s) {
			if id := s.Node.Outputs[k]; id >= 0 && known(t) && !known(s.Out[k]) {
				s.Out[k], made[id] = t, t
			}
		}
	}
}

// inferNode infers the outputs of a node of the file from the types and shapes of its inputs, nil
// if that is not possible.
func (g *Graph) inferNode(s *Step) []*tensor.Tensor {
	n := s.Node
	if !g.mayName(n.Domain) {
		return nil
	}
	d := g.opts.Registry.Find(n.Domain, n.Op, n.Version)
	if d == nil {
		return nil
	}
	c := &op.Call{Model: g.model, Graph: g.File, Node: n, Limit: g.opts.MaxBytes}
	for k, id := range n.Inputs {
		x := s.In[k]
		if id >= 0 {
			if !known(x) {
				return nil
			}
			if v := g.File.Values[id]; v.Const != nil && !v.Variable {
				x = v.Const
			}
		}
		c.In = append(c.In, x)
	}
	for _, id := range n.Outputs {
		var x *tensor.Tensor
		if id >= 0 {
			v := g.File.Values[id]
			x = &tensor.Tensor{Type: v.Type, Quant: v.Quant, Elem: v.Elem}
		}
		c.Out = append(c.Out, x)
	}
	if Guard(func() error { return d.Infer(c) }) != nil {
		return nil
	}
	return c.Out
}

// describer describes values of a graph, each once: a graph may have a million of them.
type describer struct {
	g    *Graph
	one  []*tensor.Tensor // by value id
	rest []*tensor.Tensor // memory of lists
}

func (d *describer) all(ids []int) []*tensor.Tensor {
	if len(ids) == 0 {
		return nil
	}
	if len(ids) > cap(d.rest)-len(d.rest) {
		d.rest = make([]*tensor.Tensor, 0, max(len(ids), min(1024, 2*len(d.g.Tasks))))
	}
	at := len(d.rest)
	for _, id := range ids {
		d.rest = append(d.rest, d.of(id))
	}
	return d.rest[at:len(d.rest):len(d.rest)]
}

func (d *describer) of(id int) *tensor.Tensor {
	if id < 0 {
		return nil
	}
	if d.one[id] == nil {
		d.one[id] = d.g.describe(id)
	}
	return d.one[id]
}

func (g *Graph) describeAll(ids []int) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, id := range ids {
		out = append(out, g.describe(id))
	}
	return out
}

// describe describes a value, nil for an unknown one.
func (g *Graph) describe(id int) *tensor.Tensor {
	if id < 0 {
		return nil
	}
	if t := g.Values[id]; t != nil && t.Type != tensor.Invalid {
		return describe(t)
	}
	return describe(g.claims[id])
}

// describe copies type and shape without the elements.
func describe(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return &tensor.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape), Elem: t.Elem, Quant: t.Quant}
}
