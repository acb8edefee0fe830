package compress

import (
	"cmp"
	"context"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/study"
)

// Predicted times of plans differ by less than they are off by: of those whose intervals meet, the fastest is found by measuring them in the
// same turns.

// mostRivals is how many plans are measured in the same turns: each takes the memory of a model and its share of the time.
const mostRivals = 5

// rivals reports whether a plan may be as fast as another by their intervals.
func rivals(a, b *study.Plan) bool {
	x, ok := a.Predicted.Speedup.Best()
	y, is := b.Predicted.Speedup.Best()
	if !ok || !is {
		return false
	}
	if ends := a.Predicted.Speedup.Band; ends != nil {
		x = ends[1]
	}
	if ends := b.Predicted.Speedup.Band; ends != nil {
		y = ends[0]
	}
	return x >= y
}

// inPlaceOf gives a plan what is known of the front that another one is of.
func inPlaceOf(a, b *study.Plan) *study.Plan {
	out := *a
	out.Goal, out.Moves, out.Bound, out.Gap = b.Goal, nil, nil, nil
	out.Front = slices.Clone(b.Front)
	for i := range out.Front {
		out.Front[i].Chosen = slices.EqualFunc(out.Front[i].Changes, out.Choices, func(c study.Change, x study.Choice) bool { return c == x.Change })
	}
	return &out
}

// alternatives are plans of one kind of changes each that may be as fast as the one that mixes them.
func (j *Job) alternatives(c *choose.Options, p *study.Plan) (out []*study.Plan) {
	if c.Goal.MaxLoss == nil {
		return nil
	}
	for _, group := range alike(c) {
		d := *c
		d.Only = group
		if u, err := j.choose(&d, false); err == nil && rivals(u, p) {
			out = append(out, inPlaceOf(u, p))
		}
	}
	return out
}

// earlier are plans of the study for limits that are no looser, of the same profiles and with changes that are allowed: what they are keeps
// this limit, too, so that a looser limit never gives a slower plan.
func (j *Job) earlier(ctx context.Context, c *choose.Options, p *study.Plan, e *judge) (out []*study.Plan, err error) {
	if c.Goal.MaxLoss == nil {
		return nil, nil
	}
	m, err := choose.MetricOf(c.Loss)
	if err != nil {
		return nil, wrong("Goal", "%s", err.Error())
	}
	for _, x := range j.Study().Plans {
		g := &x.Goal
		if g.MaxLoss == nil || m.Bound(*g.MaxLoss) > m.Bound(*c.Goal.MaxLoss) || cmp.Or(g.Cost, choose.Time) != cmp.Or(c.Goal.Cost, choose.Time) ||
			x.Compat != "" || x.Speed != p.Speed || x.Loss != p.Loss || x.Measured == nil || x.Measured.Speedup == nil || !allowed(c, x) {
			continue
		}
		x = inPlaceOf(x, p)
		if searches(c, e) {
			keeps, err := j.within(ctx, e, x, *c.Goal.MaxLoss)
			if err != nil {
				return nil, err
			}
			if !keeps {
				continue // on other samples than those of then
			}
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b *study.Plan) int { return cmp.Compare(*b.Measured.Speedup.Median, *a.Measured.Speedup.Median) })
	return out[:min(len(out), 2)], nil
}

// allowed reports whether options let a plan's changes be.
func allowed(c *choose.Options, p *study.Plan) bool {
	return !slices.ContainsFunc(p.Choices, func(x study.Choice) bool {
		return !x.Change.IsZero() && (c.Keep[x.Layer] != "" || slices.Contains(c.Goal.Exclude, x.Layer) ||
			slices.Contains(c.WithoutStructures, x.Change.Structure) || slices.Contains(c.WithoutFormats, x.Change.Format))
	})
}

// replace puts a plan in the place of those of the study for limits that are looser where it was measured to be at least as fast and to lose no more: a
// looser limit shall not show a slower plan because it was asked for first.
func (j *Job) replace(p *study.Plan) error {
	for _, x := range slices.Clone(j.Study().Plans) {
		if x.Name == p.Name || !j.tighter(p, x) || !beats(p, x) {
			continue
		}
		c := &choose.Options{Goal: x.Goal, WithoutStructures: x.Goal.WithoutStructures, WithoutFormats: x.Goal.WithoutFormats}
		if !x.Goal.Ends {
			c.Keep = choose.Ends(j.m, j.Study().Layers)
		}
		if !allowed(c, p) {
			continue
		}
		y := inPlaceOf(p, x)
		y.Name, y.Created = x.Name, now()
		if err := j.File.Append(study.Record{Plan: y}); err != nil {
			return err
		}
	}
	return nil
}

// tighter reports whether a plan's goal is one of the same kind that asks for no less than another one's, by the same profiles.
func (j *Job) tighter(p, x *study.Plan) bool {
	if x.Compat != "" || p.Speed != x.Speed || p.Loss != x.Loss || cmp.Or(x.Goal.Cost, choose.Time) != choose.Time || cmp.Or(p.Goal.Cost, choose.Time) != choose.Time {
		return false
	}
	a, b := &p.Goal, &x.Goal
	switch {
	case a.Speedup != nil && b.Speedup != nil:
		return *a.Speedup >= *b.Speedup
	case a.MaxLoss != nil && b.MaxLoss != nil:
		lo := j.Study().Loss(p.Loss)
		if lo == nil {
			return false
		}
		m, err := choose.MetricOf(lo)
		return err == nil && m.Bound(*a.MaxLoss) <= m.Bound(*b.MaxLoss)
	}
	return false
}

// beats reports whether a plan was measured to be at least as fast as another one and to lose no more, where losses are known.
func beats(p, x *study.Plan) bool {
	if p.Measured == nil || x.Measured == nil {
		return false
	}
	a, ok := p.Measured.Speedup.Best()
	b, is := x.Measured.Speedup.Best()
	if !ok || !is || a < b {
		return false
	}
	lost, was := p.Measured.Loss, x.Measured.Loss
	if lost == nil && was == nil {
		lost, was = p.Predicted.Loss, x.Predicted.Loss
	}
	v, ok := lost.Best()
	w, is := was.Best()
	switch {
	case !ok || !is:
		return false
	case p.Adds == choose.Noise: // a ratio to noise: more of it is better
		return v >= w
	}
	return v <= w
}

// race applies plans, measures what comes out in the same turns, and returns the one that wins.
func (j *Job) race(ctx context.Context, o *PlanOptions, plans []*study.Plan, e *judge, sp *study.Speed, wins func(a, b *study.Plan) bool) (*study.Plan, error) {
	var run []*study.Plan
	for _, p := range plans {
		same := func(x *study.Plan) bool {
			return slices.EqualFunc(p.Choices, x.Choices, func(a, b study.Choice) bool { return a.Change == b.Change })
		}
		if !slices.ContainsFunc(run, same) && len(run) < mostRivals {
			run = append(run, p)
		}
	}
	if o.Unrun || !sp.Timed() {
		run = run[:1] // nothing tells which is faster
	}
	if err := j.tryPlans(ctx, o, run, e, sp); err != nil {
		return nil, err
	}
	best := run[0]
	for _, p := range run[1:] {
		if p.Measured != nil && (best.Measured == nil || wins(p, best)) {
			best = p
		}
	}
	return best, nil
}

// tryPlans applies plans and measures what comes out. Where the model of one does not run the others go on without it; the error is that of
// the first where none runs.
func (j *Job) tryPlans(ctx context.Context, o *PlanOptions, plans []*study.Plan, e *judge, sp *study.Speed) error {
	if o.Unrun {
		return nil
	}
	j.progress("applying the plan", 0)
	changed := make([]changedModel, len(plans))
	models := make([]*graph.Model, len(plans))
	for i, p := range plans {
		e.notes(p)
		var err error
		if changed[i], err = j.applied(ctx, p, o.Try, false); err != nil {
			return err
		}
		models[i] = changed[i].m
	}
	found := make([]speed.Compared, len(plans))
	if sp.Timed() {
		var err error
		if found, err = j.compare(ctx, models, sp, o); err != nil {
			return stopped(ctx, err)
		}
	}
	ran := false
	for i, p := range plans {
		p.Measured = nil
		if found[i].Err != nil {
			continue
		}
		out := study.Outcome{Params: p.Predicted.Params, LatencyS: found[i].After, Speedup: found[i].Speedup}
		j.weigh(&changed[i], p, &out)
		if e != nil {
			var err error
			if out.Loss, err = e.lost(ctx, e.held, changed[i]); err != nil {
				return err
			}
		}
		p.Measured, ran = &out, true
		changed[i].note(p)
	}
	if !ran {
		return found[0].Err
	}
	return nil
}

// note writes down which changes of a plan could not be made.
func (c *changedModel) note(p *study.Plan) {
	for i, e := range c.effects {
		if e.Cause == "" {
			continue
		}
		for k := range p.Choices {
			if p.Choices[k].Layer == c.layers[i] {
				p.Choices[k].Cause = e.Cause
			}
		}
	}
}

// compare runs changed models in turns with the unchanged one.
func (j *Job) compare(ctx context.Context, models []*graph.Model, sp *study.Speed, o *PlanOptions) ([]speed.Compared, error) {
	ins, err := j.inputs(sp.Batch)
	if err != nil {
		return nil, err
	}
	const long = 4 // times the usual time: one comparison for all
	return speed.Several(ctx, j.m, models, speed.Options{
		Engine: j.engineOptions(max(sp.Threads, 1)), Inputs: ins, Time: cmp.Or(o.Time, long*speed.UsualTime), Progress: j.o.Progress,
	})
}

// quicker reports whether a plan was measured to be faster.
func quicker(a, b *study.Plan) bool {
	x, ok := a.Measured.Speedup.Best()
	y, is := b.Measured.Speedup.Best()
	return ok && is && x > y
}
