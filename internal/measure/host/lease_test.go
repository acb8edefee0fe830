package host

import (
	"context"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// TestProfilesAtOnce starts a second profile while the first is measuring, as a server may be asked
// to: both are complete, one follows the other, and the garbage collector's settings are restored.
// Not parallel: other tests measure too.
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
	measuring := make(chan struct{}) // the first measures, or has ended
	first := sync.OnceFunc(func() { close(measuring) })
	for i := range 2 {
		wg.Go(func() {
			if i == 0 {
				defer first()
			} else {
				<-measuring
			}
			o := o
			o.Progress = func(phase string, _ float64) {
				if phase == "planning" { // does not need the lease
					return
				}
				if i == 0 {
					first()
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
		t.Errorf("progress of the two profiles is interleaved: %v", told)
	}
	if p, l := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); p != 137 || l != 1<<50+1 {
		t.Errorf("the collector is left at %d %% and a limit of %d, want 137 %% and %d", p, l, 1<<50+1)
	}
}

// ended is a context whose deadline passes when its channel is closed.
type ended struct {
	context.Context
	done chan struct{}
}

func (e ended) Done() <-chan struct{} { return e.done }

func (e ended) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// sourceFunc is a source.Source as a function.
type sourceFunc func(context.Context, source.Sink) error

func (f sourceFunc) Run(ctx context.Context, to source.Sink) error { return f(ctx, to) }

// sinkFunc is a source.Sink as a function.
type sinkFunc func(profile.Event) error

func (f sinkFunc) Send(e profile.Event) error { return f(e) }

// TestStoppedWhileWaiting ends a profile's context while something else measures: the model is
// described and nothing has run.
func TestStoppedWhileWaiting(t *testing.T) {
	t.Parallel()
	release, err := loop.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	done := make(chan struct{})
	ctx := ended{t.Context(), done}
	model := &Source{Model: looped(), Options: options()}
	p, err := source.Collect(ctx, sourceFunc(func(ctx context.Context, to source.Sink) error {
		return model.Run(ctx, sinkFunc(func(e profile.Event) error {
			if e.Described != nil {
				defer close(done)
			}
			return to.Send(e)
		}))
	}), source.Options{})
	if err != nil || len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByDeadline || len(p.Layers) == 0 || p.Totals.Latency != nil {
		t.Errorf("incomplete %+v with %d layers, %v", p.Incomplete, len(p.Layers), err)
	}
}
