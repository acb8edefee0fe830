package runlog

import (
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/internal/measure/figures"
	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/profile"
)

// Tally adds up the times of a record's layers over its inferences, by the rules of
// a run on this computer: a layer's time in an inference is over all its calls and
// without what it runs; the first inference counts separately where more follow; layers
// take their shares of the median inference. Memory is bounded, however many
// inferences there are. The zero value is ready.
type Tally struct {
	rec   *loop.Recorder
	one   []int64 // of the inference under way, nanoseconds by layer
	now   []int64 // calls in it
	calls []int64
	hit   bool  // the system reported a disturbance during the inference under way
	held  *held // the first inference, until it is known whether more follow
	first *held
	order []int
}

// held is one inference.
type held struct {
	times, calls []int64
	wall         int64
	disturbed    bool
}

// Call adds a call of a layer in the inference under way, self nanoseconds long
// without the layers that it runs. Layers are numbered from 0 by whoever calls;
// negative times count as none.
func (t *Tally) Call(layer int, self int64) {
	for len(t.one) <= layer {
		t.one, t.now, t.calls = append(t.one, 0), append(t.now, 0), append(t.calls, 0)
	}
	t.one[layer] += max(0, self)
	t.now[layer]++
}

// End ends an inference that took wall nanoseconds; below 0 it is the sum of its calls.
func (t *Tally) End(wall int64) {
	if wall < 0 {
		wall = 0
		for _, v := range t.one {
			wall += v
		}
	}
	h := &held{t.one, t.now, wall, t.hit}
	t.hit = false
	switch {
	case t.rec == nil && t.held == nil:
		t.held = h
		t.one, t.now = make([]int64, len(h.times)), make([]int64, len(h.calls))
		return
	case t.rec == nil:
		t.first, t.held = t.held, nil
	}
	t.add(h)
	clear(t.one)
	clear(t.now)
}

// Disturbed says that the system reported a disturbance during the inference under way, such as a
// preemption. Figures come from the other inferences if there are enough of them.
func (t *Tally) Disturbed() { t.hit = true }

// Drop forgets what was added since the last inference ended, such as of one whose
// record is cut.
func (t *Tally) Drop() {
	clear(t.one)
	clear(t.now)
	t.hit = false
}

func (t *Tally) add(h *held) {
	if t.rec == nil {
		t.rec = loop.NewRecorder(0, profile.KeptSamples)
	}
	t.rec.Grow(len(h.times))
	t.rec.Add(h.times, h.wall, h.disturbed)
	for i, n := range h.calls {
		t.calls[i] += n
	}
}

// Reorder says which number each of the profile's layers had in [Tally.Call], for
// layers that stand in another order. Without it they are the same.
func (t *Tally) Reorder(number []int) { t.order = number }

// row is the number of a layer.
func (t *Tally) row(layer int) int {
	if layer < len(t.order) {
		return t.order[layer]
	}
	return layer
}

// Fill puts the figures into a profile whose layers are those of the tally: times,
// calls, the whole model's time, what lies between operators, the first inference.
// Layers that no inference called are [profile.NotReached].
func (t *Tally) Fill(p *profile.Profile) {
	if t.held != nil {
		t.add(t.held)
		t.held = nil
	}
	if t.rec == nil || t.rec.Runs() == 0 {
		return
	}
	t.rec.Grow(len(p.Layers))
	for len(t.calls) < len(p.Layers) {
		t.calls = append(t.calls, 0)
	}
	walls, used := t.rec.Walls(), estimator.Walls(t.rec.Inferences())
	latency := profile.FromSummary(profile.Imported, stats.Summarize(used), "")
	if len(used) < len(walls) {
		latency.Method = "undisturbed inferences"
	}
	d := figures.DivideRecorded(profile.Imported, *latency.Median, len(t.calls), t.rec)
	inside := make([]float64, len(p.Layers))
	for i := range inside {
		inside[i] = d.Time(t.row(i))
	}
	owner := make([]bool, len(p.Layers))
	for i := len(p.Layers) - 1; i >= 0; i-- {
		if o := p.Layers[i].Parent; o != nil && *o >= 0 && *o < int64(i) {
			inside[*o] += inside[i]
			owner[*o] = true
		}
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		row := t.row(i)
		if t.calls[row] == 0 {
			if l.State == "" || l.State == profile.Ran {
				l.State = profile.NotReached
			}
			continue
		}
		l.Latency, l.Samples = d.Metric(row), d.Samples(row)
		if c := float64(t.calls[row]) / float64(t.rec.Runs()); c != 1 {
			l.Calls = &c
		}
		if owner[i] {
			l.Total = profile.Value(profile.Imported, inside[i], "sum of the layer and those inside it")
		}
	}
	p.Totals.Latency, p.Totals.LatencySamples = latency, walls
	p.Reconcile = d.Reconcile()
	if t.first != nil {
		if p.Phases == nil {
			p.Phases = &profile.Phases{}
		}
		if p.Phases.FirstRunS == nil {
			p.Phases.FirstRunS = new(float64(t.first.wall) / 1e9)
		}
	}
}
