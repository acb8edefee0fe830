package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

// blockTime is how long a block of inferences takes at least.
const blockTime = 10 * time.Millisecond

// warmUp is how long each new session runs before it is measured.
const warmUp = 50 * time.Millisecond

// ProbeTime is the time of a short run that a rule measures.
const ProbeTime = 2 * time.Second

// sessions is a source of samples for [ab.Run]: sessions of opmeter's engine in this process. Each
// round prepares new sessions, with new memory for weights and activations. Where that takes longer
// than a round may, because the model is large, later rounds keep the sessions of the first.
type sessions struct {
	runs []sessionRun
	open []*engine.Session
	n    []int         // inferences of a block
	most time.Duration // of preparing a round
	keep bool
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
	s.open, s.n = nil, nil
	for _, r := range s.runs {
		n, err := s.prepare(ctx, r)
		if err != nil {
			s.close()
			return err
		}
		s.n = append(s.n, n)
	}
	s.keep = process == 0 && time.Since(begin) > s.most
	return nil
}

// errNoKernel is why a node does not run that has no error of its own.
var errNoKernel = errors.New("the engine has no kernel for it")

// prepare opens a session, warms it up, and returns the number of inferences of a block.
func (s *sessions) prepare(ctx context.Context, r sessionRun) (int, error) {
	ins, _, err := inputs.Inputs(r.m, r.feed)
	if err != nil {
		return 0, err
	}
	x, err := engine.New(r.m, ins, r.o)
	if err != nil {
		return 0, err
	}
	s.open = append(s.open, x)
	for _, st := range x.Steps() {
		if st.State == engine.Failed || st.State == engine.Unsupported {
			return 0, fmt.Errorf("%s does not run then: %w", st.Node.Op, cmp.Or(st.Err, errNoKernel))
		}
	}
	count := 0
	begin := time.Now()
	for time.Since(begin) < warmUp || count < 2 {
		if err := s.infer(ctx, len(s.open)-1); err != nil {
			return 0, err
		}
		count++
	}
	each := time.Since(begin) / time.Duration(count)
	return max(1, int(blockTime/max(each, 1))), nil
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
	times := make([]float64, s.n[alternative])
	last := time.Now()
	for i := range times {
		if err := s.infer(ctx, alternative); err != nil {
			return ab.Block{}, err
		}
		now := time.Now()
		times[i], last = now.Sub(last).Seconds(), now
	}
	return ab.Block{Seconds: stats.Midmean(times), Inferences: len(times)}, nil
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
	s.open = nil
}

// Here measures a variant on this computer with opmeter's engine.
func Here(ctx context.Context, f *Facts, v *Variant, budget time.Duration) (*Measured, error) {
	release, err := loop.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer loop.Quiet(machine.HeapGrowth())()
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
	source := &sessions{runs: []sessionRun{before, after}, most: budget / (4 * ab.MinProcesses)}
	defer source.close()
	return ab.Run(ctx, []ab.Alternative{{Name: "unchanged"}, {Name: "changed"}}, source,
		ab.Options{Budget: budget, Margin: 0.005, Seed: 1})
}
