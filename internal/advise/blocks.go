package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// ProbeTime is the time of a short run that a rule measures.
const ProbeTime = 4 * time.Second

// EnginesTime is the time of a run that compares two engines: each round starts two processes.
const EnginesTime = 3 * ProbeTime

// sessions is a source of samples for [ab.Run]: sessions of opmeter's engine in this process. Each
// round prepares new sessions, with new memory for weights and activations. Where that takes longer
// than a round may, because the model is large, later rounds keep the sessions of the first.
type sessions struct {
	runs []sessionRun
	open []*engine.Session
	// timers time the inferences of open as those of opmeter ab: both know disturbed ones.
	timers []*worker.Function
	clock  *loop.Clock
	most   time.Duration // of preparing a round
	keep   bool
}

// sessionRun is an alternative.
type sessionRun struct {
	m    *graph.Model
	feed inputs.Options
	o    engine.Options
	// fresh prepares a session for each inference, as a process does that runs one.
	fresh bool
}

// Begin prepares the sessions of a round.
func (s *sessions) Begin(ctx context.Context, process int) error {
	if s.keep {
		return nil
	}
	begin := time.Now()
	s.close()
	for i := range s.runs {
		if err := s.prepare(ctx, i); err != nil {
			s.close()
			return err
		}
	}
	s.keep = process == 0 && time.Since(begin) > s.most
	return nil
}

// errNoKernel is why a node does not run that has no error of its own.
var errNoKernel = errors.New("the engine has no kernel for it")

// prepare opens the session of an alternative and warms it up.
func (s *sessions) prepare(ctx context.Context, at int) error {
	r := &s.runs[at]
	ins, _, err := inputs.Inputs(r.m, r.feed)
	if err != nil {
		return err
	}
	x, err := engine.New(r.m, ins, r.o)
	if err != nil {
		return err
	}
	s.open = append(s.open, x)
	for _, st := range x.Steps() {
		if st.State == engine.Failed || st.State == engine.Unsupported {
			return fmt.Errorf("%s does not run then: %w", st.Node.Op, cmp.Or(st.Err, errNoKernel))
		}
	}
	t := &worker.Function{Run: func() error { return s.infer(ctx, at) }, Parallel: r.o.Threads > 1, Leased: true, Clock: s.clock}
	s.timers = append(s.timers, t)
	return t.Warm(ctx)
}

// infer runs an inference of an alternative.
func (s *sessions) infer(ctx context.Context, at int) error {
	r := &s.runs[at]
	if !r.fresh {
		return s.open[at].Run(ctx)
	}
	ins, _, err := inputs.Inputs(r.m, r.feed)
	if err != nil {
		return err
	}
	x, err := engine.New(r.m, ins, r.o)
	if err != nil {
		return err
	}
	defer x.Close()
	return x.Run(ctx)
}

// Block runs a block of inferences.
func (s *sessions) Block(ctx context.Context, _, alternative int) (ab.Block, error) {
	return s.timers[alternative].Block(ctx, worker.BlockTime)
}

// End closes the sessions of a round.
func (s *sessions) End(int) {
	if !s.keep {
		s.close()
	}
}

func (s *sessions) close() {
	for _, x := range s.open {
		x.Close()
	}
	s.open, s.timers = nil, nil
}

// Here measures a variant on this computer with opmeter's engine.
func Here(ctx context.Context, f *Facts, v *Variant, budget time.Duration) (*Measured, error) {
	if f.Model == nil {
		return nil, errNoModel
	}
	release, err := loop.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer loop.Quiet(machine.HeapGrowth())()
	runtime.LockOSThread() // the timer counts what the thread did
	defer runtime.UnlockOSThread()
	o := engine.Options{Registry: operators.Registry(), Threads: max(f.threadsOf(), 1), MaxBytes: f.Feed.MaxBytes}
	before := sessionRun{m: f.Model, feed: f.Feed, o: o}
	after := before
	before.fresh = v.Keep
	if v.Model != nil {
		after.m = v.Model
	}
	if v.Threads > 0 {
		after.o.Threads = v.Threads
	}
	if v.Batch > 0 {
		after.feed.Batch = v.Batch
	}
	if v.Shapes != nil {
		after.feed.Shapes = maps.Clone(after.feed.Shapes)
		if after.feed.Shapes == nil {
			after.feed.Shapes = map[string][]int{}
		}
		maps.Copy(after.feed.Shapes, v.Shapes)
	}
	source := &sessions{runs: []sessionRun{before, after}, clock: loop.NewClock(), most: budget / (4 * ab.MinProcesses)}
	defer source.close()
	return ab.Run(ctx, []ab.Alternative{{Name: "unchanged"}, {Name: "changed"}}, source,
		ab.Options{Budget: budget, Margin: 0.005, Seed: 1})
}
