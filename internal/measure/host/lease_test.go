package host

import (
	"context"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/profile"
)

// TestProfilesAtOnce makes two profiles 200 ms apart, as a server may be asked to: both are
// complete, neither disturbs the other, and the settings of garbage collection are restored. It
// is not parallel, because other tests measure too.
func TestProfilesAtOnce(t *testing.T) {
	percent, limit := debug.SetGCPercent(137), debug.SetMemoryLimit(1<<50+1)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	o := options()
	o.Runs, o.Time, o.WarmupTime = 0, 300*time.Millisecond, 50*time.Millisecond
	var mu sync.Mutex
	var told []int // who reported progress
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 200 * time.Millisecond)
			o := o
			o.Progress = func(phase string, _ float64) {
				if phase == "planning" { // does not need the lease
					return
				}
				mu.Lock()
				defer mu.Unlock()
				told = append(told, i)
			}
			p, err := profiled(t.Context(), looped(), o)
			if err != nil || p.Incomplete != nil || p.Totals.Latency == nil || p.Target.PeakOpsPerSecond == nil {
				t.Errorf("profile %d: %v, %+v", i, err, p.Incomplete)
			}
		})
	}
	wg.Wait()
	changes := 0
	for k := 1; k < len(told); k++ {
		if told[k] != told[k-1] {
			changes++
		}
	}
	if changes != 1 || told[0] != 0 {
		t.Errorf("the two tell of their progress in turns: %v", told)
	}
	if p, l := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); p != 137 || l != 1<<50+1 {
		t.Errorf("the collector is left at %d %% and a limit of %d, want 137 %% and %d", p, l, 1<<50+1)
	}
}

// TestStoppedWhileWaiting ends a profile's context while another measurement holds the lease: the
// model is described and nothing has run.
func TestStoppedWhileWaiting(t *testing.T) {
	t.Parallel()
	release, err := loop.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	p, err := profiled(ctx, looped(), options())
	if err != nil || len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByDeadline || len(p.Layers) == 0 || p.Totals.Latency != nil {
		t.Errorf("incomplete %+v with %d layers, %v", p.Incomplete, len(p.Layers), err)
	}
}
