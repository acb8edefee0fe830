package peaks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/workers"
)

// TestRates measures this computer: the rates are those of some computer, and
// the time is bounded.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 2} {
		pool := workers.New(threads, nil)
		r, err := rates(t.Context(), Options{Pool: pool})
		pool.Close()
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]float64{"float": r.Float, "integer": r.Integer, "memory": r.Memory} {
			if v < 1e6 || v > 1e15 {
				t.Errorf("%d threads: %s rate is %g a second", threads, name, v)
			}
		}
		// The bound is 100 ms where nothing else runs; tests share the machine.
		if r.Took > 2*time.Second {
			t.Errorf("%d threads: took %v", threads, r.Took)
		}
	}
}

// TestOnce asks from several goroutines at once: one measures, the others get the
// same, and later ones need not wait for whoever holds the lease.
func TestOnce(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	o := Options{Pool: pool, CPUs: []int64{1001}} // a key that no other test has
	var first atomic.Int64
	var wg sync.WaitGroup
	got := make([]Rates, 4)
	for i := range got {
		wg.Go(func() {
			r, earlier, err := Of(t.Context(), o)
			if err != nil {
				t.Error(err)
			}
			if !earlier {
				first.Add(1)
			}
			got[i] = r
		})
	}
	wg.Wait()
	if n := first.Load(); n != 1 || got[0].Float == 0 {
		t.Errorf("measured %d times: %+v", n, got)
	}
	for _, r := range got[1:] {
		if r != got[0] {
			t.Errorf("%+v and %+v", r, got[0])
		}
	}
	release, err := measure.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if r, earlier, err := Of(t.Context(), o); err != nil || !earlier || r != got[0] {
		t.Errorf("while others measure: %+v, earlier %v, %v", r, earlier, err)
	}
}

// TestCancelled ends the context before and while waiting: nothing is noted.
func TestCancelled(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	o := Options{Pool: pool, CPUs: []int64{1002}}
	release, err := measure.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// This would wait for ever if the context did not end it.
	if r, _, err := Of(ctx, o); !errors.Is(err, context.DeadlineExceeded) || r != (Rates{}) {
		t.Errorf("waiting: %+v, %v", r, err)
	}
	leased := o
	leased.Leased = true
	if _, _, err := Of(ctx, leased); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("measuring: %v", err)
	}
	release()
	if _, earlier, err := Of(t.Context(), o); err != nil || earlier {
		t.Errorf("afterwards: earlier %v, %v", earlier, err)
	}
}
