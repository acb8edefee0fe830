// Package worker runs the processes of a comparison: workers, which load a model once and answer
// blocks of inferences, and commands, which are timed as a whole.
package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
)

// Timer times a model that is loaded, in blocks of inferences.
type Timer interface {
	// Warm runs the model until its latency is steady.
	Warm(ctx context.Context) error
	// Block times inferences for about a duration.
	Block(ctx context.Context, d time.Duration) (ab.Block, error)
}

// Function times a function that computes one inference. All calls are on one goroutine, locked to
// its thread.
type Function struct {
	Run func() error
	// Parallel says that other threads compute, too.
	Parallel bool
	// Leased says that the caller holds the lease of package loop.
	Leased bool
	// Clock is nil for that of the system.
	Clock *loop.Clock
}

const (
	// warmup is the least time of the warm-up of a process: many short processes tell more than a
	// few warm ones, and all alternatives have the same.
	warmup = 50 * time.Millisecond
	// settle is the part of a block before it that is not counted: another process has used the
	// caches.
	settle = 10
	// calmPart is the part of the inferences that must be undisturbed.
	calmPart = 2
)

// Warm implements [Timer].
func (f *Function) Warm(ctx context.Context) error {
	f.Clock = cmp.Or(f.Clock, loop.NewClock())
	_, err := loop.Measure(ctx, loop.Options{Clock: f.Clock, Leased: f.Leased, WarmupTime: warmup, Runs: 1}, f.Run)
	return err
}

// Block implements [Timer].
func (f *Function) Block(ctx context.Context, d time.Duration) (ab.Block, error) {
	f.Clock = cmp.Or(f.Clock, loop.NewClock())
	usage := machine.ThreadUsage()
	if f.Parallel {
		usage = machine.ProcessUsage()
	}
	res, err := loop.Measure(ctx, loop.Options{
		Clock: f.Clock, Leased: f.Leased, Time: d, MinRuns: 1, WarmupRuns: 1, WarmupTime: d / settle, Usage: usage, Parallel: f.Parallel,
		CPUTime: machine.ThreadTime(), ProcessTime: machine.ProcessTime(), HeapGrowth: machine.HeapGrowth(),
	}, f.Run)
	if err != nil {
		return ab.Block{}, err
	}
	return summary(res.Samples(0), res.Batch), nil
}

// summary is the block of timed inferences.
func summary(samples []estimator.Sample, batch int) ab.Block {
	l := estimator.Measure(samples, 0)
	return ab.Block{
		Seconds: stats.Midmean(l.Times), Inferences: l.All * batch,
		Disturbed: calmPart*l.Disturbed > l.All,
	}
}
