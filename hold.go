package opmeter

import (
	"context"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/source"
)

// hold keeps a model's file mapped while anything reads it: work that does not end
// when it is told to may outlive the call that asked for it.
type hold struct {
	mu     sync.Mutex
	users  int
	closed bool
	g      *graph.Model
}

func (h *hold) take() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
}

// give is the end of what take began.
func (h *hold) give() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users--; h.closed {
		_ = h.release() // whoever closed the model has gone on
	}
}

// close releases the file, now or after its last reader.
func (h *hold) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.release()
}

// release is called with the lock held.
func (h *hold) release() error {
	if h.users > 0 || h.g.Close == nil {
		return nil
	}
	end := h.g.Close
	h.g.Close = nil
	return end()
}

// reading calls fn, which reads the model's constants or computes with them. A file
// that changed meanwhile makes everything that was read of it doubtful: that error has
// precedence.
func (m *Model) reading(fn func() error) error {
	m.hold.take()
	defer m.hold.give()
	err := mapped.Guard(fn)
	if m.g.Check != nil {
		if changed := m.g.Check(); changed != nil {
			return changed
		}
	}
	return err
}

// reader is a source that reads the model's constants.
type reader struct {
	source.Source
	m *Model
}

// Run implements [source.Source].
func (r reader) Run(ctx context.Context, to source.Sink) error {
	return r.m.reading(func() error { return r.Source.Run(ctx, to) })
}

// Patience is how long the source takes to end: see [source.Patient].
func (r reader) Patience() time.Duration {
	if p, ok := r.Source.(source.Patient); ok {
		return p.Patience()
	}
	return source.Patience
}
