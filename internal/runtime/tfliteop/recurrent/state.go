package recurrent

import (
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// state is an input that a layer carries from step to step. Variables of the graph keep it from
// run to run. If the file gives an ordinary tensor, the layer works on a copy, because inputs
// must not be written.
type state[T tensor.Number] struct {
	input int
	copy  []T
}

func newState[T tensor.Number](c *op.Call, input int) *state[T] {
	s := &state[T]{input: input}
	if id := c.Node.Inputs[input]; !c.Graph.Values[id].Variable {
		s.copy = make([]T, c.In[input].Len())
	}
	return s
}

// begin returns the elements at the start of a run.
func (s *state[T]) begin(c *op.Call) []T {
	v := tensor.Of[T](c.In[s.input])
	if s.copy == nil {
		return v
	}
	copy(s.copy, v)
	return s.copy
}
