package host

import (
	"context"
	"fmt"

	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
)

// Fleet is a set of concurrent sessions of a model, for a sweep. It must be used by one goroutine
// at a time, under [mapped.Guard] if the model's constants are in a mapped file.
type Fleet struct {
	r *runner
	f *fleet
	c *loop.Clock
}

// discardSink ignores all events.
type discardSink struct{}

func (discardSink) Send(profile.Event) error { return nil }

// NewFleet makes sessions for at most the given number of streams.
func NewFleet(ctx context.Context, m *graph.Model, o Options, streams int) (*Fleet, error) {
	f := &Fleet{r: &runner{m: m, o: o, to: discardSink{}}, c: loop.NewClock()}
	if err := f.r.describe(nil); err != nil {
		return nil, err
	}
	if err := f.r.prepare(); err != nil {
		return nil, err
	}
	if err := f.r.firstRun(ctx); err != nil {
		f.r.s.Close()
		return nil, err
	}
	if err := f.r.checkContradiction(); err != nil {
		f.r.s.Close()
		return nil, err
	}
	if err := f.r.whole(); err != nil {
		f.r.s.Close()
		return nil, err
	}
	var err error
	if f.f, err = f.r.fleet(ctx, streams); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// whole returns an error where most of the model does not run: a point of a sweep would have a
// throughput that the model does not reach.
func (r *runner) whole() error {
	layers, most := r.p.Unrun()
	if !most {
		if layers = r.p.Starved(); layers == nil {
			return nil
		}
	}
	l := &r.p.Layers[layers[0]]
	why := "it does not run"
	if l.Cause != nil && l.Cause.Text != "" {
		why = l.Cause.Text
	}
	return fmt.Errorf("%d of %s did not run: no latency for the model; the first is #%d %s: %s", len(layers), figures.Plural(len(r.p.Layers), "layer"), layers[0], l.Op, why)
}

// Close ends all sessions.
func (f *Fleet) Close() {
	if f.f != nil {
		f.f.close(f.r.s)
	}
	f.r.s.Close()
}

// Run measures some of the existing streams. The result is nil if nothing was measured.
func (f *Fleet) Run(ctx context.Context, streams int) (*loadfigures.Round, error) {
	release, err := loop.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	o := f.r.loadOptions(f.c)
	o.Progress = nil // a sweep reports its points
	r, err := o.Round(ctx, f.f.loadFleet(ctx, streams, func() {}))
	if r != nil {
		r.RAMBytes = new(int64(streams) * *f.r.memory().RAMBytes)
	}
	return r, err
}
