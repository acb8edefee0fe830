package peaks

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine/rates"
)

// TestRates measures this computer: the rates are plausible, and the time is bounded.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 2} {
		pool := workers.New(threads, nil)
		r, _, err := Begin(Options{Pool: pool, CPUs: []int64{1003}, L1: new(int64(32 << 10)), L2: new(int64(1 << 20)), L3: new(int64(8 << 20))}).End(t.Context())
		pool.Close()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]rates.Rate{"float": r.Float, "integer": r.Integer}
		for i, l := range r.Levels {
			all[l.Name], all[l.Name+" read"] = l.Rate, l.Read
			if want := []struct {
				name  string
				bytes int64
			}{{"L1", int64(threads) * 32 << 10}, {"L2", int64(threads) << 20}, {"L3", 8 << 20}, {"memory", 0}}[i]; l.Name != want.name || l.Bytes != want.bytes {
				t.Errorf("%d threads: level %d is %s of %d bytes, want %v", threads, i, l.Name, l.Bytes, want)
			}
		}
		if len(all) != 10 {
			t.Errorf("%d threads: %d rates, want 10", threads, len(all))
		}
		for name, v := range all {
			if !(v.Best >= 1e6 && v.Best <= 1e15 && v.Median <= v.Best && v.Median > 0) {
				t.Errorf("%d threads: %s rate is %+v a second", threads, name, v)
			}
		}
		// Some 100 ms if nothing else runs; tests share the machine.
		if r.Took > 10*time.Second {
			t.Errorf("%d threads: took %v", threads, r.Took)
		}
	}
}

// TestOnce asks from several goroutines at once: one measures, the others get the same result,
// and later ones need not wait for the lease.
func TestOnce(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	o := Options{Pool: pool, CPUs: []int64{1001}} // a key that no other test uses
	var first atomic.Int64
	var wg sync.WaitGroup
	got := make([]rates.Rates, 4)
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
	if n := first.Load(); n != 1 || !(got[0].Float.Best > 0) {
		t.Errorf("measured %d times: %+v", n, got)
	}
	for _, r := range got[1:] {
		if !reflect.DeepEqual(r, got[0]) {
			t.Errorf("%+v and %+v", r, got[0])
		}
	}
	release, err := loop.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if r, earlier, err := Of(t.Context(), o); err != nil || !earlier || !reflect.DeepEqual(r, got[0]) {
		t.Errorf("while others measure: %+v, earlier %v, %v", r, earlier, err)
	}
}

// TestCancelled ends the context before and while waiting: nothing is cached.
func TestCancelled(t *testing.T) {
	t.Parallel()
	pool := workers.New(1, nil)
	defer pool.Close()
	o := Options{Pool: pool, CPUs: []int64{1002}}
	release, err := loop.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// This would wait forever if the context did not end it.
	if r, _, err := Of(ctx, o); !errors.Is(err, context.DeadlineExceeded) || !reflect.DeepEqual(r, rates.Rates{}) {
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
