package compress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// evaluator runs the models of plans on the samples that plans are chosen by, and the chosen one
// on the held-out samples.
type evaluator struct {
	metric      string
	data        *LossOptions
	tried, held *loss.Trial
	// ranges are the value ranges on the samples used by profiles, nil where no change needs
	// them.
	ranges map[string][2]float32
}

// newEvaluator makes an evaluator for the metric of a profile. It is nil where plans are not run,
// without data, or where the profile's method does not need any.
func (j *Job) newEvaluator(ctx context.Context, plan *PlanOptions, p *study.Loss) (*evaluator, error) {
	o := plan.Try
	if plan.SkipRun || o == nil || o.Data == nil || p == nil || !needsData(p.Method) {
		return nil, nil
	}
	if err := o.Data.open(j); err != nil {
		return nil, err
	}
	s := p.LossSettings
	if s.Method == study.OutputError {
		s.Method, s.Metric = study.EndToEnd, loss.RelativeError
	}
	trial := func(data *samples.Set) (*loss.Trial, error) {
		job := loss.Job{
			Model: j.m, Layers: j.Layers, Data: data, Settings: s, Threads: o.Threads, Seed: o.Seed, Command: o.Command, CommandTime: o.CommandTime,
			Progress: func(share float64, doing string) { j.progress("trying plans: "+doing, share) },
		}
		t, err := job.Trial(ctx)
		if err != nil {
			err = contextError(ctx, fmt.Errorf("trying plans: %w", err))
		}
		return t, err
	}
	e := &evaluator{metric: s.Metric, data: o}
	var err error
	if e.tried, err = trial(o.Data.tried); err != nil {
		return nil, err
	}
	e.held = e.tried
	if o.Data.held != o.Data.tried {
		if e.held, err = trial(o.Data.held); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(p.Changes, func(c study.Change) bool { return c.Format == study.Int8 }) {
		found, err := loss.Ranges(ctx, j.m, j.Layers, o.Data.used, o.Ranges, o.Threads)
		if err != nil {
			return nil, contextError(ctx, fmt.Errorf("ranges of activations: %w", err))
		}
		e.ranges = map[string][2]float32{}
		for name, r := range found {
			e.ranges[name] = [2]float32{r.Lo, r.Hi}
		}
	}
	return e, nil
}

// setRanges gives a plan the activation ranges that its model needs.
func (e *evaluator) setRanges(p *study.Plan) {
	if e != nil && slices.ContainsFunc(p.Choices, func(c study.Choice) bool { return c.Change.Format == study.Int8 }) {
		p.Ranges = e.ranges
	}
}

// loss returns the loss of a changed model, in the form that goals bound.
func (e *evaluator) loss(ctx context.Context, t *loss.Trial, c changedModel) (*profile.Metric, error) {
	x, err := t.Try(ctx, c.m)
	if err != nil {
		return nil, contextError(ctx, fmt.Errorf("trying plans: %w", err))
	}
	if x.Lost != nil {
		return x.Lost, nil
	}
	base, based := t.Base.Best()
	v, ok := x.Value.Best()
	switch {
	case !ok || math.IsNaN(v) || math.IsInf(v, 0):
		return nil, nil
	case based:
		return profile.Value(profile.Measured, v-base, "difference from the unchanged model on the same samples"), nil
	}
	return x.Value, nil
}

// spare is the number of standard errors that a loss keeps from its bound: 95 % of losses at the
// bound seem greater. Of many plans, the chosen one is favoured by the samples (selection bias).
const spare = 1.645

// withinBound reports whether a loss keeps to a bound, with some standard errors to spare. Gains
// count as no drop.
func (e *evaluator) withinBound(m *profile.Metric, bound float64) bool {
	v, ok := m.Best()
	if e.metric == loss.SNR {
		return ok && v >= bound
	}
	if ok && loss.HigherIsBetter(e.metric) {
		v = max(v, 0) + spare*max(standardError(m), unseenError(m, bound))
	}
	// Shares such as 1 of 100 samples are not exactly .01.
	return ok && v <= bound+1e-9
}

// unseenError is the standard error of a drop of samples that are right or wrong, as if one more
// sample differed: no difference among n samples says little about rare ones. It is 0 where there
// are too few samples for the bound, since no plan could keep to it.
func unseenError(m *profile.Metric, bound float64) float64 {
	if m.StdDev == nil || m.N == nil || *m.N <= 0 || float64(*m.N)*bound < spare {
		return 0
	}
	n := float64(*m.N)
	v, _ := m.Best()
	differ := (*m.StdDev**m.StdDev + v*v) * n
	return math.Sqrt(differ+1) / n
}

// planWithinBound reports whether a plan keeps to a bound on the samples that plans are chosen
// by, and records its loss on them.
func (j *Job) planWithinBound(ctx context.Context, e *evaluator, p *study.Plan, bound float64) (bool, error) {
	e.setRanges(p)
	c, err := j.applied(ctx, p, e.data, false)
	if err != nil {
		return false, err
	}
	p.Predicted.Loss, err = e.loss(ctx, e.tried, c)
	return e.withinBound(p.Predicted.Loss, bound), err
}

// standardError returns the standard error of a loss: from the deviation over samples where
// known, else from the upper end of its interval, 0 without an interval.
func standardError(m *profile.Metric) float64 {
	if m.StdDev != nil && m.N != nil && *m.N > 0 {
		return *m.StdDev / math.Sqrt(float64(*m.N))
	}
	if m.CI95 == nil {
		return 0
	}
	return (m.CI95[1] - *m.Median) / 1.96
}

// searchesByRunning reports whether a plan is searched for by running models.
func searchesByRunning(c *choose.Options, e *evaluator) bool {
	return e != nil && c.Goal.MaxLoss != nil && c.Loss.Method != study.OneShot
}

// search finds plans whose models keep to the bound when they are run, the cheapest by the
// profiles first. Losses of single layers only give the order of plans. Candidates are the plans
// of the Pareto front, and those with one change for all layers that may be faster.
func (j *Job) search(ctx context.Context, c choose.Options, e *evaluator) ([]*study.Plan, error) {
	goal := c.Goal
	m, err := choose.MetricOf(c.Loss)
	if err != nil {
		return nil, optionError("Goal", "%s", err.Error())
	}
	most, err := lossUpperBound(c)
	if err != nil {
		return nil, optionError("Goal", "%s", err.Error())
	}
	at := func(c choose.Options, lost float64) (*study.Plan, error) {
		shown, _ := m.UserLoss(max(lost*(1+1e-9), math.SmallestNonzeroFloat64))
		c.Goal.MaxLoss = &shown
		p, err := j.choosePlan(&c, false)
		if err == nil {
			p.Goal = goal
		}
		return p, err
	}
	all, err := at(c, most)
	if err != nil {
		return nil, err
	}
	// Points rise in cost; the last has the least loss.
	n := len(all.Front)
	var run []*study.Plan
	p, tried, err := lastWithin(n, func(k int) (*study.Plan, bool, error) {
		j.progress("trying plans", float64(len(run))/expectedTrials)
		p, err := at(c, all.Front[n-1-k].Loss)
		if err != nil {
			return nil, false, err
		}
		keeps, err := j.planWithinBound(ctx, e, p, *goal.MaxLoss)
		run = append(run, p)
		return p, keeps, err
	})
	if err != nil {
		return nil, err
	}
	if p == nil {
		least, _ := tried.Predicted.Loss.Best()
		return nil, optionError("Goal", "no plan keeps the loss within %.4g: the lowest loss is %.4g", *goal.MaxLoss, least)
	}
	recordLosses(p, run, m)
	out := []*study.Plan{p}
	for _, group := range uniformChanges(&c) {
		u, _, err := lastWithin(len(group), func(k int) (*study.Plan, bool, error) {
			j.progress("trying plans", 1)
			d := c
			d.Only = group[k : k+1]
			u, err := at(d, most)
			if err != nil || !mayBeAsFast(u, p) {
				return u, k < len(group)-1 && err == nil, err // a higher level may be as fast
			}
			keeps, err := j.planWithinBound(ctx, e, u, *goal.MaxLoss)
			return u, keeps, err
		})
		if err != nil {
			return nil, err
		}
		if u != nil && u.Predicted.Loss.Kind == profile.Measured && mayBeAsFast(u, p) {
			out = append(out, withGoalOf(u, p))
		}
		if len(group) > 1 || group[0].Structure != study.Dense {
			continue
		}
		whole, err := wholeModelPlans(c, group, func(d choose.Options) (*study.Plan, error) { return at(d, most) })
		if err != nil {
			return nil, err
		}
		for _, u := range whole {
			keeps, err := j.planWithinBound(ctx, e, u, *goal.MaxLoss)
			if err != nil {
				return nil, err
			}
			if keeps {
				out = append(out, withGoalOf(u, p))
			}
		}
	}
	return out, nil
}

// wholeModelPlans returns the plans with one format that others have to beat, first and last layers
// included: in all layers that gain, and in all that can have it, as a converter stores it.
func wholeModelPlans(c choose.Options, format []study.Change, gaining func(choose.Options) (*study.Plan, error)) (out []*study.Plan, err error) {
	c.Only, c.Keep = format, nil
	u, err := gaining(c)
	if _, ok := errors.AsType[*OptionError](err); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := choose.UniformPlan(c, format[0])
	switch {
	case err != nil:
		return nil, optionError("Goal", "%s", err.Error())
	case all == nil || slices.Equal(changesOf(u), changesOf(all)):
		return []*study.Plan{u}, nil
	}
	return []*study.Plan{u, all}, nil
}

// smallShare is the share of a loss bound that is small for a layer.
const smallShare = .25

// keptBoundaries returns the first and last layers that stay unchanged: those whose measured loss
// is not small with any change. Models that are run on data need no rule for these layers.
func keptBoundaries(keep map[int]study.Cause, p *study.Loss, bound float64) map[int]study.Cause {
	m, err := choose.MetricOf(p)
	if err != nil || p.Random {
		return keep
	}
	out := maps.Clone(keep)
	for _, x := range p.Points {
		if v, ok := x.Value.Best(); ok && !x.Change.IsZero() && m.Loss(v) <= smallShare*m.Bound(bound) {
			delete(out, x.Layer)
		}
	}
	return out
}

// expectedTrials is the usual number of plans that are run, for the progress.
const expectedTrials = 30

// recordLosses stores in the front of a plan the losses that plans had when they were run.
func recordLosses(p *study.Plan, run []*study.Plan, m choose.Metric) {
	for _, x := range run {
		v, ok := x.Predicted.Loss.Best()
		if !ok || x.Predicted.Loss.Kind != profile.Measured {
			continue
		}
		changes := changesOf(x)
		for i := range p.Front {
			if slices.Equal(p.Front[i].Changes, changes) {
				p.Front[i].Loss = max(m.Bound(v), 0)
			}
		}
	}
}

// lossUpperBound is more than any plan loses by the profiles.
func lossUpperBound(c choose.Options) (float64, error) {
	curves, err := choose.Curves(c)
	sum := 1.0
	for _, x := range curves {
		most := 0.0
		for _, p := range x.Points {
			most = max(most, p.Loss)
		}
		sum += most
	}
	return sum, err
}

// lastWithin finds the last of n plans, in order of rising loss, that keeps a bound (nil for
// none), and returns the plan tried last too. Losses are not strictly monotonic: after the
// bisection a few plans further on are tried.
func lastWithin(n int, try func(k int) (*study.Plan, bool, error)) (best, last *study.Plan, err error) {
	var keeps bool
	lo, hi := -1, n // lo keeps the bound, hi does not
	for hi-lo > 1 {
		k := lo + (hi-lo)/2
		if last, keeps, err = try(k); err != nil {
			return nil, nil, err
		}
		if keeps {
			lo, best = k, last
		} else {
			hi = k
		}
	}
	from := lo
	for step := 2; from+step < n && step <= 16; step *= 2 {
		if last, keeps, err = try(from + step); err != nil {
			return nil, nil, err
		}
		if keeps {
			best = last
		}
	}
	return best, last, nil
}

// uniformChanges lists the measured changes by structure and format, in order of rising level,
// where the goal is time.
func uniformChanges(c *choose.Options) (groups [][]study.Change) {
	if c.Speed == nil || c.Speed.Counted || c.Goal.Cost != "" && c.Goal.Cost != choose.Time {
		return nil
	}
	by := map[study.Change]int{}
	for _, x := range c.Speed.Changes {
		key := x
		key.Level = 0
		if x.IsZero() || slices.Contains(c.WithoutStructures, x.Structure) || slices.Contains(c.WithoutFormats, x.Format) {
			continue
		}
		k, ok := by[key]
		if !ok {
			k = len(groups)
			by[key], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], x)
	}
	for _, g := range groups {
		sorting.Func(g, func(a, b study.Change) int { return cmp.Compare(a.Level, b.Level) })
	}
	return groups
}
