package external

import (
	"context"
	"slices"
	"sync"
)

// Interleaver interleaves several measurements: one runs at a time, the longest waiting first. The
// zero value is ready to use.
type Interleaver struct {
	mu      sync.Mutex
	holder  *Turn
	waiting []*Turn
}

// Turn is one of several interleaved measurements. One goroutine at a time may use it.
type Turn struct {
	t    *Interleaver
	wake chan struct{}
}

// Join adds a measurement.
func (t *Interleaver) Join() *Turn { return &Turn{t: t, wake: make(chan struct{}, 1)} }

// Wait ends the current turn, if any, and waits for the next one.
func (t *Turn) Wait(ctx context.Context) error {
	s := t.t
	s.mu.Lock()
	if s.holder == t {
		s.holder = nil
	}
	s.waiting = append(s.waiting, t)
	s.next()
	s.mu.Unlock()
	select {
	case <-t.wake:
		return nil
	case <-ctx.Done():
		t.Leave()
		return ctx.Err()
	}
}

// Leave gives up the turn and the place in the queue.
func (t *Turn) Leave() {
	s := t.t
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *Turn) bool { return w == t })
	if s.holder == t {
		s.holder = nil
	}
	s.next()
}

// next gives the turn to the first in the queue. The lock must be held.
func (t *Interleaver) next() {
	if t.holder != nil || len(t.waiting) == 0 {
		return
	}
	t.holder, t.waiting = t.waiting[0], t.waiting[1:]
	t.holder.wake <- struct{}{}
}
