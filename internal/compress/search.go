package compress

import (
	"cmp"
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

// keeps reports whether a loss keeps to a bound, drops with a standard error to spare, and gains as no drop: of many plans the one that is
// taken is one that these samples favour.
func (e *judge) keeps(m *profile.Metric, bound float64) bool {
	v, ok := m.Best()
	if e.metric == loss.SNR {
		return ok && v >= bound
	}
	if ok && loss.Higher(e.metric) {
		v = max(v, 0) + standard(m)
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
	if err != nil {
		return false, err
	}
	return e.keeps(both(p.Predicted.Loss, held, e.share), bound), nil
}

// both is the loss on samples of two kinds, of which the first are a share; nil where one is not known.
func both(a, b *profile.Metric, share float64) *profile.Metric {
	x, ok := a.Best()
	y, is := b.Best()
	if !ok || !is {
		return nil
	}
	m := profile.Value(profile.Measured, share*x+(1-share)*y, "")
	if wide := 1.96 * math.Hypot(share*standard(a), (1-share)*standard(b)); wide > 0 {
		m.CI95 = &[2]float64{*m.Median - wide, *m.Median + wide}
	}
	return m
}

// standard is the standard error of a loss: by the deviation of samples where that is known, else from the upper end of its interval, 0 where
// there is none.
func standard(m *profile.Metric) float64 {
	if m.StdDev != nil && m.N != nil && *m.N > 0 {
		return *m.StdDev / math.Sqrt(float64(*m.N))
	}
	if m.CI95 == nil {
		return 0
	}
	return (m.CI95[1] - *m.Median) / 1.96
}

// searches reports whether a plan is searched for by running models.
func searches(c *choose.Options, e *judge) bool {
	return e != nil && c.Goal.MaxLoss != nil && c.Loss.Method != study.OneShot
}

// search finds plans whose losses keep to the bound when their models are run, the cheapest by the profiles first: losses of single layers
// only tell in which order plans come. Those of the front come into question, and those with one change for all layers that may be faster.
func (j *Job) search(ctx context.Context, c choose.Options, e *judge) ([]*study.Plan, error) {
	goal := c.Goal
	m, err := choose.MetricOf(c.Loss)
	if err != nil {
		return nil, wrong("Goal", "%s", err.Error())
	}
	most, err := mostLoss(c)
	if err != nil {
		return nil, wrong("Goal", "%s", err.Error())
	}
	at := func(c choose.Options, lost float64) (*study.Plan, error) {
		shown, _ := m.Shown(max(lost*(1+1e-9), math.SmallestNonzeroFloat64))
		c.Goal.MaxLoss = &shown
		p, err := j.choose(&c, false)
		if err == nil {
			p.Goal = goal
		}
		return p, err
	}
	all, err := at(c, most)
	if err != nil {
		return nil, err
	}
	// Points rise in cost; the last is the one that loses least.
	n := len(all.Front)
	p, tried, err := highest(n, func(k int) (*study.Plan, bool, error) {
		j.progress("trying plans", 0)
		p, err := at(c, all.Front[n-1-k].Loss)
		if err != nil {
			return nil, false, err
		}
		keeps, err := j.within(ctx, e, p, *goal.MaxLoss)
		return p, keeps, err
	})
	if err != nil {
		return nil, err
	}
	if p == nil {
		least, _ := tried.Predicted.Loss.Best()
		return nil, wrong("Goal", "no plan keeps to a loss of %.4g: the one that loses least loses %.4g", *goal.MaxLoss, least)
	}
	out := []*study.Plan{p}
	for _, group := range alike(&c) {
		u, _, err := highest(len(group), func(k int) (*study.Plan, bool, error) {
			j.progress("trying plans", 1)
			d := c
			d.Only = group[k : k+1]
			u, err := at(d, most)
			if err != nil || !rivals(u, p) {
				return u, k < len(group)-1 && err == nil, err // a higher level may be
			}
			keeps, err := j.within(ctx, e, u, *goal.MaxLoss)
			return u, keeps, err
		})
		if err != nil {
			return nil, err
		}
		if u != nil && u.Predicted.Loss.Kind == profile.Measured && rivals(u, p) {
			out = append(out, inPlaceOf(u, p))
		}
	}
	return out, nil
}

// mostLoss is more than any plan loses by the profiles.
func mostLoss(c choose.Options) (float64, error) {
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

// highest finds the last of n plans, which lose more and more, that keeps a bound, nil for none, and the one tried last. Losses rise
// though not strictly: beyond where halving ends some further ones are looked at.
func highest(n int, try func(k int) (*study.Plan, bool, error)) (best, last *study.Plan, err error) {
	var keeps bool
	lo, hi := -1, n // lo keeps, hi does not
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

// alike are the changes that were measured, by structure and format with levels rising, where plans are to be fast.
func alike(c *choose.Options) (groups [][]study.Change) {
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
		slices.SortFunc(g, func(a, b study.Change) int { return cmp.Compare(a.Level, b.Level) })
	}
	return groups
}
