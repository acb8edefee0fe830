package choose

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// UnreachableError says that no choice keeps to a bound.
type UnreachableError struct {
	// Goal names what is bounded: "speedup", "loss", "sparsity", or a cost.
	Goal string
	// Asked is the bound, Best the nearest to it that can be had.
	Asked, Best float64
}

// Error says what was asked for and what can be had.
func (e *UnreachableError) Error() string {
	form := "%s of %.4g cannot be reached: the best of these curves is %.4g"
	if e.Goal == Size || e.Goal == Flash {
		form = "%s of %.0f bytes cannot be reached: the best of these curves is %.0f"
	}
	return fmt.Sprintf(form, e.Goal, e.Asked, e.Best)
}

// Plan chooses. Name and time of creation are left to the caller. It fails with
// [UnreachableError] where no choice keeps to the bound.
//
// Cost, Bound and Gap are in the unit of what is made small: of costs for a bound on the loss, of
// additive losses otherwise.
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
	if p.sides {
		c, err = p.joint(c, err)
	}
	if err != nil {
		return nil, err
	}
	out := &study.Plan{Goal: o.Goal, Loss: o.Loss.Name, Adds: p.metric.Adds}
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
	p.front(out, p.items(true), c.pick)
	if p.sides { // from here on costs are what a change of one layer makes of this plan
		p.around(c.pick)
	}
	p.choose(out, c.pick)
	p.predict(out, c.pick)
	p.moves(out, p.items(true), c.pick)
	return out, nil
}

// Given makes the plan of given changes, one for each layer. It fails where a layer has no such change.
func Given(o Options, changes []study.Change) (*study.Plan, error) {
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
	out := &study.Plan{Goal: o.Goal, Loss: o.Loss.Name, Adds: p.metric.Adds}
	if o.Speed != nil {
		out.Speed = o.Speed.Name
	}
	p.choose(out, pick)
	p.predict(out, pick)
	return out, nil
}

// items are the curves as options: costs within a bound on losses, or losses within one on costs.
func (p *problem) items(lossBound bool) [][]option {
	items := make([][]option, len(p.curves))
	for i, c := range p.curves {
		for k, x := range c.Points {
			if x.tied != nil && p.held[i] != k {
				continue
			}
			if at, ok := p.held[i]; ok && at != k {
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

// unchanged is the cost of the model as it is.
func (p *problem) unchanged() float64 {
	if p.sides {
		return p.whole(make([]int, len(p.curves))).mid
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

// unreachable says how near the bound can be come.
func (p *problem) unreachable(items [][]option) error {
	least := 0.0
	for _, os := range items {
		least += os[0].weight
	}
	g := p.Goal
	switch {
	case g.MaxLoss != nil:
		shown, _ := p.metric.Shown(least)
		return &UnreachableError{"loss", *g.MaxLoss, shown}
	case g.Speedup != nil:
		return &UnreachableError{"speedup", *g.Speedup, p.unchanged() / (least + p.fixed)}
	case g.Sparsity != nil:
		return &UnreachableError{"sparsity", *g.Sparsity, 1 - least/max(1, p.weights())}
	case g.Size != nil:
		return &UnreachableError{Size, float64(*g.Size), least}
	}
	return &UnreachableError{p.kind, p.Limit, least + p.fixed}
}

// choose writes the choices.
func (p *problem) choose(out *study.Plan, pick []int) {
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
			ch.Cause = p.stays(i)
		}
		out.Choices = append(out.Choices, ch)
	}
}

// stays says why a layer that could change does not.
func (p *problem) stays(i int) study.Cause {
	c := p.curves[i]
	cheaper := slices.ContainsFunc(c.Points, func(x Point) bool { return x.Cost < c.Points[0].Cost })
	if cheaper {
		return study.Spent
	}
	if p.timed() && p.why(i) == study.NoKernel {
		return study.NoKernel
	}
	return study.NoGain
}

// predict adds up what the choices are like.
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
	if p.profiled() && p.kind == Energy {
		cost := p.whole(pick)
		o.Energy = profile.Value(profile.Estimated, cost.mid, ends)
		if cost.lo < cost.hi {
			o.Energy.Band = &[2]float64{max(0, cost.lo), cost.hi}
		}
	}
	p.time(o, p.changes(pick))
}

// ends are where intervals of predictions come from, for people.
const ends = "ends of the layers' intervals added up"

func (p *problem) shownLoss(loss interval) *profile.Metric {
	mid, ok := p.metric.Shown(loss.mid)
	if !ok {
		return nil
	}
	m := profile.Value(profile.Estimated, mid, "losses of layers added up: "+p.metric.Adds)
	a, is := p.metric.Shown(loss.lo)
	b, ok := p.metric.Shown(loss.hi)
	if is && ok && loss.lo < loss.hi {
		m.Band = &[2]float64{min(a, b), max(a, b)}
		if p.metric.Adds == Drops {
			m.Method += "; intervals as independent ones"
		} else {
			m.Method += "; " + ends
		}
	}
	return m
}

// among is how times of measured layers become that of a model, for people.
const among = "times of layers added up; interval by models of mixed changes"

// times writes the time of the model and how many times as fast it is.
func (p *problem) times(o *study.Outcome, cost interval, method string) {
	whole := p.fixed
	for i := range p.Layers {
		v, _ := p.base(i)
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

// time predicts the time of a model with a change for each layer by the performance profile, where there is one that knows it.
func (p *problem) time(o *study.Outcome, changes []study.Change) {
	if p.Speed == nil {
		return
	}
	t := &problem{Options: p.Options, kind: Time, sums: p.sums}
	t.Costs, t.Only = nil, nil
	if p.profiled() && p.kind == Energy {
		t.Speed = p.clock
	}
	t.fixed = t.rest()
	if cost, ok := t.forecast(changes); ok {
		method := among
		if !t.here() {
			method = ends
		}
		t.times(o, cost, method)
	}
}

// front writes the plans for other bounds, with the chosen one among them.
func (p *problem) front(out *study.Plan, items [][]option, pick []int) {
	chosen := spot{cost: p.fixed, loss: p.constant()}
	for i, c := range p.curves {
		x := &c.Points[pick[i]]
		chosen.cost += x.Cost
		chosen.loss += p.lossOf(x)
	}
	if p.sides {
		chosen.cost = p.whole(pick).mid
	}
	placed := false
	place := func() {
		out.Front = append(out.Front, study.FrontPoint{Cost: chosen.cost, Loss: chosen.loss, Changes: p.changes(pick), Chosen: true})
		placed = true
	}
	for _, s := range p.spots(items) {
		points := make([]int, len(s.pick))
		for i, k := range s.pick {
			points[i] = items[i][k].index
		}
		f := study.FrontPoint{Cost: s.cost, Loss: s.loss + p.constant(), Changes: p.changes(points)}
		if !placed && chosen.cost <= f.Cost*(1+rounding) {
			place()
		}
		// What the chosen point equals or beats would stand there twice.
		same := math.Abs(f.Cost-chosen.cost) <= rounding*math.Abs(chosen.cost)
		if !same && (f.Cost < chosen.cost || f.Loss < chosen.loss) {
			out.Front = append(out.Front, f)
		}
	}
	if !placed {
		place()
	}
}

// spots are the plans of the front, with costs of whole models.
func (p *problem) spots(items [][]option) []spot {
	out := front(items)
	for i := range out {
		s := &out[i]
		if s.cost += p.fixed; !p.sides {
			continue
		}
		points := make([]int, len(s.pick))
		for k, at := range s.pick {
			points[k] = items[k][at].index
		}
		s.cost = p.whole(points).mid
	}
	if p.sides {
		out = rise(out)
	}
	return out
}

// moves writes what each layer would gain next: of its points that cost less the one that saves
// most for what it adds to the loss.
func (p *problem) moves(out *study.Plan, items [][]option, pick []int) {
	for i, c := range p.curves {
		now := &c.Points[pick[i]]
		var best *study.NextStep
		rate := func(m *study.NextStep) float64 {
			if m.Rate == nil {
				return math.Inf(1)
			}
			return *m.Rate
		}
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
	slices.SortStableFunc(out.NextSteps, func(a, b study.NextStep) int {
		switch {
		case a.Rate == nil && b.Rate == nil:
			return 0
		case a.Rate == nil:
			return -1
		case b.Rate == nil:
			return 1
		}
		return cmp.Compare(*b.Rate, *a.Rate)
	})
}
