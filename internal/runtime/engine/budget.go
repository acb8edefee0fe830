package engine

import (
	"time"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// The memory of a session is bounded as a whole: what its plans reserve, outputs whose sizes are
// known only at run time, and what loops collect.

// manyIterations is the number of loop iterations in an inference from which on loops with a
// known end are checked too, because nested loops multiply.
const manyIterations = 1_000_000

// maxCollected bounds what loops without a known end may collect, in bytes: no plan knows how
// much that becomes.
const maxCollected = 256 << 20

// Turn implements op.Env.
func (f *frame) Turn(began time.Time, bounded bool) error {
	s := f.s
	s.iterations++
	if f.stopped() {
		return errStopped
	}
	calls := began.IsZero()
	if calls {
		began = s.began
	}
	// Each loop that is considered endless halves the time limit of the next, so that a model
	// with many of them ends too.
	limit := s.opts.MaxLoop >> s.endless
	if s.opts.MaxLoop <= 0 || bounded && s.iterations <= manyIterations || time.Since(began) <= limit {
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
		return s.checkHeld(0)
	}
	return nil
}

// checkHeld fails when n more bytes would exceed the limit.
func (s *Session) checkHeld(n int) error {
	if limit := s.opts.MaxBytes; limit > 0 && s.held+n > limit {
		return &op.LimitError{Want: s.held + n, Limit: limit}
	}
	return nil
}

// freeBytes returns the remaining memory as a limit: 0 if it is unlimited.
func (s *Session) freeBytes() int {
	if s.opts.MaxBytes <= 0 {
		return 0
	}
	return max(1, s.opts.MaxBytes-s.held)
}

// hasUnplannedOutputs reports whether a step has outputs that the memory plan does not place.
func hasUnplannedOutputs(st *step) bool {
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

// releaseUnplanned releases the outputs of a step's last run before it runs again.
func (f *frame) releaseUnplanned(st *step) {
	f.s.held -= st.unplannedBytes
	st.unplannedBytes = 0
	if limit := f.s.freeBytes(); limit > 0 {
		st.Call.Limit, st.Call.Held = limit, f.s.held
	}
}

// countUnplanned records the size of a step's outputs.
func (f *frame) countUnplanned(st *step) error {
	n := 0
	for i, t := range st.Call.Out {
		if t == nil || f.g.Values[st.Call.Node.Outputs[i]].Variable {
			continue
		}
		if !st.Dynamic && t.Type != tensor.String && !t.Type.IsContainer() || f.inputOf(st.Call.Node.Outputs[i]) != nil {
			continue // the memory plan places it, or it is in that of an input
		}
		n += t.Beyond(st.Call.In...)
	}
	st.unplannedBytes = n
	return f.Hold(n, true)
}

// heldBytes returns the bytes that a frame and its bodies hold.
func (f *frame) heldBytes() int {
	n := f.spent
	for i := range f.steps {
		n += f.steps[i].unplannedBytes
	}
	for _, b := range f.body {
		for _, g := range b.inner {
			n += g.heldBytes()
		}
	}
	return n
}
