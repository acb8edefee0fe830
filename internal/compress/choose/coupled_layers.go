package choose

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/study"
)

// A layer that loses filters makes its readers smaller, and layers whose outputs are added lose
// filters together. The time of a model is then not a sum of independent layer times: each layer
// takes its unchanged time multiplied by the ratios of all changes that affect it. Plans are
// first chosen with prices of the bound ([costTerms]), then with the marginal cost of each change
// in the plan found, until nothing improves. The prices also give a lower bound.

// timeEffect is the effect of a point on times: ratios of its own and of other layers, and
// seconds of operators without weights.
type timeEffect struct {
	own    interval
	others []otherEffect
	rest   interval
}

type otherEffect struct {
	layer int
	ratio interval
}

var unity = interval{1, 1, 1}

// affectsOthers reports whether a point affects more than its own layer.
func (s *timeEffect) affectsOthers() bool { return len(s.others) > 0 || s.rest != interval{} }

// extraTime is the additional time outside of the layer itself.
func (s *timeEffect) extraTime(bases []float64) float64 {
	sum := s.rest.mid
	for _, o := range s.others {
		sum += (o.ratio.mid - 1) * bases[o.layer]
	}
	return sum
}

// effectCurves has the effects of a layer's points of a kind, by level.
type effectCurves struct {
	own    levelCurve
	others map[int]levelCurve
	rest   levelCurve
	tied   []int
}

// add adds a point; own is its layer's time ratio.
func (c *effectCurves) add(x *study.SpeedPoint, own interval, by study.Correction) {
	c.own.add(x.Change.Level, correctRatio(by, own))
	c.tied = x.With
	for _, o := range x.Affected {
		if r, ok := readInterval(o.Ratio); ok {
			k := c.others[o.Layer]
			k.add(x.Change.Level, correctRatio(by, r))
			c.others[o.Layer] = k
		}
	}
	if r, ok := readInterval(x.RestS); ok {
		c.rest.add(x.Change.Level, r.scale(cmp.Or(by.Gain, 1)))
	}
}

// at interpolates the effect at a level; false where that on the layer itself is unknown.
func (c *effectCurves) at(level float64) (s timeEffect, ok bool) {
	if s.own, ok = c.own.at(level); !ok {
		return s, false
	}
	for _, l := range slices.Sorted(maps.Keys(c.others)) {
		if r, ok := c.others[l].at(level); ok {
			s.others = append(s.others, otherEffect{l, r})
		}
	}
	s.rest, _ = c.rest.at(level)
	return s, true
}

// effectsOf returns the effects of a plan's points, by layer.
func (p *problem) effectsOf(pick []int) []timeEffect {
	out := make([]timeEffect, len(pick))
	for i, k := range pick {
		out[i] = p.curves[i].Points[k].side
	}
	return out
}

// combineEffects returns the resulting time ratios of layers, and the additional time of
// operators without weights.
func combineEffects(sides []timeEffect) (of []interval, rest interval) {
	of = make([]interval, len(sides))
	for i := range of {
		of[i] = unity
	}
	for i := range sides {
		s := &sides[i]
		of[i] = of[i].mul(s.own)
		for _, o := range s.others {
			of[o.layer] = of[o.layer].mul(o.ratio)
		}
		rest = rest.plus(s.rest)
	}
	return of, rest
}

func (v interval) mul(w interval) interval { return interval{v.lo * w.lo, v.mid * w.mid, v.hi * w.hi} }

// modelCost is the time of the model under a plan; other costs are additive.
func (p *problem) modelCost(pick []int) interval {
	if p.fromProfile() {
		return p.modelTime(combineEffects(p.effectsOf(pick)))
	}
	sum := p.fixed
	for i, k := range pick {
		sum += p.curves[i].Points[k].Cost
	}
	return interval{sum, sum, sum}
}

// modelTime is the time of the model given the time ratios of its layers.
func (p *problem) modelTime(of []interval, rest interval) interval {
	sum := interval{p.outsideWith(rest.lo), p.outsideWith(rest.mid), p.outsideWith(rest.hi)}
	for i, r := range of {
		sum = sum.plus(r.scale(p.bases[i]))
	}
	return sum
}

// outsideWith is the time outside of layers plus more, not below zero.
func (p *problem) outsideWith(more float64) float64 {
	outside := p.outsideLayers()
	return max(min(0, outside), outside+more)
}

// outsideLayers is the time outside of layers.
func (p *problem) outsideLayers() float64 {
	whole, ok := p.Speed.Latency.Best()
	if !ok || p.Speed.Counted {
		return 0
	}
	for _, b := range p.bases {
		whole -= b
	}
	return whole
}

// outsideCost is the cost outside of layers. Costs other than times are additive.
func (p *problem) outsideCost() float64 {
	if p.fromProfile() {
		return p.outsideLayers()
	}
	return p.fixed
}

// pointCost is the cost of a point of a layer whose time others reduce to a share.
func (p *problem) pointCost(layer int, x *Point, left float64) float64 {
	if p.fromProfile() {
		return p.bases[layer]*x.side.own.mid*left + x.side.rest.mid
	}
	return x.Cost
}

// setMarginalCosts sets the costs of points to their effect on the plan's total. The chosen
// points get the layer's own time in the plan.
func (p *problem) setMarginalCosts(pick []int) {
	if !p.fromProfile() { // does not depend on the plan
		return
	}
	of, rest := combineEffects(p.effectsOf(pick))
	now := p.modelTime(of, rest).mid
	share := make([]float64, len(of))
	for i, r := range of {
		share[i] = p.bases[i] * r.mid
	}
	p.fixed = now
	for i := range p.curves {
		c := &p.curves[i]
		mine := &c.Points[pick[i]].side
		// Times of the affected layers without the layer's own change.
		kept := map[int]float64{i: p.timeWithout(i, i, pick)}
		for k := range c.Points {
			s := &c.Points[k].side
			add := p.outsideWith(rest.mid-mine.rest.mid+s.rest.mid) - p.outsideWith(rest.mid)
			touched := map[int]float64{i: s.own.mid}
			for _, o := range mine.others {
				touched[o.layer] = 1
			}
			for _, o := range s.others {
				touched[o.layer] = o.ratio.mid
			}
			for _, l := range slices.Sorted(maps.Keys(touched)) {
				if _, ok := kept[l]; !ok {
					kept[l] = p.timeWithout(l, i, pick)
				}
				add += kept[l]*touched[l] - share[l]
			}
			c.Points[k].Cost = share[i] + add
		}
		p.fixed -= share[i]
	}
}

// timeWithout is the time of a layer under a plan without the effect of another layer's change.
func (p *problem) timeWithout(layer, but int, pick []int) float64 {
	t := p.bases[layer]
	for i, k := range pick {
		s := &p.curves[i].Points[k].side
		if i == but {
			continue
		}
		if i == layer {
			t *= s.own.mid
		}
		for _, o := range s.others {
			if o.layer == layer {
				t *= o.ratio.mid
			}
		}
	}
	return t
}

// planLoss is the additive loss of a plan.
func (p *problem) planLoss(pick []int) float64 {
	loss, squares := 0.0, 0.0
	for i, k := range pick {
		x := &p.curves[i].Points[k]
		switch {
		case p.upperDrops():
			loss, squares = loss+x.Loss, squares+x.upperMargin()*x.upperMargin()
		case p.Upper:
			loss += x.loss.hi
		default:
			loss += x.Loss
		}
	}
	return loss + math.Sqrt(squares)
}

// rounds bounds the iterations with marginal costs.
const rounds = 6

// starts is the number of price-optimal plans that are refined.
const starts = 3

// solveCoupled chooses with interactions between layers. c is the choice by additive costs
// without tied points; err says that its bound cannot be kept.
func (p *problem) solveCoupled(c choice, err error) (choice, error) {
	if best, ok := p.enumerateCoupled(); ok {
		return best, nil
	}
	sums := p.costs()
	t := p.terms(maxTable)
	by := t.findPrice()
	picks := by.picks
	fastest := t.minimise(1, 0).pick
	if err == nil {
		picks = append(picks, c.pick)
	}
	picks = append(picks, fastest, t.minimise(0, 1).pick)
	var able []choice
	for _, pick := range picks {
		if x, ok := p.evaluate(pick); ok {
			able = append(able, x)
		}
	}
	sorting.Stable(able, func(a, b choice) int { return cmp.Compare(a.value, b.value) })
	able = slices.CompactFunc(able, func(a, b choice) bool { return slices.Equal(a.pick, b.pick) })
	p.quick = true
	var best choice
	ok := false
	for _, start := range able[:min(starts, len(able))] {
		p.held = p.tiedPoints(start.pick)
		p.restore(sums)
		if x, is := p.refine(start.pick); is && (!ok || x.value < best.value) {
			best, ok = x, true
		}
	}
	p.restore(sums)
	p.held, p.quick = nil, false
	best, ok, lower := t.branch(&by, best, ok)
	switch {
	case !ok && p.Goal.MaxLoss != nil && err != nil:
		return c, err
	case !ok:
		return c, p.unreachable(p.planLoss(picks[len(picks)-1]), p.modelCost(fastest).mid)
	}
	best.lower = min(best.value, lower)
	best.exact = best.value-best.lower <= rounding*math.Abs(best.value)
	return best, nil
}

// tiedPoints returns the points of a plan that are tied, by layer.
func (p *problem) tiedPoints(pick []int) map[int]int {
	out := map[int]int{}
	for i, k := range pick {
		for _, l := range p.curves[i].Points[k].tied {
			out[i], out[l] = k, pick[l]
		}
	}
	return out
}

// maxEnumeratedCoupled bounds the enumeration of coupled plans, each of which needs a sum over
// the whole model.
const maxEnumeratedCoupled = 1 << 14

// enumerateCoupled tries all plans if there are few.
func (p *problem) enumerateCoupled() (best choice, ok bool) {
	n := 1
	for _, c := range p.curves {
		if n *= len(c.Points); n > min(p.maxEnumerated, maxEnumeratedCoupled) {
			return best, false
		}
	}
	pick := make([]int, len(p.curves))
	var try func(i int)
	try = func(i int) {
		if i < len(pick) {
			for k := range p.curves[i].Points {
				pick[i] = k
				try(i + 1)
			}
			return
		}
		if !p.consistent(pick) {
			return
		}
		if c, is := p.evaluate(pick); is && (!ok || c.value < best.value) {
			best, ok = choice{slices.Clone(pick), c.value, c.value, true}, true
		}
	}
	try(0)
	return best, ok
}

// consistent reports whether layers that must have the same change do.
func (p *problem) consistent(pick []int) bool {
	for i, k := range pick {
		x := &p.curves[i].Points[k]
		for _, l := range x.tied {
			if p.curves[l].Points[pick[l]].Change != x.Change {
				return false
			}
		}
	}
	return true
}

// costs returns the costs of all points; restore sets them.
func (p *problem) costs() (all [][]float64) {
	for _, c := range p.curves {
		var of []float64
		for _, x := range c.Points {
			of = append(of, x.Cost)
		}
		all = append(all, of)
	}
	return append(all, []float64{p.fixed})
}

func (p *problem) restore(all [][]float64) {
	for i := range p.curves {
		for k := range p.curves[i].Points {
			p.curves[i].Points[k].Cost = all[i][k]
		}
	}
	p.fixed = all[len(p.curves)][0]
}

// evaluate returns a plan as a choice; false where it exceeds the bound.
func (p *problem) evaluate(pick []int) (choice, bool) {
	loss := p.planLoss(pick)
	if p.Goal.MaxLoss != nil && !withinBound(loss, p.metric.Bound(*p.Goal.MaxLoss)) {
		return choice{}, false
	}
	cost := p.modelCost(pick).mid
	if p.Goal.MaxLoss != nil {
		return choice{pick: pick, value: cost}, true
	}
	return choice{pick: pick, value: loss}, withinBound(cost, p.budget())
}

// refine chooses repeatedly with the marginal costs of the previous plan, and takes the best
// plan; false where none keeps to the bound.
func (p *problem) refine(pick []int) (best choice, ok bool) {
	for range rounds {
		if c, is := p.evaluate(pick); is && (!ok || c.value < best.value) {
			best, ok = c, true
			best.pick = slices.Clone(pick)
		}
		p.setMarginalCosts(pick)
		c, err := p.solve()
		if err != nil || slices.Equal(c.pick, pick) {
			break
		}
		pick = c.pick
	}
	if ok {
		best = p.polish(best)
	}
	return best, ok
}

// polish repeats the best single move, of a layer or of tied layers, while the plan improves.
func (p *problem) polish(best choice) choice {
	ties := p.tiedMoves()
	for range 4 * len(p.curves) {
		now, next := best.value, []int(nil)
		try := func(pick []int) {
			if y, ok := p.evaluate(pick); ok && y.value < now-rounding*math.Abs(now) {
				now, next = y.value, slices.Clone(pick)
			}
		}
		p.setMarginalCosts(best.pick) // marginal costs of a single change are exact
		pick := slices.Clone(best.pick)
		for l := range p.curves {
			c := &p.curves[l]
			at := pick[l]
			if _, is := p.held[l]; is {
				continue
			}
			for x := range c.Points {
				if x == at || c.Points[x].tied != nil || p.Goal.MaxLoss != nil && c.Points[x].Cost >= c.Points[at].Cost || p.Goal.MaxLoss == nil && c.Points[x].Loss >= c.Points[at].Loss {
					continue
				}
				pick[l] = x
				try(pick)
			}
			pick[l] = at
		}
		for _, points := range ties {
			for l, k := range points {
				pick[l] = k
			}
			if p.consistent(pick) {
				try(pick)
			}
			for l := range points {
				pick[l] = 0
			}
			if p.consistent(pick) {
				try(pick)
			}
			copy(pick, best.pick)
		}
		if next == nil {
			break
		}
		best.pick, best.value = next, now
		p.held = p.tiedPoints(next)
	}
	return best
}

// tiedMoves returns the sets of points that tied layers can only have together.
func (p *problem) tiedMoves() (out []map[int]int) {
	for i, c := range p.curves {
		for k := range c.Points {
			x := &c.Points[k]
			if x.tied == nil || slices.Min(x.tied) < i {
				continue
			}
			points := map[int]int{i: k}
			for _, l := range x.tied {
				if at := p.pointWith(l, x); at >= 0 {
					points[l] = at
				}
			}
			if len(points) == len(x.tied)+1 {
				out = append(out, points)
			}
		}
	}
	return out
}
