package child

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/profile"
)

// drive measures the engine under load and on cold start, after the passes and in the same turn.
func (t *trial) drive(ctx context.Context, clock *loop.Clock) error {
	return named("an inference", loadfigures.Run(ctx, t.driving(clock), &driven{trial: t}, &sink{t}, loadfigures.Passes{Profile: t.p, Timeline: t.timeline}))
}

// driving returns the options of the load measurement.
func (t *trial) driving(clock *loop.Clock) loadfigures.Options {
	return loadfigures.Options{
		Load: t.req.Load, Clock: clock, Runs: t.req.Runs, Time: time.Duration(t.req.Time), Warmup: time.Duration(t.req.WarmupTime),
		Threads: t.req.Task.Threads, Parallel: t.several, Pin: t.req.Pin, Samples: t.req.Samples, Progress: t.progress,
	}
}

// sink receives the figures of the load measurement.
type sink struct{ t *trial }

func (s *sink) Total(key string, m *profile.Metric) error { return s.t.figure(-1, key, m) }
func (s *sink) Note(n profile.Noted) error                { return s.t.event(profile.Event{Noted: &n}) }

func (s *sink) Find(fs []profile.Finding) error {
	for i := range fs {
		if err := s.t.event(profile.Event{Found: &fs[i]}); err != nil {
			return err
		}
	}
	return nil
}

// driven is the engine under load.
type driven struct {
	*trial
	anew external.Session
}

// Fleet implements [loadfigures.Engine]. The first stream uses the existing session, unless
// streams are bound to processors. Threads that a library starts inherit the binding of the
// starting thread, so a new session is then loaded by a thread that may use the processors of all
// streams.
func (d *driven) Fleet(ctx context.Context, streams int) (*loadfigures.Fleet, error) {
	f := &loadfigures.Fleet{CPUs: d.req.StreamCPUs, Threads: max(d.req.Task.Threads, 1)}
	if f.CPUs != nil && len(f.CPUs) != streams*f.Threads {
		return nil, fmt.Errorf("%d processors for %d streams of %d threads", len(f.CPUs), streams, f.Threads)
	}
	first := d.plain
	var own []external.Session
	f.Close = func() {
		for _, s := range own {
			_ = s.Close()
		}
	}
	fail := func(err error) (*loadfigures.Fleet, error) {
		f.Close()
		return nil, named("making sessions for streams", err)
	}
	if f.CPUs != nil {
		restore, err := machine.Bind(f.CPUs...)
		if err != nil {
			return fail(err)
		}
		defer restore()
		if first, err = d.lib.Load(d.req.Task); err != nil {
			return fail(err)
		}
		own = append(own, first)
	}
	f.Runs = append(f.Runs, first.Run)
	for len(f.Runs) < streams {
		if err := ctx.Err(); err != nil {
			return fail(err)
		}
		s, err := first.Clone()
		if err != nil {
			return fail(err)
		}
		own = append(own, s)
		f.Runs = append(f.Runs, s.Run)
	}
	return f, nil
}

// Run implements [loadfigures.Engine].
func (d *driven) Run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.plain.Run()
}

// Anew implements [loadfigures.Engine].
func (d *driven) Anew(context.Context) error {
	var err error
	if d.anew, err = d.lib.Load(d.req.Task); err != nil {
		d.anew = nil
		return err
	}
	return d.anew.Run()
}

// End implements [loadfigures.Engine].
func (d *driven) End() {
	if d.anew != nil {
		_ = d.anew.Close()
		d.anew = nil
	}
}

// Start implements [loadfigures.Engine].
func (d *driven) Start() (how, from string) {
	return "model loaded by the engine from its file, which the system may hold in memory, before each inference; the process and the library stay", "With the library loaded, from the model's file to its first result it takes"
}

// round runs the streams once and sends the result.
func (t *trial) round(ctx context.Context) error {
	d := &driven{trial: t}
	f, err := d.Fleet(ctx, max(t.req.Load.Streams, 1))
	if err != nil {
		return err
	}
	defer f.Close()
	o := t.driving(loop.NewClock())
	t.measuring.Store(true)
	r, err := o.Round(ctx, f)
	if r != nil {
		err = errors.Join(err, t.pipe.Send(&external.Message{Round: r}))
	}
	return named("an inference", err)
}
