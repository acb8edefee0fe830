package choose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// UnreachableError reports that no choice keeps to a bound.
type UnreachableError struct {
	// Goal names the bounded quantity: "speedup", "loss", "sparsity", or a cost.
	Goal string
	// Asked is the bound, Best the nearest value that can be reached.
	Asked, Best float64
}

// Error states the request and what can be reached.
func (e *UnreachableError) Error() string {
	form := "%s of %.4g cannot be reached: the best of these curves is %.4g"
	if e.Goal == Size || e.Goal == Flash {
		form = "%s of %.0f bytes cannot be reached: the best of these curves is %.0f"
	}
	return fmt.Sprintf(form, e.Goal, e.Asked, e.Best)
}

// Plan chooses a change for each layer. The caller sets name and creation time. It fails with an
// [UnreachableError] where no choice keeps to the bound.
//
// Cost, Bound and Gap are in the unit of the minimised quantity: of costs for a bound on the
// loss, of additive losses otherwise.
func Plan(o Options) (*study.Plan, error) {
	p, err := newProblem(o)
	if err != nil {
		return nil, err
	}
	return p.plan()
}

func (p *problem) plan() (*study.Plan, error) {
	o := &p.Options
	c, err := p.solve()
	if p.coupled {
		c, err = p.solveCoupled(c, err)
	}
	if err != nil {
		return nil, err
	}
	out := &study.Plan{Goal: o.Goal, Loss: o.Loss.Name, Adds: p.metric.Adds, Correction: p.Correct}
	if o.Speed != nil {
		out.Speed = o.Speed.Name
	}
	out.Bound = &c.lower
	switch {
	case c.exact:
		out.Gap = new(0.0)
	case c.lower > 0:
		out.Gap = new(max(0, c.value/c.lower-1))
	}
	p.writeFront(out, p.items(true), c.pick)
	if p.coupled { // from here on costs are marginal costs in this plan
		p.setMarginalCosts(c.pick)
	}
	p.writeChoices(out, c.pick)
	p.predict(out, c.pick)
	p.writeNextSteps(out, p.items(true), c.pick)
	return out, nil
}

// PlanFromChanges makes the plan of given changes, one per layer. It fails where a layer has no
// such change.
func PlanFromChanges(o Options, changes []study.Change) (*study.Plan, error) {
	p, err := newProblem(o)
	if err != nil {
		return nil, err
	}
	pick := make([]int, len(p.curves))
	for i, c := range p.curves {
		pick[i] = slices.IndexFunc(c.Points, func(x Point) bool { return x.Change == changes[i] })
		if pick[i] < 0 {
			return nil, fmt.Errorf("layer %d cannot have the change", i)
		}
	}
	return p.planOf(pick), nil
}

// UniformPlan makes the plan with one change of all layers that can have it, whether they gain or
// not, as a converter stores a model. It is nil where no layer can.
func UniformPlan(o Options, change study.Change) (*study.Plan, error) {
	p, err := newProblem(o)
	if err != nil {
		return nil, err
	}
	pick := make([]int, len(p.curves))
	for i, c := range p.curves {
		pick[i] = max(0, slices.IndexFunc(c.Points, func(x Point) bool { return x.Change == change }))
	}
	if slices.Max(pick) == 0 {
		return nil, nil
	}
	out, x := p.planOf(pick), p.frontPointOf(pick)
	out.Front = []study.FrontPoint{{Cost: x.cost, Loss: x.loss, Changes: p.changes(pick), Chosen: true}}
	return out, nil
}

// planOf makes the plan of given points, without a front.
func (p *problem) planOf(pick []int) *study.Plan {
	out := &study.Plan{Goal: p.Goal, Loss: p.Loss.Name, Adds: p.metric.Adds, Correction: p.Correct}
	if p.Speed != nil {
		out.Speed = p.Speed.Name
	}
	p.writeChoices(out, pick)
	p.predict(out, pick)
	return out
}

// items returns the curves as options: costs with bounded losses, or losses with bounded costs.
func (p *problem) items(lossBound bool) [][]option {
	items := make([][]option, len(p.curves))
	for i, c := range p.curves {
		for k, x := range c.Points {
			if at, held := p.held[i]; held && at != k || !held && x.tied != nil {
				continue
			}
			o := option{value: x.Cost, weight: p.lossOf(&x), index: k}
			if !lossBound {
				o.value, o.weight = o.weight, o.value
			}
			items[i] = append(items[i], o)
		}
		items[i] = frontier(items[i])
	}
	return items
}

// unchanged is the cost of the unchanged model.
func (p *problem) unchanged() float64 {
	if p.coupled {
		return p.modelCost(make([]int, len(p.curves))).mid
	}
	v := p.fixed
	for _, c := range p.curves {
		v += c.Points[0].Cost
	}
	return v
}

// budget is the bound on the cost of the whole model.
func (p *problem) budget() float64 {
	g := p.Goal
	switch {
	case g.Speedup != nil:
		return p.unchanged() / *g.Speedup
	case g.Sparsity != nil:
		return (1 - *g.Sparsity) * p.weights()
	case g.Size != nil:
		return float64(*g.Size)
	}
	return p.Limit
}

func (p *problem) weights() float64 {
	n := 0.0
	for i := range p.Layers {
		n += float64(p.Layers[i].Weights())
	}
	return n
}

// unreachable reports the nearest value that can be reached, given the least loss and the least
// cost.
func (p *problem) unreachable(loss, cost float64) error {
	g := p.Goal
	switch {
	case g.MaxLoss != nil:
		shown, _ := p.metric.UserLoss(loss)
		return &UnreachableError{"loss", *g.MaxLoss, shown}
	case g.Speedup != nil:
		return &UnreachableError{"speedup", *g.Speedup, p.unchanged() / cost}
	case g.Sparsity != nil:
		return &UnreachableError{"sparsity", *g.Sparsity, 1 - cost/max(1, p.weights())}
	}
	return &UnreachableError{p.kind, p.budget(), cost}
}

// writeChoices stores the choices.
func (p *problem) writeChoices(out *study.Plan, pick []int) {
	for i, c := range p.curves {
		x := &c.Points[pick[i]]
		ch := study.Choice{Layer: i, Change: x.Change, Cause: c.Cause}
		if p.timed() && !p.Speed.Counted && (c.Cause != study.NoData || x.Cost > 0) {
			ch.TimeS = &x.Cost
		}
		if len(c.Points) > 1 {
			ch.LossValue = &x.Loss
		}
		if len(c.Points) > 1 && x.Change.IsZero() {
			ch.Cause = p.unchangedCause(i)
		}
		out.Choices = append(out.Choices, ch)
	}
}

// unchangedCause says why a layer that could change does not.
func (p *problem) unchangedCause(i int) study.Cause {
	c := p.curves[i]
	cheaper := slices.ContainsFunc(c.Points, func(x Point) bool { return x.Cost < c.Points[0].Cost })
	if cheaper {
		return study.Spent
	}
	if p.timed() && p.causeOf(i) == study.NoKernel {
		return study.NoKernel
	}
	return study.NoGain
}

// predict predicts the outcome of the choices.
func (p *problem) predict(out *study.Plan, pick []int) {
	var losses []interval
	var params, zeros, bytes, ops int64
	opsKnown := true
	for i, c := range p.curves {
		l := &p.Layers[i]
		x := &c.Points[pick[i]]
		losses = append(losses, x.loss)
		zeros += Zeros(l, x.Change)
		params += l.Params
		bytes += Bytes(l, x.Change)
		if n := macs(l, x.Change); n != nil {
			ops += *n
		} else {
			opsKnown = false
		}
	}
	o := &out.Predicted
	o.Params, o.Zeros, o.Bytes = &params, &zeros, &bytes
	if opsKnown {
		o.MACs = &ops
	}
	o.Loss = p.shownLoss(p.metric.total(losses))
	if p.fromProfile() && p.kind == Energy {
		cost := p.modelCost(pick)
		o.Energy = profile.Value(profile.Estimated, cost.mid, methodEnds)
		if cost.lo < cost.hi {
			o.Energy.Band = &[2]float64{max(0, cost.lo), cost.hi}
		}
	}
	p.predictTime(o, p.changes(pick))
}

// methodEnds is the displayed method of prediction intervals.
const methodEnds = "sum of the layers' interval ends"

func (p *problem) shownLoss(loss interval) *profile.Metric {
	mid, ok := p.metric.UserLoss(loss.mid)
	if !ok {
		return nil
	}
	m := profile.Value(profile.Estimated, mid, "sum of layer losses: "+p.metric.Adds)
	a, is := p.metric.UserLoss(loss.lo)
	b, ok := p.metric.UserLoss(loss.hi)
	if is && ok && loss.lo < loss.hi {
		m.Band = &[2]float64{min(a, b), max(a, b)}
		if p.metric.Adds == Drops {
			m.Method += "; intervals taken as independent"
		} else {
			m.Method += "; " + methodEnds
		}
	}
	return m
}

// methodMixed is the displayed method of times predicted from mixed models.
const methodMixed = "sum of layer times; interval from models with mixed changes"

// setTimes stores the time of the model and its speed-up.
func (p *problem) setTimes(o *study.Outcome, cost interval, method string) {
	whole := p.fixed
	for _, v := range p.bases {
		whole += v
	}
	band := func(lo, hi float64) *[2]float64 {
		if !(lo < hi) || math.IsInf(hi, 0) {
			return nil
		}
		return &[2]float64{lo, hi}
	}
	if !p.Speed.Counted {
		o.LatencyS = profile.Value(profile.Estimated, cost.mid, method)
		o.LatencyS.Band = band(max(0, cost.lo), cost.hi)
	}
	if cost.mid > 0 {
		o.Speedup = profile.Value(profile.Estimated, whole/cost.mid, method)
		if cost.lo > 0 {
			o.Speedup.Band = band(whole/cost.hi, whole/cost.lo)
		}
	}
}

// predictTime predicts the time of a model with a change for each layer, if the performance
// profile allows it.
func (p *problem) predictTime(o *study.Outcome, changes []study.Change) {
	if p.Speed == nil {
		return
	}
	t := &problem{Options: p.Options, kind: Time, timeModel: p.timeModel}
	t.Costs, t.Only = nil, nil
	if p.fromProfile() && p.kind == Energy {
		t.Speed = p.timeProfile
	}
	t.fixed = t.findBases()
	if cost, ok := t.forecast(changes); ok {
		method := methodMixed
		if !t.measured() {
			method = methodEnds
		}
		t.setTimes(o, cost, method)
	}
}

// writeFront stores the plans for other bounds, including the chosen one.
func (p *problem) writeFront(out *study.Plan, items [][]option, pick []int) {
	chosen := p.frontPointOf(pick)
	placed := false
	place := func() {
		out.Front = append(out.Front, study.FrontPoint{Cost: chosen.cost, Loss: chosen.loss, Changes: p.changes(pick), Chosen: true})
		placed = true
	}
	for _, s := range p.frontPoints(items) {
		f := study.FrontPoint{Cost: s.cost, Loss: s.loss + p.lossConstant(), Changes: p.changes(pointsOf(items, s.pick))}
		if !placed && chosen.cost <= f.Cost*(1+rounding) {
			place()
		}
		// Skip points that the chosen one equals or dominates.
		same := math.Abs(f.Cost-chosen.cost) <= rounding*math.Abs(chosen.cost)
		if !same && (f.Cost < chosen.cost || f.Loss < chosen.loss) {
			out.Front = append(out.Front, f)
		}
	}
	if !placed {
		place()
	}
}

// frontPointOf returns the cost and the loss of a plan of given points.
func (p *problem) frontPointOf(pick []int) frontPoint {
	out := frontPoint{cost: p.fixed, loss: p.lossConstant()}
	for i, c := range p.curves {
		x := &c.Points[pick[i]]
		out.cost += x.Cost
		out.loss += p.lossOf(x)
	}
	if p.coupled {
		out.cost = p.modelCost(pick).mid
	}
	return out
}

// frontPoints returns the plans of the front, with costs of whole models.
func (p *problem) frontPoints(items [][]option) []frontPoint {
	out := front(items)
	for i := range out {
		s := &out[i]
		if s.cost += p.fixed; !p.coupled {
			continue
		}
		s.cost = p.modelCost(pointsOf(items, s.pick)).mid
	}
	if p.coupled {
		out = paretoPoints(out)
	}
	return out
}

// writeNextSteps stores for each layer the cheaper point that saves most per additional loss.
func (p *problem) writeNextSteps(out *study.Plan, items [][]option, pick []int) {
	rate := func(m *study.NextStep) float64 {
		if m.Rate == nil {
			return math.Inf(1)
		}
		return *m.Rate
	}
	for i, c := range p.curves {
		now := &c.Points[pick[i]]
		var best *study.NextStep
		for _, o := range items[i] {
			m := study.NextStep{Layer: i, Change: c.Points[o.index].Change, Gain: now.Cost - o.value, Loss: o.weight - p.lossOf(now)}
			if m.Gain <= 0 {
				continue
			}
			if m.Loss > 0 {
				m.Rate = new(m.Gain / m.Loss)
			}
			if best == nil || rate(&m) > rate(best) {
				best = &m
			}
		}
		if best != nil {
			out.NextSteps = append(out.NextSteps, *best)
		}
	}
	sorting.Stable(out.NextSteps, func(a, b study.NextStep) int { return cmp.Compare(rate(&b), rate(&a)) })
}
