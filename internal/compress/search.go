package compress

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/compress/choose"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// judge runs the models of plans on the samples that profiles use, and on those held out.
type judge struct {
	metric     string
	data       *LossOptions
	used, held *loss.Trial
	// share is that of the used ones among all samples.
	share float64
	// ranges are where values reach on the samples that profiles use, nil where no change asks for them.
	ranges map[string][2]float32
}

// judge makes one for the metric of a profile; nil where there are no data, or it cannot be measured so.
func (j *Job) judge(ctx context.Context, o *LossOptions, p *study.Loss) (*judge, error) {
	if o == nil || o.Data == nil || p == nil || !needsData(p.Method) {
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
			err = stopped(ctx, fmt.Errorf("trying plans: %w", err))
		}
		return t, err
	}
	e := &judge{metric: s.Metric, data: o}
	var err error
	if e.used, err = trial(o.Data.used); err != nil {
		return nil, err
	}
	e.held, e.share = e.used, 1
	if o.Data.held != o.Data.used {
		e.share = float64(o.Data.used.Len()) / float64(o.Data.used.Len()+o.Data.held.Len())
		if e.held, err = trial(o.Data.held); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(p.Changes, func(c study.Change) bool { return c.Format == study.Int8 }) {
		found, err := loss.Ranges(ctx, j.m, j.Layers, o.Data.used, o.Ranges, o.Threads)
		if err != nil {
			return nil, stopped(ctx, fmt.Errorf("ranges of activations: %w", err))
		}
		e.ranges = map[string][2]float32{}
		for name, r := range found {
			e.ranges[name] = [2]float32{r.Lo, r.Hi}
		}
	}
	return e, nil
}

// notes gives a plan the ranges that its model needs.
func (e *judge) notes(p *study.Plan) {
	if e != nil && slices.ContainsFunc(p.Choices, func(c study.Choice) bool { return c.Change.Format == study.Int8 }) {
		p.Ranges = e.ranges
	}
}

// lost is what a changed model loses, as goals bound it.
func (e *judge) lost(ctx context.Context, t *loss.Trial, c changedModel) (*profile.Metric, error) {
	x, err := t.Try(ctx, c.m)
	if err != nil {
		return nil, stopped(ctx, fmt.Errorf("trying plans: %w", err))
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
		return profile.Value(profile.Measured, v-base, "more than the unchanged model's, on the same samples"), nil
	}
	return x.Value, nil
}

// keeps reports whether a loss keeps to a bound.
func (e *judge) keeps(m *profile.Metric, bound float64) bool {
	v, ok := m.Best()
	if e.metric == loss.SNR {
		return ok && v >= bound
	}
	// Shares of samples such as 1 of 100 are not below .01 to the bit.
	return ok && v <= bound+1e-9
}

// within reports whether a plan keeps to a bound on the samples of both kinds together, and notes what it loses on those of profiles.
// Together they are more, so that a bound of a percent is not a question of one sample.
func (j *Job) within(ctx context.Context, e *judge, p *study.Plan, bound float64) (bool, error) {
	e.notes(p)
	c, err := j.applied(ctx, p, e.data, false)
	if err != nil {
		return false, err
	}
	if p.Predicted.Loss, err = e.lost(ctx, e.used, c); err != nil || e.held == e.used {
		return e.keeps(p.Predicted.Loss, bound), err
	}
	held, err := e.lost(ctx, e.held, c)
	a, ok := p.Predicted.Loss.Best()
	b, is := held.Best()
	if err != nil || !ok || !is {
		return false, err
	}
	return e.keeps(profile.Value(profile.Measured, e.share*a+(1-e.share)*b, ""), bound), nil
}

// searches reports whether a plan is searched for by running models.
func searches(c *choose.Options, e *judge) bool {
	return e != nil && c.Goal.MaxLoss != nil && c.Loss.Method != study.OneShot
}

// search finds the cheapest plan of the front whose loss keeps to the bound when its model is run: losses of single layers
// only tell in which order plans come. Losses rise along the front, though not strictly, so that halving finds it with few runs.
func (j *Job) search(ctx context.Context, c choose.Options, e *judge) (*study.Plan, error) {
	goal := c.Goal
	curves, err := choose.Curves(c)
	if err != nil {
		return nil, wrong("Goal", "%s", err.Error())
	}
	most := 0.0
	for _, x := range curves {
		for _, p := range x.Points {
			most = max(most, p.Loss)
		}
	}
	m, err := choose.MetricOf(c.Loss)
	if err != nil {
		return nil, wrong("Goal", "%s", err.Error())
	}
	at := func(lossOf float64) (*study.Plan, error) {
		shown, _ := m.Shown(max(lossOf*(1+1e-9), math.SmallestNonzeroFloat64))
		c.Goal.MaxLoss = &shown
		p, err := j.choose(&c, false)
		if err == nil {
			p.Goal = goal
		}
		return p, err
	}
	p, err := at(most*float64(len(curves)) + 1)
	if err != nil {
		return nil, err
	}
	// Points rise in cost; the last is the one that loses least.
	front := slices.Clone(p.Front)
	keeps := false
	lo, hi := 0, len(front)-1
	for lo < hi {
		k := (lo + hi) / 2
		j.progress("trying plans", 1-float64(hi-lo)/float64(len(front)))
		if p, err = at(front[k].Loss); err != nil {
			return nil, err
		}
		if keeps, err = j.within(ctx, e, p, *goal.MaxLoss); err != nil {
			return nil, err
		}
		if keeps {
			hi = k
		} else {
			lo = k + 1
		}
	}
	if p, err = at(front[hi].Loss); err != nil {
		return nil, err
	}
	if keeps, err = j.within(ctx, e, p, *goal.MaxLoss); err == nil && !keeps && len(front) > 1 && hi == len(front)-1 {
		least, _ := p.Predicted.Loss.Best()
		return nil, wrong("Goal", "no plan keeps to a loss of %.4g: the one that loses least loses %.4g", *goal.MaxLoss, least)
	}
	return p, err
}

// smooth are losses to choose by: of accuracy and agreement, of which one sample in a few hundred is a large step, the divergence
// of the same runs, in the unit of the metric. Divergences rise as the squares of errors do, and so do small drops;
// one factor takes all to drops, fitted to those up to a tenth.
func smooth(p *study.Loss) *study.Loss {
	base, based := p.Base.Best()
	if p.Metric == loss.Top1 {
		base, based = 1, true
	}
	if p.Method != study.EndToEnd || !based || p.Metric != loss.Accuracy && p.Metric != loss.Top1 {
		return p
	}
	const small = 0.1
	drops, kls := 0.0, 0.0
	for _, x := range p.Points {
		v, ok := x.Value.Best()
		if !ok {
			continue
		}
		kl, has := x.More[loss.KL]
		if !has {
			return p
		}
		if base-v <= small {
			drops, kls = drops+base-v, kls+kl
		}
	}
	factor := 1.0
	if drops > 0 && kls > 0 {
		factor = drops / kls
	}
	out := *p
	out.Points = slices.Clone(p.Points)
	for i, x := range out.Points {
		if _, ok := x.Value.Best(); ok {
			out.Points[i].Value = profile.Value(profile.Estimated, base-factor*x.More[loss.KL], "divergence of outputs, as a drop")
		}
	}
	return &out
}
