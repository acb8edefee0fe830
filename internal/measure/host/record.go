package host

import (
	"context"
	"time"

	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// Recorder is a session that records every inference, including the first, with the clock read at
// every operator. It must be used by one goroutine at a time, under [mapped.Guard] if the model's
// constants are in a mapped file.
type Recorder struct {
	r      *runner
	b      *profile.Builder
	tm     *engine.Timing
	work   *selfTimes
	rec    *loop.Recorder // without the first inference if there are others
	events *recording
	calls  []int64
	runs   int
	first  []int64 // self times of the first inference, and its duration
	wall   int64
}

// prepareQuantity describes the time that steps of the main graph took to be prepared.
var prepareQuantity = profile.Quantity{Key: "prepare_s", Unit: "s", Head: "prepare", Name: "Time to prepare", Group: "Time", Adds: true, Better: -1, Doc: "Time that the layer took to be prepared, once and before the first inference: choosing a kernel and packing weights. It is not a part of the layer's time."}

// NewRecorder makes a session that records.
func NewRecorder(m *graph.Model, identity func() (*describe.Identity, error), o Options) (*Recorder, error) {
	c := &Recorder{b: profile.NewBuilder()}
	c.r = &runner{m: m, o: o, to: c.b}
	if err := c.r.describe(identity); err != nil {
		return nil, err
	}
	s := &c.r.p.Settings
	s.Passes, s.GarbageCollector, s.ReferenceLoop = "recorded", "", ""
	if err := c.r.prepare(); err != nil {
		return nil, err
	}
	c.tm = c.r.s.NewTiming()
	for _, g := range c.tm.Bodies {
		if len(g) > 0 {
			c.tm.Events = make([]engine.BodyEvent, 0, bodyEvents)
		}
	}
	return c, nil
}

// Session returns the session that the recorder runs.
func (c *Recorder) Session() *engine.Session { return c.r.s }

// Inputs returns the inputs of the session.
func (c *Recorder) Inputs() []*tensor.Tensor { return c.r.ins }

// Run computes one inference and records it.
func (c *Recorder) Run(ctx context.Context) error {
	if err := c.r.s.RunTimed(ctx, c.tm); err != nil {
		return err
	}
	if c.runs == 0 {
		if err := c.begin(); err != nil {
			return err
		}
	}
	c.runs++
	c.events.add(c.tm, false)
	c.work.read(c.tm)
	wall := c.tm.Bounds[len(c.tm.Bounds)-1] - c.tm.Bounds[0]
	if c.runs == 1 {
		c.first, c.wall = append(c.first, c.work.self...), wall
	} else {
		c.rec.Add(c.work.self, wall, false)
	}
	for i, n := range c.work.calls {
		c.calls[i] += n
	}
	return nil
}

// begin is called after the first inference, when bodies are planned.
func (c *Recorder) begin() error {
	r := c.r
	r.phases.FirstRunS = new(float64(c.tm.Bounds[len(c.tm.Bounds)-1]-c.tm.Bounds[0]) / 1e9)
	r.slots = r.list()
	if err := r.refine(); err != nil {
		return err
	}
	c.work, c.calls = newSelfTimes(r.slots), make([]int64, len(r.slots))
	c.rec = loop.NewRecorder(len(r.slots), 4096)
	seen := c.tm.Events
	c.events = newRecording(r.slots, len(r.m.Main().Nodes), c.tm, 0)
	if seen != nil {
		c.tm.Events = seen
	}
	return nil
}

// Profile returns the profile of all inferences so far: times are over all but the first, or over
// the only one; the timeline has all of them. It returns nil before the first.
func (c *Recorder) Profile() (*profile.Profile, error) {
	if c.runs == 0 {
		return nil, nil
	}
	r := c.r
	if c.runs == 1 {
		rec := loop.NewRecorder(len(r.slots), 1)
		rec.Add(c.first, c.wall, false)
		c.rec = rec
	}
	// Figures are derived from samples as for any other run.
	p := &pass{runner: r, rec: c.rec, calls: c.calls, recorded: true}
	how := "sum of the clock over recorded inferences, without the first"
	if c.runs == 1 {
		how = "the first inference"
	}
	walls := c.rec.Walls()
	m := profile.Summarize(profile.Measured, walls, how)
	if err := p.total("latency_s", m); err != nil {
		return nil, err
	}
	if err := p.layers(*m.Median); err != nil {
		return nil, err
	}
	n := r.memory()
	n.Timeline, n.Latencies = c.events.timeline(), figures.Kept(walls, false)
	n.Timeline.Method = "clock read at the boundaries of operators; all inferences, the first included"
	n.Quantities = []profile.Quantity{prepareQuantity}
	if err := r.note(n); err != nil {
		return nil, err
	}
	took := r.s.Prepared()
	for i := range r.slots {
		if s := &r.slots[i]; s.Graph == 0 && s.State == plan.Runs {
			if err := p.figure(i, prepareQuantity.Key, profile.Value(profile.Measured, float64(took[s.Node.Index])/1e9, "")); err != nil {
				return nil, err
			}
		}
	}
	computer := machine.NewWatch()
	computer.Begin()
	if err := r.note(profile.Noted{Host: computer.End()}); err != nil {
		return nil, err
	}
	out := c.b.Profile()
	out.Created = time.Now().UTC().Format(time.RFC3339)
	return out, nil
}

// Start returns when the first inference began, by the clock of [engine.Now].
func (c *Recorder) Start() int64 {
	if c.events == nil {
		return 0
	}
	return c.events.zero()
}
