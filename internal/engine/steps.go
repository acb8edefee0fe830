package engine

import (
	"cmp"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/tensor"
)

// StepState tells what becomes of a node.
type StepState uint8

// States of a node after planning.
const (
	Runs        StepState = iota // computed in every run
	Folded                       // computed once while planning: all inputs are constant
	Fused                        // computed by an earlier node
	Unsupported                  // the engine lacks the operator or this use of it
	Skipped                      // an input could not be computed
	Failed                       // the node contradicts its inputs
)

// String returns the state in lower case.
func (s StepState) String() string {
	return [...]string{"runs", "folded", "fused", "unsupported", "skipped", "failed"}[s]
}

// Step describes one node of the plan.
type Step struct {
	Graph int
	Node  *graph.Node
	// In and Out have types and, where known, shapes; nil where absent. The shapes
	// of values that are known only at run time are those of the last run.
	In, Out []*tensor.Tensor
	State   StepState
	// Into is the index of the node that computes this one when State is Fused.
	Into int
	// Fused lists the indices of the nodes that this one computes too.
	Fused   []int
	Err     error  // why the node does not run, nil when it does
	Kernel  string // way of computing that was chosen, "" when none runs
	Scratch int    // scratch memory, bytes
}

// Steps describes the plan of the main graph, one entry a node, in order.
func (s *Session) Steps() []Step { return s.main.describe() }

// BodySteps describes the latest plan of a nested graph, nil when it never ran.
func (s *Session) BodySteps(graph int) []Step {
	if graph <= 0 || graph >= len(s.frames) || s.frames[graph] == nil {
		return nil
	}
	return s.frames[graph].describe()
}

func (f *frame) describe() []Step {
	out := make([]Step, len(f.steps))
	for i := range f.steps {
		st := &f.steps[i]
		n := f.g.Nodes[i]
		d := Step{Graph: f.g.Index, Node: n, State: st.state, Err: st.err, Into: -1, Scratch: st.call.ScratchBytes()}
		if st.state == Runs || st.state == Folded {
			d.Kernel = cmp.Or(st.call.Kernel, "plain")
		}
		for _, id := range n.Inputs {
			d.In = append(d.In, f.shapeOf(id))
		}
		for _, id := range n.Outputs {
			d.Out = append(d.Out, f.shapeOf(id))
		}
		for _, m := range st.fused {
			d.Fused = append(d.Fused, m.Index)
		}
		out[i] = d
	}
	for i, d := range out {
		for _, j := range d.Fused {
			out[j].Into = i
			// The value between the two is never made; the activation keeps its shape.
			for k, id := range f.g.Nodes[i].Outputs {
				if id >= 0 && f.vals[id] == nil && len(out[j].Out) > 0 {
					out[i].Out[k] = out[j].Out[0]
				}
			}
			if len(out[j].In) > 0 && out[j].In[0] == nil && len(out[j].Out) > 0 {
				out[j].In[0] = out[j].Out[0]
			}
		}
	}
	return out
}

func (f *frame) shapeOf(id int) *tensor.Tensor {
	if id < 0 {
		return nil
	}
	if t := f.vals[id]; t != nil && t.Type != tensor.Invalid {
		return describe(t)
	}
	return nil
}
