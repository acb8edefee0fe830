// Package loadfigures measures a model under load and cold, for any engine: several concurrent
// streams, inferences at a fixed rate, and inferences with empty caches or a new session. It runs
// after the passes that measure latency and shares, and adds to their results.
// docs/reference/load.md explains the figures.
//
// It uses internal/measure/loadgen, which generates the load, and internal/measure/figures, which
// derives the figures. opmeter's own engine and external engines each implement [Engine].
package loadfigures

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loadgen"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Load says what is measured besides sequential inferences. The zero value is nothing.
type Load struct {
	// Streams is the number of concurrent sessions, Rate the number of inferences per second that
	// are scheduled. Without a rate, 0 and 1 stream measure nothing more.
	Streams int     `json:"streams,omitzero"`
	Rate    float64 `json:"rate_per_s,omitzero"`
	// Cold also measures cold inferences, "" for none.
	Cold profile.Cold `json:"cold,omitzero"`
}

// Driven reports whether streams or a rate are requested.
func (l *Load) Driven() bool { return l.Streams > 1 || l.Rate > 0 }

// Describe records the request in the settings.
func (l *Load) Describe(s *profile.Settings) {
	if s.Cold = l.Cold; l.Driven() {
		s.Scenario, s.Streams = profile.Throughput, new(int64(max(l.Streams, 1)))
	}
	if l.Rate > 0 {
		s.Scenario, s.RatePerS = profile.FixedRate, new(l.Rate)
	}
}

// Options configures the measurement.
type Options struct {
	Load
	// Clock to use.
	Clock *loop.Clock
	// Runs, Time and Warmup are as in internal/measure/loadgen; without a rate, Runs is per
	// stream.
	Runs         int
	Time, Warmup time.Duration
	// Threads is the number of threads per session. Parallel says that more threads than the calling
	// one compute in any case, as in engines that run inferences on a thread of their own.
	Threads  int
	Parallel bool
	// Pin binds the threads of streams to processors.
	Pin bool
	// Samples keeps as many inferences of a stream's timeline as fit a page.
	Samples bool
	// Leased says that the caller holds the lease of internal/measure/loop.
	Leased bool
	// Around wraps body on a stream's thread. May be nil.
	Around func(stream int, body func() error) error
	// Over is called when streams or cold inferences have ended and figures are computed. May be
	// nil.
	Over func()
	// Progress is called with the current phase and the progress from 0 to 1. May be nil.
	Progress func(phase string, fraction float64)
}

// Fleet is a set of concurrent sessions of one model.
type Fleet struct {
	// Runs compute one inference each.
	Runs []func() error
	// CPUs are the processors that streams are bound to, Threads for each; nil for any.
	CPUs    []int
	Threads int
	// Close ends the sessions.
	Close func()
}

// Bind returns a function that binds the thread of a stream to the first of its processors; nil
// if streams are not bound.
func (f *Fleet) Bind() func(stream int) (restore func(), err error) {
	if f.CPUs == nil {
		return nil
	}
	return func(stream int) (func(), error) { return machine.Bind(f.CPUs[stream*f.Threads]) }
}

// Engine runs the model.
type Engine interface {
	// Fleet makes sessions for the given number of streams.
	Fleet(ctx context.Context, streams int) (*Fleet, error)
	// Run computes an inference of the existing session.
	Run(ctx context.Context) error
	// Anew makes a session and computes its first inference; this is what is timed.
	Anew(ctx context.Context) error
	// End ends the session that Anew made, if any.
	End()
	// Start describes for the record what Anew does, and its starting point as the beginning of a
	// sentence about a time.
	Start() (how, from string)
}

// Sink receives the results.
type Sink interface {
	// Total receives a figure of the whole model.
	Total(key string, m *profile.Metric) error
	// Note receives a part of the profile.
	Note(n profile.Noted) error
	// Find receives findings.
	Find(fs []profile.Finding) error
}

// Passes holds the results of the earlier passes.
type Passes struct {
	// Profile has their figures and the description of the computer; the sink keeps it up to
	// date.
	Profile *profile.Profile
	// Timeline is their timeline, nil if absent. Zero is its time 0 by the clock of the options,
	// nil if it uses another clock: then streams are placed after it.
	Timeline *timeline.Timeline
	Zero     *int64
}

// driver is one measurement.
type driver struct {
	o  Options
	e  Engine
	to Sink
	p  Passes
}

// Run measures what is requested: cold inferences first, because some engines share less of the
// existing session once there are others. The error is the context's or that of an inference;
// results measured before it were sent.
func Run(ctx context.Context, o Options, e Engine, to Sink, p Passes) error {
	d := &driver{o, e, to, p}
	if o.Cold != "" {
		if err := d.cold(ctx); err != nil {
			return err
		}
	}
	if o.Driven() {
		return d.load(ctx)
	}
	return nil
}

func (o *Options) progress(phase string, f float64) {
	if o.Progress != nil {
		o.Progress(phase, f)
	}
}

// baseOptions returns the options that all scenarios share.
func (o *Options) baseOptions() loadgen.Options {
	return loadgen.Options{
		Clock: o.Clock, Runs: o.Runs, Time: o.Time, Warmup: o.Warmup, ProcessTime: machine.ProcessTime(), HeapGrowth: machine.HeapGrowth(), Leased: o.Leased, Around: o.Around, Over: o.Over,
	}
}

// fleetOptions returns the options for the streams of a fleet, without a rate.
func (o *Options) fleetOptions(f *Fleet) loadgen.Options {
	s := o.baseOptions()
	s.Bind, s.Runs = f.Bind(), o.Runs*len(f.Runs)
	if o.Progress != nil {
		s.Progress = func(done float64) { o.Progress("measuring under load", done) }
	}
	return s
}

// Number of inferences under load in a profile's timeline: by default enough to see how streams
// overlap, with every sample as many as fit a page.
const (
	fewBars  = 2000
	manyBars = 200_000
)

// load runs streams, each with a session of its own.
func (d *driver) load(ctx context.Context) error {
	d.o.progress("preparing streams", 0)
	n := max(d.o.Streams, 1)
	fleet, err := d.e.Fleet(ctx, n)
	if err != nil {
		return err
	}
	defer fleet.Close()
	o := d.o.fleetOptions(fleet)
	o.Rate, o.Spans = d.o.Rate, fewBars/n
	if d.o.Samples {
		o.Spans = manyBars / n
	}
	if d.o.Rate > 0 {
		o.Runs = d.o.Runs // total of all streams
	}
	if d.o.Pin && fleet.CPUs == nil {
		if err := d.to.Find([]profile.Finding{figures.Finding("streams.not_pinned", profile.Warning, nil, "%s of %s exceed the number of processors: threads of streams were not pinned.", figures.Plural(n, "stream"), figures.Plural(fleet.Threads, "thread"))}); err != nil {
			return err
		}
	}
	res, err := loadgen.Run(ctx, o, fleet.Runs)
	if e := d.sendFigures(res); e != nil {
		return e
	}
	return err
}

// sendFigures sends the results of streams.
func (d *driver) sendFigures(res *loadgen.Result) error {
	all := figures.Streams(res, figures.Spread(machine.Virtual()))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := d.to.Total(key, all[key]); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	t, zero := d.streamTimeline(res)
	figures.StreamLanes(t, res, zero)
	if len(t.Lanes) > 0 {
		if err := d.to.Note(profile.Noted{Timeline: t}); err != nil {
			return err
		}
	}
	cpus := 0
	if h := d.p.Profile.Host; h != nil && h.CPUs != nil {
		cpus = int(*h.CPUs)
	}
	return d.to.Find(figures.StreamFindings(d.p.Profile, res, max(d.o.Threads, 1), cpus))
}

// streamTimeline returns the timeline that streams are added to, and its time 0 by their clock.
func (d *driver) streamTimeline(res *loadgen.Result) (t *timeline.Timeline, zero int64) {
	t = d.p.Timeline
	switch {
	case t == nil:
		return &timeline.Timeline{Origin: "opening of the window in which all streams ran", Method: "start and end of inferences under load, the first of each stream"}, res.Open
	case d.p.Zero != nil:
		t.Method += "; after them inferences under load, the first of each stream"
		return t, *d.p.Zero
	}
	end := 0.0
	for i := range t.Lanes {
		l := &t.Lanes[i]
		for k := range l.Starts {
			end = max(end, l.Starts[k]+l.Durations[k])
		}
	}
	t.Method += "; behind them inferences under load, the first of each stream, by another clock: the distance from what is before them has no meaning"
	return t, res.Open - int64(end*1e9)
}

// cold measures inferences with empty caches, or with a new session.
func (d *driver) cold(ctx context.Context) error {
	d.o.progress("measuring cold", 0)
	cache := int64(0)
	if h := d.p.Profile.Host; h != nil {
		for _, b := range []*int64{h.CacheL2Bytes, h.CacheL3Bytes} {
			if b != nil {
				cache = *b
			}
		}
	}
	e := loadgen.NewEmptier(cache)
	o := d.o.baseOptions()
	o.Warmup = -1
	o.Usage, o.Parallel = machine.ThreadUsage(), d.o.Parallel || d.o.Threads > 1 || d.o.Cold == profile.ColdStart
	if o.Parallel {
		o.Usage = machine.ProcessUsage()
	}
	o.Progress = func(f float64) { d.o.progress("measuring cold", f) }
	key, how, from := "cold_latency_s", fmt.Sprintf("caches emptied before each inference by walking through %d MiB", e.Bytes()>>20), "With cold caches an inference takes"
	run := func() error { return d.e.Run(ctx) }
	o.Before = func(int) error { e.Empty(); return ctx.Err() }
	if d.o.Cold == profile.ColdStart {
		key = "cold_start_s"
		made, begin := d.e.Start()
		how, from = made+"; "+how, begin
		defer d.e.End()
		run = func() error { return d.e.Anew(ctx) }
		o.Before = func(int) error {
			d.e.End()
			runtime.GC() // garbage of the previous session
			e.Empty()
			return ctx.Err()
		}
	}
	res, err := loadgen.Run(ctx, o, []func() error{run})
	if m := figures.Cold(res, how, figures.Spread(machine.Virtual())); m != nil {
		if e := d.to.Total(key, m); e != nil {
			return e
		}
	}
	if e := d.to.Find(figures.ColdFindings(d.p.Profile, key, from)); e != nil {
		return e
	}
	return err
}
