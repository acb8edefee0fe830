package workers

import (
	"sync/atomic"
	"testing"
	"time"
)

// Two threads wake each other alternately, whichever way they sleep.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, crowded := range []bool{false, true} {
		var turn atomic.Int64
		var beds [2]rest
		for i := range beds {
			beds[i].init()
		}
		const turns = 2000
		done := make(chan struct{})
		side := func(me int64) {
			for turn.Load() < turns {
				beds[me].sleep(func() bool { return turn.Load()%2 == me || turn.Load() >= turns }, crowded)
				if turn.Load()%2 == me {
					turn.Add(1)
				}
				beds[1-me].rouse()
			}
			done <- struct{}{}
		}
		go side(0)
		go side(1)
		for range 2 {
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatalf("crowded %v: asleep after %d turns", crowded, turn.Load())
			}
		}
	}
}

// BenchmarkSlept is the time until a worker that sleeps has begun.
func BenchmarkSlept(b *testing.B) {
	p := New(2, nil)
	defer p.Close()
	var took time.Duration
	for b.Loop() {
		time.Sleep(2 * watchTime)
		start := time.Now()
		var begun atomic.Bool
		p.ForWorker(2, 1, func(worker, _, _ int) {
			if worker > 0 {
				took += time.Since(start)
				begun.Store(true)
			}
			for !begun.Load() {
			}
		})
	}
	b.ReportMetric(float64(took)/float64(b.N), "ns/begun")
}
