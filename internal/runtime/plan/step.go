package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// State tells what becomes of a node.
type State uint8

// States of a node after planning.
const (
	Runs        State = iota // computed in every run
	Folded                   // computed once at most: all inputs are constant
	Fused                    // computed by another node
	Unsupported              // there is no operator for it, or not for this use
	Skipped                  // an input could not be computed
	Failed                   // the node contradicts its inputs
)

// String returns the state in lower case.
func (s State) String() string {
	return [...]string{"runs", "folded", "fused", "unsupported", "skipped", "failed"}[s]
}

// Step describes one node of a planned graph.
type Step struct {
	Graph int
	Node  *graph.Node // the node of the file
	// Runs is the node that is computed in its place: Node itself where no pass
	// has changed it, nil where it does not run.
	Runs *graph.Node
	// In and Out follow the inputs and outputs of Node and have types and shapes,
	// dimensions that are not known -1; nil where an entry is absent or nothing is
	// known of it. After a run of the engine the shapes of values that are known
	// only then are those of the last run.
	In, Out []*tensor.Tensor
	State   State
	// Into is the index of the node that computes this one when State is Fused, -1
	// otherwise.
	Into int
	// Fused lists the indices of the nodes that this one computes too.
	Fused []int
	Err   error // why the node does not run, nil when it does
	// Kernel is the way of computing that was chosen and Scratch its working memory
	// in bytes. Only a plan that was prepared to run has them.
	Kernel  string
	Scratch int
	// Computes is the element type of the first operand of Runs where it is another one than that of Node, Invalid otherwise.
	Computes tensor.Type
}

// Steps describes the graph, one entry a node of the file, in order.
func (g *Graph) Steps() []Step {
	out := make([]Step, len(g.Tasks))
	for i := range g.Tasks {
		t := &g.Tasks[i]
		n := g.File.Nodes[i]
		s := Step{Graph: g.File.Index, Node: n, State: t.State, Err: t.Err, Into: -1, Fused: out[i].Fused}
		switch t.State {
		case Runs, Folded:
			s.Runs = t.Node
		case Fused:
			s.Into = t.Into
			for g.Tasks[s.Into].State == Fused { // tasks keep the way by which they came there
				s.Into = g.Tasks[s.Into].Into
			}
			out[s.Into].Fused = append(out[s.Into].Fused, i)
		}
		s.In, s.Out = g.seen(n.Inputs), g.seen(n.Outputs)
		if t.State == Runs && t.Node != n && len(t.Node.Inputs) > 0 && len(s.In) > 0 && s.In[0] != nil {
			if x := g.seen(t.Node.Inputs[:1])[0]; x != nil && x.Type != s.In[0].Type {
				s.Computes = x.Type
			}
		}
		out[i] = s
	}
	return out
}

func (g *Graph) seen(ids []int) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, id := range ids {
		var t *tensor.Tensor
		if id >= 0 {
			if t = g.Values[id]; t != nil && t.Type != tensor.Invalid {
				t = describe(t)
			} else {
				t = describe(g.claims[id])
			}
		}
		out = append(out, t)
	}
	return out
}

// describe copies type and shape without the elements.
func describe(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return &tensor.Tensor{Type: t.Type, Shape: slices.Clone(t.Shape), Elem: t.Elem, Quant: t.Quant}
}
