package opmeter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/internal/measure/loadgen"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/profile"
)

// Bounds of a sweep.
const (
	mostPoints = 1000
	mostRounds = 100
)

// SweepOptions configures [Sweep]. The zero value measures one point, the model as it is.
type SweepOptions struct {
	// Options are those of a single measurement. Inputs.Batch, Threads, Streams, Rate, Cold,
	// KeepSamples, Interleaver and Journal are not used. Runs and Time are those of a point over
	// all rounds.
	Options
	// Engines are combined with everything else; nil is opmeter's own engine. An empty list takes
	// the engine of the options.
	Engines []*engine.Engine
	// Batches, Threads and Streams are measured in all combinations. Empty lists mean the batch of
	// the options, one thread, one stream. A batch of 0 is that of the file.
	Batches, Threads, Streams []int
	// Rounds is the number of measurements of each point, 0 for 3.
	Rounds int
	// Each is called after each measurement with the number done and the total. May be nil.
	Each func(done, of int)
}

// SweepPoint is one measured combination.
type SweepPoint struct {
	// Engine ran the model, nil for opmeter's own.
	Engine *engine.Engine
	// Batch, Threads and Streams are the combination; a batch of 0 is that of the file.
	Batch, Threads, Streams int
	// Latency of an inference while all streams run, in seconds.
	Latency *profile.Metric
	// Throughput in items a second: inferences times the batch, or inferences if the batch is that
	// of the file. Its samples are rounds.
	Throughput *profile.Metric
	// RAMBytes is the memory of all streams beside the model, by the plan of the engine; nil for
	// external engines, whose plan is unknown.
	RAMBytes *int64
	// Best says that no other point has less latency and no less throughput, or more
	// throughput and no more latency: the Pareto front of both.
	Best bool
	// Err says why the point has no figures, or figures of some rounds only.
	Err error
}

// Sweep measures a model in all combinations of engine, batch, threads and streams. Points are
// interleaved: a round measures each for a part of its time, the next round in the opposite order,
// so that a temporary slowdown of the machine affects many points a little.
//
// When ctx ends early, points hold what was measured until then, without an error; points that were
// not begun have the context's. A point that fails has its own error. Errors of Sweep are an
// [OptionError].
func Sweep(ctx context.Context, m *Model, o SweepOptions) ([]SweepPoint, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	rounds := o.Rounds
	if rounds == 0 {
		rounds = 3
	}
	s := &sweep{m: m, o: o, rounds: rounds}
	engines := o.Engines
	if len(engines) == 0 {
		engines = []*engine.Engine{o.Engine}
	}
	for _, e := range engines {
		for _, b := range orDefault(o.Batches, o.Inputs.Batch) {
			for _, t := range orDefault(o.Threads, 1) {
				var g []int
				for _, n := range orDefault(o.Streams, 1) {
					g = append(g, len(s.points))
					s.points = append(s.points, SweepPoint{Engine: e, Batch: b, Threads: t, Streams: n})
					s.results = append(s.results, nil)
				}
				s.groups = append(s.groups, g)
			}
		}
	}
	for r := range rounds {
		groups := slices.Clone(s.groups)
		if r%2 == 1 {
			slices.Reverse(groups)
		}
		for _, g := range groups {
			g = slices.Clone(g)
			if r%2 == 1 {
				slices.Reverse(g)
			}
			s.group(ctx, g)
		}
	}
	for i := range s.points {
		s.points[i].of(s.results[i])
	}
	front(s.points)
	return s.points, nil
}

func orDefault(list []int, v int) []int {
	if len(list) == 0 {
		return []int{v}
	}
	return list
}

func (o *SweepOptions) validate() error {
	for _, x := range []struct {
		name      string
		list      []int
		low, high int
	}{{"Batches", o.Batches, 0, 1 << 20}, {"Threads", o.Threads, 1, 1024}, {"Streams", o.Streams, 1, loadgen.MaxStreams}} {
		for i, v := range x.list {
			if v < x.low || v > x.high {
				return wrong(x.name, "use %d to %d, not %d", x.low, x.high, v)
			}
			if slices.Contains(x.list[:i], v) {
				return wrong(x.name, "has %d twice", v)
			}
		}
	}
	if n := max(len(o.Engines), 1) * max(len(o.Batches), 1) * max(len(o.Threads), 1) * max(len(o.Streams), 1); n > mostPoints {
		return wrong("Batches", "these are %d combinations: use up to %d", n, mostPoints)
	}
	if slices.ContainsFunc(o.Engines, isProgram) {
		return wrong("Engine", "%s", "tflm=PROGRAM cannot be swept: it takes neither batch nor threads nor streams from outside")
	}
	if o.Phases != nil {
		return wrong("Phases", "%s", "a sweep has no phases: profile the model")
	}
	if o.Lists != nil {
		return wrong("Lists", "%s", "a sweep has lists of its own, such as Batches: leave it out")
	}
	if o.Rounds < 0 || o.Rounds > mostRounds {
		return wrong("Rounds", "use 1 to %d, not %d", mostRounds, o.Rounds)
	}
	return o.Options.Validate()
}

// sweep is the state of [Sweep].
type sweep struct {
	m       *Model
	o       SweepOptions
	rounds  int
	points  []SweepPoint
	results [][]*loadfigures.Round // by point
	groups  [][]int                // points that share sessions
	done    int
}

// group measures the points of a batch and number of threads once. They share sessions.
func (s *sweep) group(ctx context.Context, points []int) {
	fail := func(left []int, err error) {
		for _, i := range left {
			if p := &s.points[i]; p.Err == nil {
				p.Err = err
			}
			s.count()
		}
	}
	points = slices.DeleteFunc(points, func(i int) bool {
		failed := s.points[i].Err != nil
		if failed {
			s.count()
		}
		return failed
	})
	if len(points) == 0 {
		return
	}
	if err := ctx.Err(); err != nil {
		s.stopped(points, err)
		return
	}
	first := &s.points[points[0]]
	o := s.o.Options
	o.Engine, o.Inputs.Batch, o.Threads, o.Streams, o.Rate, o.Cold = first.Engine, first.Batch, first.Threads, 0, 0, ""
	h, err := o.host(s.m)
	if err != nil {
		fail(points, err)
		return
	}
	h.Time /= time.Duration(s.rounds)
	if h.Runs > 0 {
		h.Runs = (h.Runs + s.rounds - 1) / s.rounds
	}
	each := func(run func(streams int) (*loadfigures.Round, error)) error {
		for len(points) > 0 {
			i := points[0]
			r, err := run(s.points[i].Streams)
			if r != nil {
				s.results[i] = append(s.results[i], r)
			}
			if err != nil {
				return err
			}
			points = points[1:]
			s.count()
		}
		return nil
	}
	if o.Engine != nil {
		var g external.Options
		var clean func()
		if g, clean, err = s.m.externalOptions(&o, h, nil); err == nil {
			defer clean()
			err = each(func(n int) (*loadfigures.Round, error) {
				streams(&g.Request, n)
				return s.m.round(ctx, g)
			})
		}
	} else {
		most := 0
		for _, i := range points {
			most = max(most, s.points[i].Streams)
		}
		err = s.m.in.Reading(func() error {
			f, err := host.NewFleet(ctx, s.m.in.Graph, h, most)
			if err != nil {
				return err
			}
			defer f.Close()
			return each(func(streams int) (*loadfigures.Round, error) { return f.Run(ctx, streams) })
		})
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.stopped(points, ctx.Err())
	default:
		// The next points may still work; each fails by itself.
		fail(points[:1], failed(s.m.in.Graph.Path, err))
		s.group(ctx, points[1:])
	}
}

// round runs the streams of an external engine once, in a process of its own, since engines prepare
// sessions for a fixed number of streams.
func (m *Model) round(ctx context.Context, g external.Options) (*loadfigures.Round, error) {
	release, err := loop.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := external.Round(ctx, g)
	return r, engineError(m.in.Graph.Path, g.Request.Engine, err)
}

// stopped notes that points were not begun.
func (s *sweep) stopped(points []int, err error) {
	for _, i := range points {
		if len(s.results[i]) == 0 {
			s.points[i].Err = err
		}
	}
}

func (s *sweep) count() {
	s.done++
	if s.o.Each != nil {
		s.o.Each(s.done, len(s.points)*s.rounds)
	}
}

// of merges the rounds of a point.
func (p *SweepPoint) of(rounds []*loadfigures.Round) {
	p.Latency, p.Throughput, p.RAMBytes = loadfigures.Rounds(rounds, max(p.Batch, 1))
	if p.Latency == nil && p.Err == nil {
		p.Err = errors.New("nothing was measured")
	}
}

// front marks the points of the Pareto front.
func front(points []SweepPoint) {
	figures := func(p *SweepPoint) (latency, throughput float64, ok bool) {
		l, ok1 := p.Latency.Best()
		t, ok2 := p.Throughput.Best()
		return l, t, ok1 && ok2 && p.Err == nil
	}
	for i := range points {
		l, t, ok := figures(&points[i])
		if !ok {
			continue
		}
		points[i].Best = !slices.ContainsFunc(points, func(q SweepPoint) bool {
			a, b, ok := figures(&q)
			return ok && a <= l && b >= t && (a < l || b > t)
		})
	}
}

// String names the combination: "batch 4, 2 threads, 1 stream", with an external engine before it.
func (p *SweepPoint) String() string {
	batch := "the file's batch"
	if p.Batch > 0 {
		batch = fmt.Sprintf("batch %d", p.Batch)
	}
	if p.Engine != nil {
		batch = p.Engine.Name + ", " + batch
	}
	return fmt.Sprintf("%s, %s, %s", batch, figures.Plural(p.Threads, "thread"), figures.Plural(p.Streams, "stream"))
}
