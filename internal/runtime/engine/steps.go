package engine

import (
	"cmp"

	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// StepState says how a node is computed.
type StepState = plan.State

// States of a node after planning.
const (
	Runs        = plan.Runs
	Folded      = plan.Folded
	Fused       = plan.Fused
	Unsupported = plan.Unsupported
	Skipped     = plan.Skipped
	Failed      = plan.Failed
)

// Step describes one node of the plan, with the chosen kernel.
type Step = plan.Step

// Steps describes the plan of the main graph, one entry per node, in order.
func (s *Session) Steps() []Step { return s.main.describe() }

// BodySteps describes the latest plan of a nested graph, nil when it never ran.
func (s *Session) BodySteps(graph int) []Step {
	if graph <= 0 || graph >= len(s.frames) || s.frames[graph] == nil {
		return nil
	}
	return s.frames[graph].describe()
}

// GraphSteps is Steps for the main graph and BodySteps for others, as [plan.List] requires.
func (s *Session) GraphSteps(graph int) []Step {
	if graph == 0 {
		return s.Steps()
	}
	return s.BodySteps(graph)
}

func (f *frame) describe() []Step {
	out := f.p.Steps()
	for i := range out {
		st := &f.steps[i]
		if st.State == plan.Runs || st.State == plan.Folded {
			out[i].Kernel = cmp.Or(st.Call.Kernel, "plain")
			out[i].Computes = cmp.Or(st.Call.Computes, out[i].Computes)
		}
		out[i].Scratch = st.Call.ScratchBytes()
	}
	return out
}

// Tasks lists the prepared steps of the main graph, in order, for code generators. They belong to
// the session and must not be changed.
func (s *Session) Tasks() []*plan.Task {
	out := make([]*plan.Task, len(s.main.steps))
	for i := range s.main.steps {
		out[i] = s.main.steps[i].Task
	}
	return out
}
