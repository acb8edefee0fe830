package engine

import (
	"time"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// The memory of a session is bounded as a whole: what its plans take, what steps make
// whose sizes only a run can tell, and what loops collect.

// manyTurns is the number of turns in an inference from which on even loops with a
// known end are looked at: nested ones multiply.
const manyTurns = 1_000_000

// maxCollected bounds what loops without a known end may collect, in bytes. How much
// that becomes is nobody's plan.
const maxCollected = 256 << 20

// Turn implements op.Env.
func (f *frame) Turn(began time.Time, bounded bool) error {
	s := f.s
	s.turns++
	if f.stopped() {
		return errStopped
	}
	calls := began.IsZero()
	if calls {
		began = s.began
	}
	// Each that was taken for endless halves the time of the next: a model of many
	// ends, too.
	limit := s.opts.MaxLoop >> s.endless
	if s.opts.MaxLoop <= 0 || bounded && s.turns <= manyTurns || time.Since(began) <= limit {
		return nil
	}
	s.endless++
	return &op.LoopError{Limit: limit, Calls: calls}
}

// Hold implements op.Env.
func (f *frame) Hold(n int, bounded bool) error {
	s := f.s
	s.held += n
	if !bounded {
		s.collected += n
		if n > 0 && s.collected > maxCollected {
			return &op.LimitError{Want: s.collected, Limit: maxCollected}
		}
	}
	if n > 0 {
		return s.affords(0)
	}
	return nil
}

// affords fails when n bytes more than are held are beyond the limit.
func (s *Session) affords(n int) error {
	if limit := s.opts.MaxBytes; limit > 0 && s.held+n > limit {
		return &op.LimitError{Want: s.held + n, Limit: limit}
	}
	return nil
}

// free is the memory that is left, as a limit: 0 where there is none.
func (s *Session) free() int {
	if s.opts.MaxBytes <= 0 {
		return 0
	}
	return max(1, s.opts.MaxBytes-s.held)
}

// weighs reports whether a step makes values that have no place in the plan of memory.
func weighs(st *step) bool {
	if st.Dynamic {
		return true
	}
	for _, t := range st.Call.Out {
		if t != nil && (t.Type == tensor.String || t.Type.IsContainer()) {
			return true
		}
	}
	return false
}

// leave gives back what a step made in its last run: it is about to be made anew.
func (f *frame) leave(st *step) {
	f.s.held -= st.weight
	st.weight = 0
	if limit := f.s.free(); limit > 0 {
		st.Call.Limit = limit
	}
}

// weigh notes what a step made.
func (f *frame) weigh(st *step) error {
	n := 0
	for i, t := range st.Call.Out {
		if t == nil || f.g.Values[st.Call.Node.Outputs[i]].Variable {
			continue
		}
		if !st.Dynamic && t.Type != tensor.String && !t.Type.IsContainer() {
			continue // it has its place
		}
		n += t.Beyond(st.Call.In...)
	}
	st.weight = n
	return f.Hold(n, true)
}

// holds is what a frame and those of its bodies hold.
func (f *frame) holds() int {
	n := f.spent
	for i := range f.steps {
		n += f.steps[i].weight
	}
	for _, b := range f.body {
		for _, g := range b.inner {
			n += g.holds()
		}
	}
	return n
}
