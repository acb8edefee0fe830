package external

import (
	"context"
	"slices"
	"sync"
)

// Turns lets several measurements take turns: one at a time, those that wait longest first. The
// zero value is ready.
type Turns struct {
	mu      sync.Mutex
	holder  *Turn
	waiting []*Turn
}

// Turn is one measurement among others. It is for one goroutine at a time.
type Turn struct {
	t    *Turns
	wake chan struct{}
}

// Join adds a measurement.
func (t *Turns) Join() *Turn { return &Turn{t: t, wake: make(chan struct{}, 1)} }

// Wait ends the turn that is held, if any, and waits for the next one.
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

// Leave gives up the turn and the place among those who wait.
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

// next gives the turn to the first who waits. It is called with the lock held.
func (t *Turns) next() {
	if t.holder != nil || len(t.waiting) == 0 {
		return
	}
	t.holder, t.waiting = t.waiting[0], t.waiting[1:]
	t.holder.wake <- struct{}{}
}
