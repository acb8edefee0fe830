package external

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestInterleaved: one at a time, and who has waited longest is next.
func TestInterleaved(t *testing.T) {
	t.Parallel()
	var s Interleaver
	var all sync.WaitGroup
	var mu sync.Mutex
	holders, counts := 0, [3]int{}
	for i := range counts {
		turn := s.Join()
		all.Go(func() {
			defer turn.Leave()
			for range 50 {
				if err := turn.Wait(t.Context()); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if holders++; holders != 1 {
					t.Errorf("%d hold the turn", holders)
				}
				counts[i]++
				mu.Unlock()
				time.Sleep(time.Microsecond)
				mu.Lock()
				holders--
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if counts != [3]int{50, 50, 50} {
		t.Errorf("turns: %v", counts)
	}
	// In the order in which they asked, whatever comes of those between.
	a, b, c := s.Join(), s.Join(), s.Join()
	if err := a.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	asked := func(n int) {
		for waiting := 0; waiting < n; time.Sleep(time.Millisecond) {
			s.mu.Lock()
			waiting = len(s.waiting)
			s.mu.Unlock()
		}
	}
	go func() { left <- b.Wait(ctx) }()
	asked(1)
	got := make(chan error, 1)
	go func() { got <- c.Wait(t.Context()) }()
	asked(2)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("one that gave up: %v", err)
	}
	a.Leave()
	if err := <-got; err != nil {
		t.Error(err)
	}
	c.Leave()
	if s.holder != nil || len(s.waiting) != 0 {
		t.Errorf("left over: %v, %v", s.holder, s.waiting)
	}
}
