package host

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/figures"
	"github.com/opmeter/opmeter/internal/machine"
	"github.com/opmeter/opmeter/internal/mapped"
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/scenario"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Bars of inferences under load that a profile keeps: of a usual one enough to see how
// streams meet, of one with every sample as many as fit a page.
const (
	fewBars  = 2000
	manyBars = 200_000
)

// driven reports whether more is to be measured than one inference after the other.
func (o *Options) driven() bool { return o.Streams > 1 || o.Rate > 0 }

// drive measures what the model does under load and cold, after the passes that give latency and
// shares. Its events add to what these reported.
func (p *pass) drive(ctx context.Context, clock *measure.Clock) error {
	if p.o.driven() {
		if err := p.load(ctx, clock); err != nil {
			return err
		}
	}
	if p.o.Cold != "" {
		return p.cold(ctx, clock)
	}
	return nil
}

// load runs streams, each with a session of its own.
func (p *pass) load(ctx context.Context, clock *measure.Clock) error {
	p.progress("preparing streams", 0)
	fleet, err := p.fleet(ctx, max(p.o.Streams, 1))
	defer fleet.close(p.s)
	if err != nil {
		return err
	}
	o := p.scenario(clock)
	o.Rate, o.Spans, o.Bind = p.o.Rate, fewBars/len(fleet.sessions), fleet.bind()
	if p.o.Samples {
		o.Spans = manyBars / len(fleet.sessions)
	}
	if p.o.Runs > 0 && p.o.Rate == 0 {
		o.Runs = p.o.Runs * len(fleet.sessions)
	}
	o.Progress = func(f float64) { p.progress("measuring under load", f) }
	if p.o.Pin && fleet.cpus == nil {
		if err := p.find([]profile.Finding{figures.Finding("streams.not_pinned", profile.Warning, nil, "%s of %s are more than there are processors: threads of streams were not bound.", figures.Plural(len(fleet.sessions), "stream"), figures.Plural(fleet.threads, "thread"))}); err != nil {
			return err
		}
	}
	res, err := scenario.Run(ctx, o, fleet.runs(ctx))
	if e := p.loaded(res); e != nil {
		return e
	}
	return err
}

// scenario is what all scenarios have in common.
func (p *pass) scenario(clock *measure.Clock) scenario.Options {
	return scenario.Options{
		Clock: clock, Runs: p.o.Runs, Time: p.o.Time, Warmup: p.o.WarmupTime, ProcessTime: machine.ProcessTime(), HeapRoom: machine.HeapRoom(), Leased: true,
		// Each stream reads the model's constants on a goroutine of its own.
		Around: func(_ int, body func() error) error { return mapped.Guard(body) },
	}
}

// loaded sends what streams gave.
func (p *pass) loaded(res *scenario.Result) error {
	all := figures.Streams(res)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := p.total(key, all[key]); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	t := p.timeline
	zero := res.Open
	if t == nil {
		t = &timeline.Timeline{Origin: "opening of the window in which all streams ran", Method: "start and end of inferences under load, the first of each stream"}
	} else {
		zero = p.origin
		t.Method += "; after them inferences under load, the first of each stream"
	}
	figures.StreamLanes(t, res, zero)
	if len(t.Lanes) > 0 {
		if err := p.note(profile.Noted{Timeline: t}); err != nil {
			return err
		}
	}
	cpus := 0
	if h := p.p.Host; h != nil && h.CPUs != nil {
		cpus = int(*h.CPUs)
	}
	return p.find(figures.StreamFindings(p.p, res, max(p.o.Threads, 1), cpus))
}

// total sends a figure of the whole model.
func (p *pass) total(key string, m *profile.Metric) error {
	if m == nil {
		return nil
	}
	if err := p.p.Totals.Set(key, m); err != nil {
		return err
	}
	return p.send(profile.Event{Counted: &profile.Figure{Quantity: key, Metric: m}})
}

// fleet is sessions of one model that run at the same time.
type fleet struct {
	sessions []*engine.Session
	cpus     []int // that streams are bound to, a thread each; nil for none
	threads  int
}

// fleet makes sessions beside the one that there is, which is the first of them. They
// share the model's constants; memory of results and whatever kernels make of
// constants each has for itself.
func (r *runner) fleet(ctx context.Context, n int) (*fleet, error) {
	f := &fleet{threads: max(r.o.Threads, 1)}
	if r.o.Pin {
		f.cpus = machine.PickCPUs(n * f.threads)
	}
	if f.cpus == nil { // those of the one that there is are bound elsewhere
		f.sessions = append(f.sessions, r.s)
	}
	for len(f.sessions) < n {
		if err := ctx.Err(); err != nil {
			return f, err
		}
		o, err := r.engineOptions()
		if err != nil {
			return f, err
		}
		if f.cpus != nil {
			own := f.cpus[len(f.sessions)*f.threads:]
			o.Pin = func(w int) { _ = machine.Pin(own[w]) }
		}
		s, err := engine.New(r.m, r.ins, o)
		if err != nil {
			return f, err
		}
		f.sessions = append(f.sessions, s)
		if err := settle(ctx, s); err != nil {
			return f, err
		}
	}
	return f, nil
}

// settle runs a session once; nodes that fail are taken out of its plan, as those of
// the first session were.
func settle(ctx context.Context, s *engine.Session) error {
	for {
		err := s.Run(ctx)
		if err == nil || !disable(s, err) {
			return err
		}
	}
}

func (f *fleet) close(but *engine.Session) {
	for _, s := range f.sessions {
		if s != but {
			s.Close()
		}
	}
}

func (f *fleet) runs(ctx context.Context) []func() error {
	out := make([]func() error, len(f.sessions))
	for i, s := range f.sessions {
		out[i] = func() error { return s.Run(ctx) }
	}
	return out
}

// bind binds the thread of a stream to the first of its processors.
func (f *fleet) bind() func(int) (func(), error) {
	if f.cpus == nil {
		return nil
	}
	return func(stream int) (func(), error) { return machine.Bind(f.cpus[stream*f.threads]) }
}

// cold measures inferences that find nothing in the caches, or nothing at all.
func (p *pass) cold(ctx context.Context, clock *measure.Clock) error {
	p.progress("measuring cold", 0)
	cache := int64(0)
	if h := p.p.Host; h != nil {
		for _, b := range []*int64{h.CacheL2Bytes, h.CacheL3Bytes} {
			if b != nil {
				cache = *b
			}
		}
	}
	e := scenario.NewEmptier(cache)
	o := p.scenario(clock)
	o.Warmup = -1
	o.Progress = func(f float64) { p.progress("measuring cold", f) }
	key, how := "cold_latency_s", fmt.Sprintf("caches emptied before each inference by walking through %d MiB", e.Bytes()>>20)
	run := func() error { return p.s.Run(ctx) }
	o.Before = func(int) error { e.Empty(); return ctx.Err() }
	if p.o.Cold == profile.ColdStart {
		key, how = "cold_start_s", "session made anew before each inference; "+how
		var s *engine.Session
		end := func() {
			if s != nil {
				s.Close()
				s = nil
			}
		}
		defer func() { end() }()
		run = func() error {
			o, err := p.engineOptions()
			if err != nil {
				return err
			}
			if s, err = engine.New(p.m, p.ins, o); err != nil {
				return err
			}
			return settle(ctx, s)
		}
		o.Before = func(int) error {
			end()
			runtime.GC() // what the session before has left
			e.Empty()
			return ctx.Err()
		}
	}
	res, err := scenario.Run(ctx, o, []func() error{run})
	m := figures.Cold(res, how)
	if e := p.total(key, m); e != nil {
		return e
	}
	if e := p.find(figures.ColdFindings(p.p, key)); e != nil {
		return e
	}
	return err
}
