package host

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/peaks"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// pass holds the results of one measurement.
type pass struct {
	*runner
	work  *selfTimes
	rec   *loop.Recorder
	calls []int64 // calls of each slot, over the instrumented runs
	// divided divides the latency among the slots; nil before the first figures.
	divided *figures.Division
	// probe measures the peaks of this computer.
	probe *peaks.Probe
	// events is nil if no timeline is kept.
	events *recording
	// recorded says that the latency is that of the instrumented inferences.
	recorded bool
}

// measure runs the model until the context or the time ends.
func (r *runner) measure(ctx context.Context) error {
	if !r.o.Leased {
		release, err := loop.Lease(ctx)
		if err != nil {
			return err
		}
		defer release()
	}
	clock := loop.NewClock()
	computer := machine.NewWatch()
	r.progress("first run", 0)
	t := time.Now()
	err := r.firstRun(ctx)
	r.phases.FirstRunS = new(time.Since(t).Seconds())
	// Bodies are planned now, and shapes that only a run determines are known.
	r.slots = r.list()
	if e := r.refine(); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	if err := r.checkContradiction(); err != nil {
		return err
	}
	r.inPlace()
	n := r.memory()
	n.Outputs = r.outputs()
	if err := r.note(n); err != nil {
		return err
	}
	tm := r.s.NewTiming()
	if r.o.Threads <= 1 {
		tm.CPU = machine.ThreadTime()
	}
	// Rows beyond the recorder's limit are sampled.
	p := &pass{runner: r, work: newSelfTimes(r.slots), rec: loop.NewRecorder(len(r.slots), 4096), calls: make([]int64, len(r.slots))}
	p.rec.Corrected = tm.CPU != nil
	if r.o.Samples || r.o.MaxEvents > 0 {
		p.events = newRecording(r.slots, len(r.m.Main().Nodes), tm, r.o.MaxEvents)
	}
	r.progress("warming up", 0)
	computer.Begin()
	p.beginPeaks()
	res, err := loop.Measure(ctx, p.options(ctx, clock, tm), func() error { return r.s.Run(ctx) })
	host := computer.End()
	host.ClockResolutionS, host.ClockCostS, host.GCDuringRuns = new(clock.Resolution), new(clock.Cost), new(int64(res.GC))
	mem := *r.p.Memory
	mem.ProcessPeakBytes = machine.ProcessPeakBytes() // before anything else allocates memory
	if !math.IsNaN(res.AllocatedBytes) && res.AllocatedBytes >= 0 {
		mem.AllocatedPerRunBytes = new(int64(math.Round(res.AllocatedBytes)))
	}
	if e := p.report(ctx, res, host, &mem); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	if p.events != nil {
		p.origin = clock.Now() - (engine.Now() - p.events.zero())
	}
	return p.measureLoad(ctx, clock)
}

// options configures the passes and collects the data of each run.
func (p *pass) options(ctx context.Context, clock *loop.Clock, tm *engine.Timing) loop.Options {
	o := &p.o
	var bind func() (func(), error)
	if c := p.p.Settings.PinnedCPUs; len(c) > 0 {
		bind = func() (func(), error) { return machine.Bind(int(c[0])) }
	}
	reference := loop.NewReference()
	usage := machine.ThreadUsage()
	if o.Threads > 1 {
		usage = machine.ProcessUsage()
	}
	return loop.Options{
		Usage:     usage,
		Reference: func() { reference.Round() }, CPUTime: machine.ThreadTime(), ProcessTime: machine.ProcessTime(), Parallel: o.Threads > 1,
		Clock: clock, Runs: o.Runs, Time: o.Time, WarmupTime: o.WarmupTime, WarmupRuns: o.WarmupRuns, Bind: bind, Leased: true, HeapGrowth: machine.HeapGrowth(), Turn: o.Turn,
		Instrumented: func() error { return p.s.RunTimed(ctx, tm) },
		AfterInstrumented: func(disturbed bool) {
			p.work.read(tm)
			p.rec.Add(p.work.self, tm.Wall(), disturbed)
			if p.events != nil {
				p.events.add(tm, disturbed)
			}
			for i, n := range p.work.calls {
				p.calls[i] += n
			}
		},
		Between:  p.probe.Slices,
		Over:     func() { source.Gathers(p.to, true) },
		Progress: func(f float64) { p.progress("measuring", f) },
		// The results so far, in case the program is killed.
		Snapshot: func(so *loop.Result) error { return p.figures(figures.Evaluate(so, figures.Spread(machine.Virtual()))) },
	}
}

// firstRun runs once. A node that fails is removed from the plan, so that the rest can be
// measured.
func (r *runner) firstRun(ctx context.Context) error {
	for {
		err := r.s.Run(ctx)
		if err == nil || !r.disable(err) {
			return err
		}
	}
}

// ContradictionError reports that no operator of a model can run because the model contradicts
// itself, and the first node that does.
type ContradictionError struct {
	First *engine.NodeError
	// Hint states another possible reason, "" for none: open input dimensions without a given
	// size.
	Hint string
}

// Error returns the error of the node, with the hint.
func (e *ContradictionError) Error() string {
	if e.Hint == "" {
		return e.First.Error()
	}
	return e.First.Error() + ". " + e.Hint
}

// Unwrap returns the error of the node.
func (e *ContradictionError) Unwrap() error { return e.First }

// checkContradiction fails when no operator runs because the model contradicts itself. Operators
// that the engine does not support are listed instead.
func (r *runner) checkContradiction() error {
	var failed *plan.Slot
	for i := range r.slots {
		switch s := &r.slots[i]; s.State {
		case plan.Runs:
			return nil
		case plan.Failed:
			if failed == nil {
				failed = s
			}
		}
	}
	if failed == nil {
		return nil
	}
	e := &ContradictionError{First: &engine.NodeError{Graph: failed.Graph, Node: failed.Node, Err: failed.Err}}
	for _, f := range r.openDimensions() {
		e.Hint = f.Text
	}
	return e
}

// report sends all results.
func (p *pass) report(ctx context.Context, res *loop.Result, host *profile.Host, mem *profile.Memory) error {
	p.phases.Warmup = &profile.Warmup{
		TimeS: new(res.WarmupTime), Count: new(int64(res.WarmupRuns)), Steady: res.Stability.Steady, Reason: res.Stability.Reason,
	}
	run := figures.Evaluate(res, figures.Spread(machine.Virtual()))
	if err := p.figures(run); err != nil {
		return err
	}
	n := profile.Noted{Host: host, Memory: mem, Reconcile: run.Reconcile(p.divided.Reconcile())}
	judged := *p.p
	judged.Host, judged.Reconcile = host, n.Reconcile
	n.Trust = run.Trust(&judged, p.o.Pin, p.divided)
	if p.events != nil {
		n.Timeline = p.events.timeline()
		memoryOverTime(n.Timeline, p.p.Layers)
	}
	n.Latencies = figures.Kept(res.Plain, p.o.Samples)
	if t, ok := p.peaks(ctx, host); ok {
		n.Target = &t
	}
	if err := p.note(n); err != nil {
		return err
	}
	return p.find(p.findings())
}

// figures sends the figures measured so far. They replace earlier ones.
func (p *pass) figures(run *figures.Run) error {
	m := run.Latency()
	if m != nil {
		if err := p.total("latency_s", m); err != nil {
			return err
		}
	}
	all := run.Whole()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := p.total(key, all[key]); err != nil {
			return err
		}
	}
	if m == nil {
		return nil
	}
	return p.layers(*m.Median)
}

// layers sends the figures of the layers, whose times add up to the latency in seconds.
func (p *pass) layers(latency float64) error {
	n := p.rec.Runs()
	if n == 0 {
		return nil
	}
	p.divided = figures.Divide(latency, len(p.slots), p.rec)
	if p.recorded {
		p.divided = figures.DivideRecorded(profile.Measured, latency, len(p.slots), p.rec)
	}
	inside := p.cumulativeTimes()
	entered := p.entered()
	for i := range p.slots {
		s := &p.slots[i]
		if s.State != plan.Runs {
			// A layer that cannot run in a branch that is not taken has no effect on the run.
			if state, cause := profileState(s); state.Idle() {
				if p.passedBy(i, entered) {
					state, cause = profile.NotReached, nil
				}
				if err := p.setState(i, state, cause); err != nil {
					return err
				}
			}
			continue
		}
		if p.calls[i] == 0 {
			if err := p.setState(i, profile.NotReached, nil); err != nil {
				return err
			}
			continue
		}
		if err := p.setState(i, profile.Ran, nil); err != nil {
			return err
		}
		if err := p.figure(i, "latency_s", p.divided.Metric(i)); err != nil {
			return err
		}
		if c := float64(p.calls[i]) / float64(n); c != 1 || p.p.Layers[i].Calls != nil {
			if err := p.figure(i, "calls", profile.Value(profile.Measured, c, "mean over the instrumented runs")); err != nil {
				return err
			}
		}
		if len(s.Bodies) > 0 {
			t := profile.Value(profile.Measured, inside[i], "sum of the layer and those inside it")
			if err := p.figure(i, "total_s", t); err != nil {
				return err
			}
		}
		if err := p.send(profile.Event{Refined: &profile.Refined{Layer: int64(i), Samples: picoseconds(figures.Kept(p.divided.Samples(i), p.o.Samples))}}); err != nil {
			return err
		}
	}
	return nil
}

// picoseconds rounds samples to a thousandth of what the clock resolves: more digits are noise and
// half of a file.
func picoseconds(samples []float64) []float64 {
	for i, s := range samples {
		samples[i] = math.Round(s*1e12) / 1e12
	}
	return samples
}

// figure sends a figure of a layer.
func (p *pass) figure(layer int, key string, m *profile.Metric) error {
	if err := p.p.Layers[layer].Set(key, m); err != nil {
		return err
	}
	return p.send(profile.Event{Counted: &profile.Figure{Layer: new(int64(layer)), Quantity: key, Metric: m}})
}

// entered are the graphs with steps that run, by whether one of these did.
func (p *pass) entered() map[int]bool {
	out := map[int]bool{}
	for i := range p.slots {
		if s := &p.slots[i]; s.State == plan.Runs {
			out[s.Graph] = out[s.Graph] || p.calls[i] > 0
		}
	}
	return out
}

// passedBy reports whether a slot is in a branch that was not taken, or in a graph inside it.
func (p *pass) passedBy(i int, entered map[int]bool) bool {
	for ; i >= 0; i = p.slots[i].Parent {
		if ran, ok := entered[p.slots[i].Graph]; ok && !ran {
			return true
		}
	}
	return false
}

// setState records that a layer turned out to be in a state.
func (p *pass) setState(i int, state profile.State, cause *profile.Cause) error {
	l := &p.p.Layers[i]
	if l.State == state {
		return nil
	}
	l.State, l.Cause = state, cause
	return p.send(profile.Event{Refined: &profile.Refined{Layer: int64(i), State: state, Cause: cause}})
}

// cumulativeTimes sums for every slot its time and those of the slots in its bodies.
func (p *pass) cumulativeTimes() []float64 {
	total := make([]float64, len(p.slots))
	for i := len(p.slots) - 1; i >= 0; i-- {
		if p.slots[i].State == plan.Runs {
			total[i] += p.divided.Time(i)
		}
		if o := p.slots[i].Parent; o >= 0 {
			total[o] += total[i]
		}
	}
	return total
}
