package compress

import (
	"cmp"
	"context"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/speed"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/study"
)

// Predicted times of plans often differ by less than the prediction error. Where the intervals
// overlap, the plans are measured interleaved and the fastest is taken.

// maxMeasuredPlans is how many plans are measured together. Each takes the memory of a model and
// its share of the measuring time.
const maxMeasuredPlans = 5

// mayBeAsFast reports whether plan a may be as fast as plan b, by their prediction intervals.
func mayBeAsFast(a, b *study.Plan) bool {
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

// withGoalOf returns plan a with the goal and the Pareto front of plan b.
func withGoalOf(a, b *study.Plan) *study.Plan {
	out := *a
	out.Goal, out.NextSteps, out.Bound, out.Gap = b.Goal, nil, nil, nil
	changes := changesOf(&out)
	out.Front = slices.Clone(b.Front)
	found := false
	for i := range out.Front {
		out.Front[i].Chosen = slices.Equal(out.Front[i].Changes, changes)
		found = found || out.Front[i].Chosen
	}
	for _, x := range a.Front {
		if x.Chosen && !found {
			out.Front = append(out.Front, x)
		}
	}
	return &out
}

// uniformPlans returns plans with one kind of change each that may be as fast as the mixed plan
// p.
func (j *Job) uniformPlans(c *choose.Options, p *study.Plan) (out []*study.Plan) {
	if c.Goal.MaxLoss == nil {
		return nil
	}
	for _, group := range uniformChanges(c) {
		d := *c
		d.Only = group
		if u, err := j.choosePlan(&d, false); err == nil && mayBeAsFast(u, p) {
			out = append(out, withGoalOf(u, p))
		}
	}
	return out
}

// earlierPlans returns up to two plans of the study with equal or tighter limits, made from the
// same profiles and with allowed changes only. They keep this limit as well, so a looser limit
// never gives a slower plan.
func (j *Job) earlierPlans(ctx context.Context, c *choose.Options, p *study.Plan, e *evaluator) (out []*study.Plan, err error) {
	if c.Goal.MaxLoss == nil {
		return nil, nil
	}
	m, err := choose.MetricOf(c.Loss)
	if err != nil {
		return nil, optionError("Goal", "%s", err.Error())
	}
	for _, x := range j.Study().Plans {
		g := &x.Goal
		if g.MaxLoss == nil || m.Bound(*g.MaxLoss) > m.Bound(*c.Goal.MaxLoss) || cmp.Or(g.Cost, choose.Time) != cmp.Or(c.Goal.Cost, choose.Time) ||
			x.Compat != "" || x.Speed != p.Speed || x.Loss != p.Loss || x.Measured == nil || x.Measured.Speedup == nil || !allowed(c, x) {
			continue
		}
		x = withGoalOf(x, p)
		if searchesByRunning(c, e) {
			keeps, err := j.planWithinBound(ctx, e, x, *c.Goal.MaxLoss)
			if err != nil {
				return nil, err
			}
			if !keeps {
				continue // the samples have changed since
			}
		}
		out = append(out, x)
	}
	sorting.Stable(out, func(a, b *study.Plan) int { return cmp.Compare(*b.Measured.Speedup.Median, *a.Measured.Speedup.Median) })
	return out[:min(len(out), 2)], nil
}

// allowed reports whether the options allow all changes of a plan.
func allowed(c *choose.Options, p *study.Plan) bool {
	return !slices.ContainsFunc(p.Choices, func(x study.Choice) bool {
		return !x.Change.IsZero() && (c.Keep[x.Layer] != "" || slices.Contains(c.Goal.Exclude, x.Layer) ||
			slices.Contains(c.WithoutStructures, x.Change.Structure) || slices.Contains(c.WithoutFormats, x.Change.Format))
	})
}

// replaceBeaten replaces the study's plans with looser limits that p beats: p was measured to be
// at least as fast and to lose no more. A looser limit then never shows a slower plan because it
// was asked for first.
func (j *Job) replaceBeaten(p *study.Plan) error {
	for _, x := range slices.Clone(j.Study().Plans) {
		if x.Name == p.Name || !j.tighterGoal(p, x) || !beats(p, x) {
			continue
		}
		c := &choose.Options{Goal: x.Goal, WithoutStructures: x.Goal.WithoutStructures, WithoutFormats: x.Goal.WithoutFormats}
		if !x.Goal.Ends {
			c.Keep = choose.BoundaryLayers(j.m, j.Study().Layers)
		}
		if !allowed(c, p) {
			continue
		}
		y := withGoalOf(p, x)
		y.Name, y.Created = x.Name, now()
		if err := j.File.Append(study.Record{Plan: y}); err != nil {
			return err
		}
	}
	return nil
}

// tighterGoal reports whether plan p has a goal of the same kind as x that is at least as strict,
// with the same profiles.
func (j *Job) tighterGoal(p, x *study.Plan) bool {
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

// beats reports whether plan p was measured to be at least as fast as x and to lose no more,
// where the losses are known.
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
	case p.Adds == choose.Noise: // signal-to-noise ratio: higher is better
		return v >= w
	}
	return v <= w
}

// measurePlans applies plans, measures the models interleaved, and returns the winner.
func (j *Job) measurePlans(ctx context.Context, o *PlanOptions, plans []*study.Plan, e *evaluator, sp *study.Speed, wins func(a, b *study.Plan) bool) (*study.Plan, error) {
	var run []*study.Plan
	for _, p := range plans {
		same := func(x *study.Plan) bool {
			return slices.EqualFunc(p.Choices, x.Choices, func(a, b study.Choice) bool { return a.Change == b.Change })
		}
		if !slices.ContainsFunc(run, same) && len(run) < maxMeasuredPlans {
			run = append(run, p)
		}
	}
	if o.SkipRun || !sp.Timed() {
		run = run[:1] // no timing, so nothing decides which is faster
	}
	if err := j.evaluatePlans(ctx, o, run, e, sp); err != nil {
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

// evaluatePlans applies plans and measures the resulting models. Plans whose model does not run
// are skipped; if none runs, the error of the first is returned.
func (j *Job) evaluatePlans(ctx context.Context, o *PlanOptions, plans []*study.Plan, e *evaluator, sp *study.Speed) error {
	if o.SkipRun {
		return nil
	}
	j.progress("applying the plan", 0)
	changed := make([]changedModel, len(plans))
	models := make([]*graph.Model, len(plans))
	for i, p := range plans {
		e.setRanges(p)
		var err error
		if changed[i], err = j.applied(ctx, p, o.Try, false); err != nil {
			return err
		}
		models[i] = changed[i].m
	}
	if err := j.planTargetMemory(ctx, o, plans, models, sp); err != nil {
		return err
	}
	found := make([]speed.Compared, len(plans))
	if sp.Timed() {
		const long = 4 // times the usual time: one comparison covers all models
		var err error
		if found, err = j.compareMany(ctx, o.External, models, max(sp.Threads, 1), sp.Batch, cmp.Or(o.Time, long*speed.UsualTime)); err != nil {
			return contextError(ctx, err)
		}
	}
	ran := false
	for i, p := range plans {
		p.Measured = nil
		if found[i].Err != nil {
			continue
		}
		out := study.Outcome{Params: p.Predicted.Params, LatencyS: found[i].After, Speedup: found[i].Speedup}
		j.countZeros(&changed[i], p, &out)
		if e != nil {
			var err error
			if out.Loss, err = e.loss(ctx, e.held, changed[i]); err != nil {
				return err
			}
		}
		p.Measured, ran = &out, true
		changed[i].recordCauses(p)
	}
	if !ran {
		return found[0].Err
	}
	return nil
}

// recordCauses notes in the plan which changes could not be made.
func (c *changedModel) recordCauses(p *study.Plan) {
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

// faster reports whether plan a was measured to be faster than b.
func faster(a, b *study.Plan) bool {
	x, ok := a.Measured.Speedup.Best()
	y, is := b.Measured.Speedup.Best()
	return ok && is && x > y
}
