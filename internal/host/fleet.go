package host

import (
	"context"
	"fmt"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/measure"
	"github.com/opmeter/opmeter/internal/scenario"
	"github.com/opmeter/opmeter/internal/stats"
	"github.com/opmeter/opmeter/profile"
)

// Fleet is sessions of a model that can run at the same time, for a sweep. It is for one goroutine
// at a time, under [mapped.Guard] where the model's constants lie in a mapped file.
type Fleet struct {
	r *runner
	f *fleet
	c *measure.Clock
}

// Round is what streams did once.
type Round struct {
	Result *scenario.Result
	// RAMBytes is what all streams hold beside the model, by the plan.
	RAMBytes int64
}

// nowhere takes events that nobody wants.
type nowhere struct{}

func (nowhere) Send(profile.Event) error { return nil }

// NewFleet makes sessions for at most so many streams.
func NewFleet(ctx context.Context, m *graph.Model, o Options, streams int) (*Fleet, error) {
	f := &Fleet{r: &runner{m: m, o: o, to: nowhere{}}, c: measure.NewClock()}
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
	if err := f.r.nothing(); err != nil {
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

// Close ends all sessions.
func (f *Fleet) Close() {
	if f.f != nil {
		f.f.close(f.r.s)
	}
	f.r.s.Close()
}

// Run measures so many streams, of those that there are. The result is nil where nothing was
// measured.
func (f *Fleet) Run(ctx context.Context, streams int) (*Round, error) {
	release, err := measure.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	p := &pass{runner: f.r}
	some := &fleet{sessions: f.f.sessions[:streams], cpus: f.f.cpus, threads: f.f.threads}
	o := p.scenario(f.c)
	o.Bind, o.Runs = some.bind(), f.r.o.Runs*streams
	res, err := scenario.Run(ctx, o, some.runs(ctx))
	if res.Latency.N == 0 {
		return nil, err
	}
	return &Round{res, int64(streams) * *f.r.memory().RAMBytes}, err
}

// Rounds makes figures of the rounds of one point: the time of an inference over all of them,
// and items a second with rounds as samples. What there is nothing of is nil.
func Rounds(rs []*Round, batch int) (latency, items *profile.Metric, ram *int64) {
	var samples, rates []float64
	var n int64
	var sum float64
	var low, high float64
	for _, r := range rs {
		samples = append(samples, r.Result.Samples...)
		l := r.Result.Latency
		if n == 0 || l.Min < low {
			low = l.Min
		}
		if n == 0 || l.Max > high {
			high = l.Max
		}
		n += l.N
		sum += l.Mean * float64(l.N)
		if r.Result.PerSecond > 0 {
			rates = append(rates, r.Result.PerSecond*float64(batch))
		}
		ram = &r.RAMBytes
	}
	s := stats.Summarize(samples)
	if n > s.N {
		s.N, s.Mean, s.Min, s.Max = n, sum/float64(n), low, high
	}
	latency = profile.FromSummary(profile.Measured, s, fmt.Sprintf("inferences under load of %d rounds", len(rs)))
	if latency != nil {
		latency.CI95 = nil // streams and rounds are no series
	}
	items = profile.Summarize(profile.Measured, rates, "a sample each round")
	return latency, items, ram
}
