package runlog

import (
	"context"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Run is one run of a model as a record tells of it. It is a source.
type Run struct {
	// Profile holds what the record says: model, target, settings, layers with their
	// figures, timeline, phases, findings. Kinds of figures are [profile.Imported].
	// Schema and the target's kind may be left out. Quantities describes figures that
	// opmeter's table lacks.
	Profile *profile.Profile
	// Hints says of each layer what the record knows about the model's operators, for
	// internal/source/join: as many as layers, or none.
	Hints []Hint
	// Lost says which records are missing, and why.
	Lost []profile.Loss
	// Missing goes to [profile.Done].
	Missing []profile.Missing
	// Attach takes what is known about a model, where the layers are not operators of one and a
	// model is a part of one of them; nil where they are. It reports whether there is such a part.
	Attach func(p, model *profile.Profile) bool
	// ResolutionS is the smallest time in seconds that the profiler can tell, 0 unknown: shorter
	// times of layers are below its resolution.
	ResolutionS float64
}

// Hint says which operators of a model a layer of a record is of.
type Hint = join.Hint

// Run sends the events of the record.
func (r *Run) Run(ctx context.Context, to source.Sink) error {
	p := *r.Profile
	p.Schema = profile.SchemaV1
	if p.Target.Kind == "" {
		p.Target.Kind = profile.TargetImport
	}
	if p.Target.ID == "" {
		p.Target.ID = "imported"
	}
	if p.Model.Name == "" {
		p.Model.Name = "unnamed"
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		l.Index = int64(i)
		if l.State == "" {
			l.State = profile.Ran
		}
		if l.Op == "" {
			l.Op = "unknown"
		}
	}
	// Columns of a timeline are large: apart from the description they are copied once.
	t := p.Timeline
	p.Timeline = nil
	events := []profile.Event{{Described: &p}}
	counters(t)
	if t != nil && len(t.Lanes)+len(t.Counters)+len(t.Memories) > 0 {
		events = append(events, profile.Event{Noted: &profile.Noted{Timeline: t}})
	}
	for i := range r.Lost {
		events = append(events, profile.Event{Lost: &r.Lost[i]})
	}
	events = append(events, profile.Event{Done: &profile.Done{Incomplete: r.Missing}})
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := to.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// counters leaves out points of counters that no timeline has room for: at times that are none,
// or out of order.
func counters(t *timeline.Timeline) {
	if t == nil {
		return
	}
	for i := range t.Counters {
		c := &t.Counters[i]
		n, last := 0, 0.0
		for k := range min(len(c.Times), len(c.Values)) {
			at, v := c.Times[k], c.Values[k]
			if !(at >= last && at <= timeline.MaxSeconds) || math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			c.Times[n], c.Values[n], last = at, v, at
			n++
		}
		c.Times, c.Values = c.Times[:n], c.Values[:n]
	}
	t.Counters = slices.DeleteFunc(t.Counters, func(c timeline.Counter) bool { return len(c.Times) == 0 })
}
