package host

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// bodyEvents bounds the events kept of the bodies of one inference: a loop may run its body any
// number of times.
const bodyEvents = loop.MaxSpans / 4

// sampledFrom is the number of operators that a sample of the timeline is taken from.
const sampledFrom = 1 << 16

// recording records when operators ran. All memory is preallocated.
type recording struct {
	// most is the largest number of operators in a sample of the timeline, 0 for all inferences.
	most int
	// disturbed says of each run whether the system reported a disturbance.
	disturbed []bool
	main      []int32   // slot of each step of the main graph, -1 if it does not run
	bodies    [][]int32 // slots by graph and node, -1 for none
	spans     *loop.Spans
	run       []loop.Span // spans of the run being added
}

func newRecording(ss []plan.Slot, steps int, tm *engine.Timing, most int) *recording {
	limit, inner := loop.MaxSpans, bodyEvents
	if most > 0 {
		inner = min(most, bodyEvents)
		limit = min(max(sampledFrom, 2+steps+inner), loop.MaxSpans)
	}
	r := &recording{most: most, main: make([]int32, steps), bodies: make([][]int32, len(tm.Bodies)), spans: loop.NewSpans(limit)}
	for i := range r.main {
		r.main[i] = -1
	}
	nested := 0
	for g := range tm.Bodies {
		r.bodies[g] = make([]int32, len(tm.Bodies[g]))
		nested += len(tm.Bodies[g])
		for n := range r.bodies[g] {
			r.bodies[g][n] = -1
		}
	}
	for i, s := range ss {
		switch n := s.Node.Index; {
		case s.Graph > 0:
			r.bodies[s.Graph][n] = int32(i)
		case s.State == plan.Runs:
			r.main[n] = int32(i)
		}
	}
	if nested > 0 {
		tm.Events = make([]engine.BodyEvent, 0, inner)
	}
	r.run = make([]loop.Span, 0, steps+cap(tm.Events))
	return r
}

// add adds one run.
func (r *recording) add(tm *engine.Timing, disturbed bool) {
	r.disturbed = append(r.disturbed, disturbed)
	run, events := r.run[:0], tm.Events
	for i, slot := range r.main {
		if slot < 0 {
			continue
		}
		end := tm.Bounds[i+1]
		run = append(run, loop.Span{Start: tm.Bounds[i], End: end, Step: slot})
		// The events of a step's bodies follow it: events are in chronological order.
		for len(events) > 0 && events[0].End <= end {
			e := events[0]
			events = events[1:]
			if s := r.bodies[e.Graph][e.Node]; s >= 0 {
				run = append(run, loop.Span{Start: e.Start, End: e.End, Step: s})
			}
		}
	}
	r.spans.Add(tm.Bounds[0], tm.Bounds[len(tm.Bounds)-1], run, tm.Missed)
}

// timeline builds the result, nil if nothing was recorded. Time 0 is the start of the first run.
func (r *recording) timeline() *timeline.Timeline {
	runs, spans := r.spans.Kept()
	if len(runs) == 0 {
		return nil
	}
	t := &timeline.Timeline{
		Origin: "start of the first instrumented inference", Iterations: new(int64(r.spans.Runs())), Dropped: new(int64(0)),
		Method: "instrumented pass, clock read at the boundaries of operators; plain inferences ran in the longer gaps",
	}
	if n := r.spans.Every(); n > 1 && r.most == 0 {
		t.Method += fmt.Sprintf("; of %d inferences every %dth is kept", r.spans.Runs(), n)
	}
	seconds := func(ns int64) float64 { return float64(ns) / 1e9 }
	zero := runs[0].Start
	whole := timeline.Lane{Name: "iterations", Kind: timeline.Iteration}
	ops := timeline.Lane{
		Name: "operators", Kind: timeline.Layer, Group: "thread 0",
		Starts: make([]float64, 0, len(spans)), Durations: make([]float64, 0, len(spans)),
		Layers: make([]int32, 0, len(spans)), Iterations: make([]int32, 0, len(spans)),
	}
	for i, run := range runs {
		t.Names = append(t.Names, fmt.Sprintf("iteration %d", run.Number))
		whole.Starts = append(whole.Starts, seconds(run.Start-zero))
		whole.Durations = append(whole.Durations, seconds(run.End-run.Start))
		whole.Labels = append(whole.Labels, int32(i))
		whole.Iterations = append(whole.Iterations, int32(run.Number))
		*t.Dropped += run.Missed
		for _, s := range spans[run.From:run.To] {
			ops.Starts = append(ops.Starts, seconds(s.Start-zero))
			ops.Durations = append(ops.Durations, seconds(s.End-s.Start))
			ops.Layers = append(ops.Layers, s.Step)
			ops.Iterations = append(ops.Iterations, int32(run.Number))
		}
	}
	t.Lanes = []timeline.Lane{whole, ops}
	if r.most == 0 {
		return t
	}
	return figures.SampleTimeline(t, r.most, func(run int32) bool { return !r.disturbed[run] })
}

// zero returns the origin of the timeline by the engine's clock.
func (r *recording) zero() int64 {
	if runs, _ := r.spans.Kept(); len(runs) > 0 {
		return runs[0].Start
	}
	return engine.Now()
}

// maxPoints bounds the memory counter, which repeats with every inference.
const maxPoints = 100_000

// memoryOverTime adds a counter to the timeline: the live memory while each operator of the main
// graph runs, by the memory plan. Between inferences it is zero.
func memoryOverTime(t *timeline.Timeline, layers []profile.Layer) {
	if t == nil {
		return
	}
	c := timeline.Counter{Name: "live memory (memory plan)", Unit: "B"}
	put := func(at float64, bytes int64) {
		v, n := float64(bytes), len(c.Values)
		if n > 0 && c.Values[n-1] == v || n > 0 && at < c.Times[n-1] {
			return
		}
		c.Times, c.Values = append(c.Times, at), append(c.Values, v)
	}
	whole, ops := &t.Lanes[0], &t.Lanes[1]
	i := 0
	for k := range whole.Starts {
		if len(c.Times) > maxPoints {
			c.Name += fmt.Sprintf(" (of the first %d inferences kept)", k)
			break
		}
		for ; i < len(ops.Starts) && ops.Iterations[i] == whole.Iterations[k]; i++ {
			l := &layers[ops.Layers[i]]
			if l.Parent == nil && l.LiveBytes != nil {
				put(ops.Starts[i], *l.LiveBytes)
			}
		}
		put(whole.Starts[k]+whole.Durations[k], 0)
	}
	if len(c.Times) > 1 {
		t.Counters = append(t.Counters, c)
	}
}
