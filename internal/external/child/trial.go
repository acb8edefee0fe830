package child

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// trial measures one model.
type trial struct {
	*server
	lib   external.Library
	about external.About

	plain    external.Session
	profiled external.Profiled // nil where the engine has no profiler
	phases   profile.Phases
	memory   profile.Memory
	facts    external.Facts
	several  bool // other threads than the calling one compute
	// p is the profile that was sent, for derived figures.
	p *profile.Profile
	// timeline is the timeline of the profiled runs, nil for none.
	timeline *timeline.Timeline
}

// run executes a trial: load, first run, description, both passes, figures.
func (t *trial) run(ctx context.Context) error {
	defer t.close()
	if err := t.load(); err != nil {
		return err
	}
	switch {
	case t.req.Blocks:
		return t.blocksOnRequest(ctx)
	case t.req.Alone:
		return t.round(ctx)
	}
	if err := t.describe(ctx); err != nil {
		return err
	}
	if err := t.measure(ctx); err != nil {
		return err
	}
	return t.peaks(ctx)
}

func (t *trial) close() {
	if t.profiled != nil {
		_ = t.profiled.Close()
	}
	if t.plain != nil {
		_ = t.plain.Close()
	}
}

// load creates the plain session and runs it once.
func (t *trial) load() error {
	t.progress("loading the model", 0)
	start := time.Now()
	var err error
	if t.plain, err = t.lib.Load(t.req.Task); err != nil {
		return named("loading the model", err)
	}
	t.phases.LoadS = new(time.Since(start).Seconds())
	t.progress("first run", 0)
	start = time.Now()
	if err := t.plain.Run(); err != nil {
		return named("the first run", err)
	}
	t.phases.FirstRunS = new(time.Since(start).Seconds())
	// Memory of later runs and of the profiled session is not the model's.
	t.memory.ProcessPeakBytes = machine.ProcessPeakBytes()
	if t.req.Alone {
		return nil
	}
	outputs, err := t.plain.Outputs()
	if err != nil {
		return named("reading the outputs", err)
	}
	t.facts = t.plain.Facts()
	t.memory.ArenaBytes = t.facts.ArenaBytes
	return errors.Join(t.pipe.Send(&external.Message{Outputs: true, Tensors: outputs}), t.pipe.Send(&external.Message{Facts: &t.facts}))
}

// describeRuns is the number of profiled runs that find the executed operators.
const describeRuns = 2

// describe finds the executed operators and sends them.
func (t *trial) describe(ctx context.Context) error {
	t.progress("finding what is executed", 0)
	task := *t.req.Task
	task.Profiled = true
	s, err := t.lib.Load(&task)
	if err != nil {
		return named("loading the model with the profiler", err)
	}
	run := &runlog.Run{Profile: &profile.Profile{}}
	if p, ok := s.(external.Profiled); ok {
		t.profiled = p
		for range describeRuns {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := t.instrumented(); err != nil {
				return err
			}
			if err := t.after(); err != nil {
				return err
			}
		}
		if run, err = p.Records(); err != nil {
			return named("reading what the profiler recorded", err)
		}
		if run == nil {
			run = &runlog.Run{Profile: &profile.Profile{}}
		}
		if err := p.Reset(); err != nil {
			return named("emptying the profiler", err)
		}
	} else {
		_ = s.Close()
	}
	t.p = described(run)
	t.p.Settings.Threads = new(int64(t.req.Task.Threads))
	return t.pipe.Send(&external.Message{Event: &profile.Event{Described: t.p}, Hints: run.Hints})
}

// described returns the profile of a record without its times.
func described(run *runlog.Run) *profile.Profile {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "model"}, Quantities: run.Profile.Quantities}
	for i, l := range run.Profile.Layers {
		l.Index, l.Latency, l.Total, l.Share, l.Samples, l.Calls = int64(i), nil, nil, nil, nil, nil
		if l.State == "" || l.State == profile.NotReached {
			l.State = profile.Ran
		}
		if l.Op == "" {
			l.Op = "unknown"
		}
		p.Layers = append(p.Layers, l)
	}
	p.Target = profile.Target{ID: "host", Kind: profile.TargetHost}
	return p
}

// instrumented runs once with the profiler.
func (t *trial) instrumented() error { return named("an instrumented run", t.profiled.Run()) }

// after reads the profiler's records, and empties the profiler when it is full.
func (t *trial) after() error {
	if err := t.profiled.AfterRun(-1, false); err != nil {
		return named("reading what the profiler recorded", err)
	}
	if t.profiled.Remaining() != 0 {
		return nil
	}
	_, err := t.profiled.Records()
	return named("reading what the profiler recorded", err)
}

// measure runs both passes and sends the figures.
func (t *trial) measure(ctx context.Context) error {
	clock := loop.NewClock()
	computer := machine.NewWatch()
	t.measuring.Store(true)
	t.progress("warming up", 0)
	computer.Begin()
	o := t.options(clock)
	var failed error
	if t.profiled != nil {
		var began int64
		o.Instrumented = func() error {
			began = clock.Now()
			return t.profiled.Run()
		}
		o.AfterInstrumented = func(disturbed bool) {
			if err := t.finished(clock.Now()-began, disturbed); err != nil && failed == nil {
				failed = err
			}
		}
	}
	if t.req.Interleaved {
		o.Turn = t.wait
	}
	res, err := loop.Measure(ctx, o, func() error {
		if failed != nil {
			return failed
		}
		return t.plain.Run()
	})
	host := computer.End()
	host.ClockResolutionS, host.ClockCostS, host.GCDuringRuns = new(clock.Resolution), new(clock.Cost), new(int64(res.GC))
	if e := t.report(res, host); e != nil {
		return e
	}
	if err != nil {
		return named("an inference", err)
	}
	return t.drive(ctx, clock)
}

// finished handles the end of a profiled run; wall is in nanoseconds.
func (t *trial) finished(wall int64, disturbed bool) error {
	if err := t.profiled.AfterRun(wall, disturbed); err != nil {
		return named("reading what the profiler recorded", err)
	}
	if t.profiled.Remaining() == 0 {
		if _, err := t.profiled.Records(); err != nil {
			return named("reading what the profiler recorded", err)
		}
	}
	return nil
}

// options returns the options of the measurement loop.
func (t *trial) options(clock *loop.Clock) loop.Options {
	reference := loop.NewReference()
	parallel, usage := t.parallel(), machine.ThreadUsage()
	t.several = parallel
	if parallel {
		usage = machine.ProcessUsage()
	}
	return loop.Options{
		Usage: usage,
		Clock: clock, Runs: t.req.Runs, Time: time.Duration(t.req.Time), WarmupTime: time.Duration(t.req.WarmupTime), WarmupRuns: t.req.WarmupRuns, HeapGrowth: machine.HeapGrowth(),
		Reference: func() { reference.Round() }, CPUTime: machine.ThreadTime(), ProcessTime: machine.ProcessTime(), Parallel: parallel, Apart: t.profiled != nil,
		Progress: func(f float64) { t.progress("measuring", f) },
		Snapshot: func(res *loop.Result) error { return t.whole(figures.Evaluate(res, figures.Spread(machine.Virtual()))) },
	}
}

// alone is the share of a run's CPU time from which the calling thread counts as the only worker.
const alone = 0.95

// parallel reports whether other threads than the calling one compute. Some engines run
// inferences on their own thread: the calling thread's time is then not the time of the work.
func (t *trial) parallel() bool {
	thread, process := machine.ThreadTime(), machine.ProcessTime()
	if t.req.Task.Threads > 1 || thread == nil || process == nil {
		return true
	}
	a, b := thread(), process()
	for range 3 {
		if t.plain.Run() != nil {
			return true // it will fail again, where that is told
		}
	}
	return float64(thread()-a) < alone*float64(process()-b)
}

func (t *trial) event(e profile.Event) error { return t.pipe.Send(&external.Message{Event: &e}) }

// figure sends a figure of a layer, or of the whole model if layer is negative.
func (t *trial) figure(layer int, key string, m *profile.Metric) error {
	f := &profile.Figure{Quantity: key, Metric: m}
	var err error
	if layer >= 0 {
		f.Layer = new(int64(layer))
		err = t.p.Layers[layer].Set(key, m)
	} else {
		err = t.p.Totals.Set(key, m)
	}
	return errors.Join(err, t.event(profile.Event{Counted: f}))
}

// whole sends the figures of the whole model.
func (t *trial) whole(run *figures.Run) error {
	if m := run.Latency(); m != nil {
		if err := t.figure(-1, "latency_s", m); err != nil {
			return err
		}
	}
	for key, m := range run.Whole() {
		if err := t.figure(-1, key, m); err != nil {
			return err
		}
	}
	return nil
}

// report sends all figures.
func (t *trial) report(res *loop.Result, host *profile.Host) error {
	t.phases.Warmup = &profile.Warmup{
		TimeS: new(res.WarmupTime), Count: new(int64(res.WarmupRuns)), Steady: res.Stability.Steady, Reason: res.Stability.Reason,
	}
	judged := figures.Evaluate(res, figures.Spread(machine.Virtual()))
	if err := t.whole(judged); err != nil {
		return err
	}
	n := profile.Noted{Host: host, Memory: &t.memory, Phases: &t.phases}
	if t.profiled != nil && len(res.Profiled) > 0 {
		run, err := t.profiled.Records()
		if err != nil {
			return named("reading what the profiler recorded", err)
		}
		if run != nil {
			if err := t.layers(run, judged); err != nil {
				return err
			}
			n.Reconcile = t.reconcile(run, judged)
			if t.req.Samples || t.req.Events > 0 {
				t.timeline = run.Profile.Timeline
				if t.req.Events > 0 {
					t.timeline = figures.SampleTimeline(t.timeline, t.req.Events, nil)
				}
				n.Timeline = t.timeline
			}
		}
	}
	t.p.Host, t.p.Reconcile = host, n.Reconcile
	n.Trust = judged.Trust(t.p, false, nil)
	t.p.Trust = n.Trust
	n.Latencies = figures.Kept(res.Plain, t.req.Samples)
	if err := t.event(profile.Event{Noted: &n}); err != nil {
		return err
	}
	for _, f := range figures.Findings(t.p) {
		if err := t.event(profile.Event{Found: &f}); err != nil {
			return err
		}
	}
	return nil
}

// reconcile compares the passes. The profiling overhead per operator follows from their
// difference, since the profiler is the engine's.
func (t *trial) reconcile(run *runlog.Run, res *figures.Run) *profile.Reconcile {
	r := res.Reconcile(run.Profile.Reconcile)
	if r == nil {
		return nil
	}
	r.OverheadPerOperatorS = nil
	if v, ok := res.Latency().Best(); ok {
		divide(r, v, t.p.Layers)
	}
	calls := 0.0
	for i := range run.Profile.Layers {
		switch l := &run.Profile.Layers[i]; {
		case l.Latency == nil:
		case l.Calls != nil:
			calls += *l.Calls
		default:
			calls++
		}
	}
	if v, ok := r.OverheadS.Best(); ok && calls > 0 {
		r.OverheadPerOperatorS = profile.Value(profile.Measured, v/calls, "difference of the passes over the operators of an inference")
	}
	return r
}

// divide sets the sums for layers that were scaled to the plain pass. What the profiler recorded
// and no layer shows, such as operators that the first runs did not execute, is not in layers.
func divide(r *profile.Reconcile, latency float64, layers []profile.Layer) {
	operators := 0.0
	for i := range layers {
		v, _ := layers[i].Latency.Best()
		operators += v
	}
	// Sums of floating-point numbers may exceed the whole by rounding.
	r.WallS, r.OperatorsS, r.GapsS = &latency, new(min(operators, latency)), new(max(0, latency-operators))
}

// layers sends the figures of the layers: their shares of the profiled time, scaled to the time
// of plain inferences.
func (t *trial) layers(run *runlog.Run, res *figures.Run) error {
	at := places(t.p.Layers, run.Profile.Layers)
	var sum float64
	for i := range run.Profile.Layers {
		v, _ := run.Profile.Layers[i].Latency.Best()
		sum += v
	}
	scale := math.NaN()
	if v, ok := res.Latency().Best(); ok && sum > 0 {
		scale = v / sum
	}
	var strange []int64
	for i := range run.Profile.Layers {
		l := &run.Profile.Layers[i]
		if at[i] < 0 {
			strange = append(strange, int64(i))
			continue
		}
		if v, ok := l.Latency.Best(); ok && v < run.ResolutionS {
			if err := t.tooShort(at[i], run.ResolutionS); err != nil {
				return err
			}
			continue
		}
		if err := t.layer(at[i], l, scale); err != nil {
			return err
		}
	}
	if n := len(strange); n > 0 {
		return t.event(profile.Event{Lost: &profile.Loss{Records: new(int64(n)), Cause: profile.Cause{Code: profile.ByRecord, Text: "operators that the first runs did not execute"}}})
	}
	return nil
}

// tooShort says that a layer ran, and that its time is below the profiler's resolution.
func (t *trial) tooShort(i int, resolution float64) error {
	cause := &profile.Cause{Code: profile.ByResolution, Text: fmt.Sprintf("below the profiler's resolution of %g µs", resolution*1e6)}
	return t.event(profile.Event{Refined: &profile.Refined{Layer: int64(i), State: profile.Ran, Cause: cause}})
}

// layer sends the figures of one layer.
func (t *trial) layer(i int, l *profile.Layer, scale float64) error {
	how := "profiler of " + t.about.Title
	switch {
	case l.Latency != nil:
	case l.State == profile.Ran || l.State.Elsewhere():
		return nil // too short for the profiler's clock, or done by another one
	default:
		t.p.Layers[i].State = profile.NotReached
		return t.event(profile.Event{Refined: &profile.Refined{Layer: int64(i), State: profile.NotReached}})
	}
	if v, ok := l.Latency.Best(); ok {
		if err := t.figure(i, "profiled_s", profile.Value(profile.Measured, v, how)); err != nil {
			return err
		}
	}
	if !(scale > 0) {
		return nil
	}
	how += ", scaled to the plain pass"
	if err := t.figure(i, "latency_s", scaled(l.Latency, scale, how)); err != nil {
		return err
	}
	if l.Calls != nil {
		if err := t.figure(i, "calls", profile.Value(profile.Measured, *l.Calls, "mean over the instrumented runs")); err != nil {
			return err
		}
	}
	if l.Total != nil {
		if err := t.figure(i, "total_s", scaled(l.Total, scale, l.Total.Method)); err != nil {
			return err
		}
	}
	for key, m := range l.Figures {
		c := *m
		c.Kind = profile.Measured
		if err := t.figure(i, key, &c); err != nil {
			return err
		}
	}
	samples := figures.Kept(l.Samples, t.req.Samples)
	if len(samples) == 0 {
		return nil
	}
	samples = slices.Clone(samples)
	for k := range samples {
		samples[k] *= scale
	}
	return t.event(profile.Event{Refined: &profile.Refined{Layer: int64(i), Samples: samples}})
}

// scaled returns a metric multiplied by a factor.
func scaled(m *profile.Metric, by float64, how string) *profile.Metric {
	out := *m
	out.Kind, out.Method = profile.Measured, how
	for _, p := range []**float64{&out.Median, &out.Mean, &out.Min, &out.Max, &out.P90, &out.P95, &out.P99, &out.StdDev, &out.MAD} {
		if *p != nil {
			*p = new(**p * by)
		}
	}
	if c := out.CI95; c != nil {
		out.CI95 = &[2]float64{c[0] * by, c[1] * by}
	}
	return &out
}

// places maps the layers of a record to the described layers, in the same order except for layers
// that only some runs execute. A missing one maps to -1.
func places(known, seen []profile.Layer) []int {
	type key struct {
		name, op string
		nth      int
	}
	number := func(ls []profile.Layer, take func(i int, k key)) {
		nth := map[key]int{}
		for i := range ls {
			k := key{name: ls[i].Name, op: ls[i].Op}
			n := nth[k]
			nth[k]++
			k.nth = n
			take(i, k)
		}
	}
	at := map[key]int{}
	number(known, func(i int, k key) { at[k] = i })
	out := make([]int, len(seen))
	number(seen, func(i int, k key) {
		p, ok := at[k]
		if !ok {
			p = -1
		}
		out[i] = p
	})
	return out
}
