package loop

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// collecting reads the settings that a measurement changes. Only tests that are not parallel may
// compare them, because others measure meanwhile.
func collecting() (percent int, limit int64) {
	percent = debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent, debug.SetMemoryLimit(-1)
}

// withCollector sets unusual settings for a test, so that defaults are not mistaken for restored
// settings.
func withCollector(t *testing.T) (check func()) {
	t.Helper()
	percent, limit := debug.SetGCPercent(137), debug.SetMemoryLimit(1<<50+1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	return func() {
		t.Helper()
		if p, l := collecting(); p != 137 || l != 1<<50+1 {
			t.Errorf("the collector is left at %d %% and a limit of %d, want 137 %% and %d", p, l, 1<<50+1)
		}
	}
}

// TestTwoAtOnce starts a second measurement within the first: they follow one another, each with
// the garbage collector off, and restore its settings.
func TestTwoAtOnce(t *testing.T) {
	check := withCollector(t)
	var order []int // one measures at a time: no lock needed, as -race confirms
	var wg sync.WaitGroup
	measuring, started := make(chan struct{}), make(chan struct{})
	for i := range 2 {
		wg.Go(func() {
			if i == 1 {
				<-measuring
				close(started)
			}
			runs := 0
			res, err := Measure(t.Context(), Options{Runs: 30, WarmupTime: -1, WarmupRuns: 3}, func() error {
				order = append(order, i)
				if runs++; i == 0 && runs == 1 {
					close(measuring)
					<-started
				}
				// After the warm-up.
				if runs > 20 {
					if p, _ := collecting(); p != -1 {
						t.Errorf("the collector is at %d %% while measuring", p)
					}
				}
				return nil
			})
			if err != nil || len(res.Plain) < 3 || runs <= 20 {
				t.Errorf("%d runs, %d samples, %v", runs, len(res.Plain), err)
			}
		})
	}
	wg.Wait()
	changes := 0
	for k := 1; k < len(order); k++ {
		if order[k] != order[k-1] {
			changes++
		}
	}
	if changes != 1 || order[0] != 0 {
		t.Errorf("the runs of the two are interleaved %d times", changes)
	}
	check()
}

// TestCollectorIsRestored ends measurements in every possible way.
func TestCollectorIsRestored(t *testing.T) {
	check := withCollector(t)
	ctx, cancel := context.WithCancel(t.Context())
	for name, end := range map[string]func() error{
		"done":            func() error { return nil },
		"error":           func() error { return errors.New("broken") },
		"panic":           func() error { panic("broken") },
		"goroutine ended": func() error { runtime.Goexit(); return nil },
		"context ended":   func() error { cancel(); return nil },
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			f := &fake{}
			n := 0
			c := t.Context()
			if name == "context ended" {
				c = ctx
			}
			_, _ = Measure(c, Options{Clock: f.clock(), Runs: 10, WarmupRuns: 2, WarmupTime: -1}, func() error {
				f.t += 1e6
				if n++; n < 5 {
					return nil
				}
				if p, _ := collecting(); p != -1 {
					t.Errorf("%s: the collector is at %d %% while measuring", name, p)
				}
				return end()
			})
		}()
		<-ended
		check()
		release, err := leaseNow()
		if err != nil {
			t.Fatalf("%s: the lease is kept: %v", name, err)
		}
		release()
	}
}

// leaseNow takes the lease, which is expected to be free.
func leaseNow() (func(), error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return Lease(ctx)
}

// leaseHeld returns the error of waiting for the lease, which is expected to be held.
func leaseHeld() error {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := Lease(ctx)
	return err
}

// TestCancelWhileWaiting holds the lease all the time: whatever returns did not wait
// for it.
func TestCancelWhileWaiting(t *testing.T) {
	check := withCollector(t)
	release, err := Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	res, err := Measure(ctx, Options{}, func() error { t.Error("ran without the lease"); return nil })
	if !errors.Is(err, context.Canceled) || res == nil || res.Latency().N != 0 || !math.IsNaN(res.First) || res.Stability.Steady != nil {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := Lease(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the lease with an ended context: %v", err)
	}
	release()
	release() // has no effect
	if _, err := Lease(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a free lease with an ended context: %v", err)
	}
	again, err := leaseNow()
	if err != nil {
		t.Fatal(err)
	}
	release() // of an earlier lease: does nothing to this one
	if err := leaseHeld(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two have the lease: %v", err)
	}
	again()
	check()
}

// TestLeased measures under a lease that the caller holds.
func TestLeased(t *testing.T) {
	f := &fake{}
	o := Options{Clock: f.clock(), Runs: 3, WarmupRuns: 1, WarmupTime: -1, Leased: true}
	if _, err := Measure(t.Context(), o, f.takes(time.Millisecond)); !errors.Is(err, ErrNotLeased) {
		t.Errorf("nobody has the lease: %v", err)
	}
	release, err := Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if res, err := Measure(t.Context(), o, f.takes(time.Millisecond)); err != nil || len(res.Plain) != 3 {
		t.Errorf("%d samples, %v", len(res.Plain), err)
	}
	if err := leaseHeld(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Measure gave the caller's lease away: %v", err)
	}
}
