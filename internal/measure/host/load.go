package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// load returns what is measured besides sequential inferences.
func (o *Options) load() loadfigures.Load {
	return loadfigures.Load{Streams: o.Streams, Rate: o.Rate, Cold: o.Cold}
}

// measureLoad measures the model under load and cold, after the passes that measure latency and
// shares. Its events add to their results.
func (p *pass) measureLoad(ctx context.Context, clock *loop.Clock) error {
	at := loadfigures.Passes{Profile: p.p, Timeline: p.timeline}
	if p.timeline != nil {
		at.Zero = &p.origin
	}
	source.Gathers(p.to, false)
	return loadfigures.Run(ctx, p.loadOptions(clock), &native{pass: p}, &sink{p}, at)
}

// loadOptions returns how streams are run.
func (r *runner) loadOptions(clock *loop.Clock) loadfigures.Options {
	return loadfigures.Options{
		Load: r.o.load(), Clock: clock, Runs: r.o.Runs, Time: r.o.Time, Warmup: r.o.WarmupTime, Threads: r.o.Threads, Pin: r.o.Pin, Samples: r.o.Samples, Leased: true,
		// Each stream reads the model's constants on its own goroutine.
		Around:   func(_ int, body func() error) error { return mapped.Guard(body) },
		Over:     func() { source.Gathers(r.to, true) },
		Progress: r.progress,
	}
}

// sink receives the results under load.
type sink struct{ *pass }

func (s *sink) Total(key string, m *profile.Metric) error { return s.total(key, m) }
func (s *sink) Note(n profile.Noted) error                { return s.note(n) }
func (s *sink) Find(fs []profile.Finding) error           { return s.find(fs) }

// native is opmeter's own engine under load.
type native struct {
	*pass
	anew *engine.Session
}

// Fleet implements [loadfigures.Engine].
func (d *native) Fleet(ctx context.Context, streams int) (*loadfigures.Fleet, error) {
	source.Gathers(d.to, false) // after cold inferences
	f, err := d.fleet(ctx, streams)
	if err != nil {
		f.close(d.s)
		return nil, err
	}
	return f.loadFleet(ctx, streams, func() { f.close(d.s) }), nil
}

// Run implements [loadfigures.Engine].
func (d *native) Run(ctx context.Context) error { return d.s.Run(ctx) }

// Anew implements [loadfigures.Engine].
func (d *native) Anew(ctx context.Context) error {
	o, err := d.engineOptions()
	if err != nil {
		return err
	}
	o.Held = held(d.s)
	if d.anew, err = engine.New(d.m, d.ins, o); err != nil {
		return err
	}
	if err := runUntilStable(ctx, d.anew); err != nil {
		return err
	}
	return starved(d.s, d.anew)
}

// End implements [loadfigures.Engine].
func (d *native) End() {
	if d.anew != nil {
		d.anew.Close()
		d.anew = nil
	}
}

// Start implements [loadfigures.Engine].
func (d *native) Start() (how, from string) {
	return "new session before each inference, of an open model", "From creating a session of the open model to its first result it takes"
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

// fleet is a set of concurrent sessions of one model.
type fleet struct {
	sessions []*engine.Session
	cpus     []int // processors of streams, one per thread; nil if not bound
	threads  int
}

// fleet makes sessions in addition to the existing one, which is the first of them. They share
// the model's constants; each has its own memory for results and for packed constants.
func (r *runner) fleet(ctx context.Context, n int) (*fleet, error) {
	f := &fleet{threads: max(r.o.Threads, 1)}
	if r.o.Pin {
		f.cpus = machine.PickCPUs(n * f.threads)
	}
	if f.cpus == nil { // the threads of the existing session are bound elsewhere
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
		if o.Held = held(f.sessions...); f.cpus != nil {
			o.Held += held(r.s)
		}
		s, err := engine.New(r.m, r.ins, o)
		if err != nil {
			return f, err
		}
		f.sessions = append(f.sessions, s)
		if err := runUntilStable(ctx, s); err != nil {
			return f, err
		}
		if err := starved(r.s, s); err != nil {
			return f, fmt.Errorf("stream %d of %d: %w", len(f.sessions), n, err)
		}
	}
	return f, nil
}

// starved returns the error of a step of a session that had no memory although the first session
// ran it: the time of the others is not that of the model.
func starved(first, s *engine.Session) error {
	had := first.Steps()
	for i, st := range s.Steps() {
		if limit, ok := errors.AsType[*op.LimitError](st.Err); ok && had[i].Err == nil {
			return &engine.NodeError{Node: st.Node, Err: limit}
		}
	}
	return nil
}

// held is how much of a limit of memory sessions use.
func held(sessions ...*engine.Session) (n int) {
	for _, s := range sessions {
		n += s.Held()
	}
	return n
}

// runUntilStable runs a session until no node fails any more; nodes that fail are removed from
// its plan, as in the first session.
func runUntilStable(ctx context.Context, s *engine.Session) error {
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

// loadFleet returns the first streams sessions for measurements under load.
func (f *fleet) loadFleet(ctx context.Context, streams int, end func()) *loadfigures.Fleet {
	out := &loadfigures.Fleet{CPUs: f.cpus, Threads: f.threads, Close: end}
	for _, s := range f.sessions[:streams] {
		out.Runs = append(out.Runs, func() error { return s.Run(ctx) })
	}
	return out
}
