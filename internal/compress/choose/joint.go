package choose

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/opmeter/opmeter/study"
)

// A layer that loses filters makes those smaller that read them, and layers that are added up lose them together. The time of a model is
// then no sum of what layers take by themselves: each takes its unchanged time by the ratios of all changes that reach it. Plans are chosen
// by prices of the bound ([terms]), then with what each change makes of the plan that was found, until none is
// better. What can be had at these prices bounds the plan.

// side is what a point does to times: of its own layer, of others, and of operators without weights, which takes seconds.
type side struct {
	own    interval
	others []other
	rest   interval
}

type other struct {
	layer int
	ratio interval
}

var one = interval{1, 1, 1}

// reaches reports whether a point does something beyond its layer.
func (s *side) reaches() bool { return len(s.others) > 0 || s.rest != interval{} }

// adds is what comes to the sum of the layers' times.
func (s *side) adds(bases []float64) float64 {
	sum := s.rest.mid
	for _, o := range s.others {
		sum += (o.ratio.mid - 1) * bases[o.layer]
	}
	return sum
}

// sideCurves are the sides of a layer's points of a group, by level.
type sideCurves struct {
	own    known
	others map[int]known
	rest   known
	tied   []int
}

// add has a point whose own time is a ratio of the unchanged one.
func (c *sideCurves) add(x *study.SpeedPoint, own interval, by Correction) {
	c.own.add(x.Change.Level, by.ratio(own))
	c.tied = x.With
	for _, o := range x.Affected {
		if r, ok := spread(o.Ratio); ok {
			k := c.others[o.Layer]
			k.add(x.Change.Level, by.ratio(r))
			c.others[o.Layer] = k
		}
	}
	if r, ok := spread(x.RestS); ok {
		c.rest.add(x.Change.Level, r.times(or1(by.Gain)))
	}
}

// at is the side at a level between those that are known; false where that of the layer itself is not.
func (c *sideCurves) at(level float64) (s side, ok bool) {
	if s.own, ok = c.own.at(level); !ok {
		return s, false
	}
	for _, l := range slices.Sorted(maps.Keys(c.others)) {
		if r, ok := c.others[l].at(level); ok {
			s.others = append(s.others, other{l, r})
		}
	}
	s.rest, _ = c.rest.at(level)
	return s, true
}

// sidesOf are those of a plan's points, by layer.
func (p *problem) sidesOf(pick []int) []side {
	out := make([]side, len(pick))
	for i, k := range pick {
		out[i] = p.curves[i].Points[k].side
	}
	return out
}

// left is what is left of the layers' times by the sides of all layers, and rest what the operators without weights take more.
func left(sides []side) (of []interval, rest interval) {
	of = make([]interval, len(sides))
	for i := range of {
		of[i] = one
	}
	for i := range sides {
		s := &sides[i]
		of[i] = of[i].by(s.own)
		for _, o := range s.others {
			of[o.layer] = of[o.layer].by(o.ratio)
		}
		rest = rest.plus(s.rest)
	}
	return of, rest
}

func (v interval) by(w interval) interval { return interval{v.lo * w.lo, v.mid * w.mid, v.hi * w.hi} }

// whole is the time of the model under a plan; other costs add up.
func (p *problem) whole(pick []int) interval {
	if p.profiled() {
		return p.total(left(p.sidesOf(pick)))
	}
	sum := p.fixed
	for i, k := range pick {
		sum += p.curves[i].Points[k].Cost
	}
	return interval{sum, sum, sum}
}

// total is the time of the model of what is left of its layers.
func (p *problem) total(of []interval, rest interval) interval {
	sum := interval{p.beyond(rest.lo), p.beyond(rest.mid), p.beyond(rest.hi)}
	for i, r := range of {
		sum = sum.plus(r.times(p.bases[i]))
	}
	return sum
}

// beyond is the time that no layer has where operators without weights take more: they take no less than nothing.
func (p *problem) beyond(more float64) float64 {
	outside := p.outside()
	return max(min(0, outside), outside+more)
}

// outside is the time that no layer has.
func (p *problem) outside() float64 {
	whole, ok := p.Speed.Latency.Best()
	if !ok || p.Speed.Counted {
		return 0
	}
	for _, b := range p.bases {
		whole -= b
	}
	return whole
}

// apart is the cost that no layer has. Costs that are no times are those of points, which add up.
func (p *problem) apart() float64 {
	if p.profiled() {
		return p.outside()
	}
	return p.fixed
}

// taken is the cost of a point of a layer where others leave a share of the layer's time.
func (p *problem) taken(layer int, x *Point, left float64) float64 {
	if p.profiled() {
		return p.bases[layer]*x.side.own.mid*left + x.side.rest.mid
	}
	return x.Cost
}

// around gives points the cost that they make of a plan, those of the plan the layer's own time in it.
func (p *problem) around(pick []int) {
	if !p.profiled() { // is what it is beside any plan
		return
	}
	of, rest := left(p.sidesOf(pick))
	now := p.total(of, rest).mid
	share := make([]float64, len(of))
	for i, r := range of {
		share[i] = p.bases[i] * r.mid
	}
	p.fixed = now
	for i := range p.curves {
		c := &p.curves[i]
		mine := &c.Points[pick[i]].side
		// Without the layer's own change: the times of what it reaches.
		kept := map[int]float64{i: p.without(i, i, pick)}
		for k := range c.Points {
			s := &c.Points[k].side
			add := p.beyond(rest.mid-mine.rest.mid+s.rest.mid) - p.beyond(rest.mid)
			touched := map[int]float64{i: s.own.mid}
			for _, o := range mine.others {
				touched[o.layer] = 1
			}
			for _, o := range s.others {
				touched[o.layer] = o.ratio.mid
			}
			for _, l := range slices.Sorted(maps.Keys(touched)) {
				if _, ok := kept[l]; !ok {
					kept[l] = p.without(l, i, pick)
				}
				add += kept[l]*touched[l] - share[l]
			}
			c.Points[k].Cost = share[i] + add
		}
		p.fixed -= share[i]
	}
}

// without is the time of a layer under a plan but for what the change of another one does to it.
func (p *problem) without(layer, but int, pick []int) float64 {
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

// lossBy is the additive loss of a plan.
func (p *problem) lossBy(pick []int) float64 {
	loss, squares := 0.0, 0.0
	for i, k := range pick {
		x := &p.curves[i].Points[k]
		switch {
		case p.squares():
			loss, squares = loss+x.Loss, squares+x.above()*x.above()
		case p.Upper:
			loss += x.loss.hi
		default:
			loss += x.Loss
		}
	}
	return loss + math.Sqrt(squares)
}

// rounds is how often a plan is chosen again beside the one before.
const rounds = 6

// starts is how many of the plans that are the least at a price are made better.
const starts = 3

// joint makes a choice one of whole models. c is the one by sums without what is tied, err says that their bound cannot be kept.
func (p *problem) joint(c choice, err error) (choice, error) {
	if best, ok := p.allJoint(); ok {
		return best, nil
	}
	sums := p.costs()
	t := p.terms(maxTable)
	by := t.price()
	picks := by.picks
	fastest := t.least(1, 0).pick
	if err == nil {
		picks = append(picks, c.pick)
	}
	picks = append(picks, fastest, t.least(0, 1).pick)
	var able []choice
	for _, pick := range picks {
		if x, ok := p.judge(pick); ok {
			able = append(able, x)
		}
	}
	slices.SortStableFunc(able, func(a, b choice) int { return cmp.Compare(a.value, b.value) })
	able = slices.CompactFunc(able, func(a, b choice) bool { return slices.Equal(a.pick, b.pick) })
	p.quick = true
	var best choice
	ok := false
	for _, start := range able[:min(starts, len(able))] {
		p.held = p.tiedIn(start.pick)
		p.restore(sums)
		if x, is := p.refine(start.pick); is && (!ok || x.value < best.value) {
			best, ok = x, true
		}
	}
	p.restore(sums)
	p.held, p.quick = nil, false
	best, ok, lower := t.branch(&by, best, ok)
	switch t := p.whole(fastest).mid; {
	case !ok && p.Goal.MaxLoss != nil:
		shown, _ := p.metric.Shown(p.lossBy(picks[len(picks)-1]))
		return c, cmp.Or(err, error(&UnreachableError{"loss", *p.Goal.MaxLoss, shown}))
	case !ok && p.Goal.Speedup != nil:
		return c, &UnreachableError{"speedup", *p.Goal.Speedup, p.unchanged() / t}
	case !ok && p.Goal.Sparsity != nil:
		return c, &UnreachableError{"sparsity", *p.Goal.Sparsity, 1 - t/max(1, p.weights())}
	case !ok:
		return c, &UnreachableError{p.kind, p.budget(), t}
	}
	best.lower = min(best.value, lower)
	best.exact = best.value-best.lower <= rounding*math.Abs(best.value)
	return best, nil
}

// tiedIn are the layers of a plan that have one of the points which others must have, too.
func (p *problem) tiedIn(pick []int) map[int]int {
	out := map[int]int{}
	for i, k := range pick {
		for _, l := range p.curves[i].Points[k].tied {
			out[i], out[l] = k, pick[l]
		}
	}
	return out
}

// fewJoint is how many plans of layers that reach others are few: each is a sum over the whole model.
const fewJoint = 1 << 14

// allJoint looks through all plans where they are few.
func (p *problem) allJoint() (best choice, ok bool) {
	n := 1
	for _, c := range p.curves {
		if n *= len(c.Points); n > min(p.few, fewJoint) {
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
		if !p.together(pick) {
			return
		}
		if c, is := p.judge(pick); is && (!ok || c.value < best.value) {
			best, ok = choice{slices.Clone(pick), c.value, c.value, true}, true
		}
	}
	try(0)
	return best, ok
}

// together reports whether layers that must have the same change do.
func (p *problem) together(pick []int) bool {
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

// costs are those of all points, and restore gives them back.
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

// judge is a plan as a choice; false where it does not keep to the bound.
func (p *problem) judge(pick []int) (choice, bool) {
	loss := p.lossBy(pick)
	if p.Goal.MaxLoss != nil && !within(loss, p.metric.Bound(*p.Goal.MaxLoss)) {
		return choice{}, false
	}
	cost := p.whole(pick).mid
	if p.Goal.MaxLoss != nil {
		return choice{pick: pick, value: cost}, true
	}
	return choice{pick: pick, value: loss}, within(cost, p.budget())
}

// refine chooses beside a plan, and beside what comes of that, and takes the best of them; false where none keeps to the bound.
func (p *problem) refine(pick []int) (best choice, ok bool) {
	for range rounds {
		if c, is := p.judge(pick); is && (!ok || c.value < best.value) {
			best, ok = c, true
			best.pick = slices.Clone(pick)
		}
		p.around(pick)
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

// polish makes one move after the other, the best of all, as long as that makes the plan better: of a layer, or of those that are tied.
func (p *problem) polish(best choice) choice {
	ties := p.ties()
	for range 4 * len(p.curves) {
		now, next := best.value, []int(nil)
		try := func(pick []int) {
			if y, ok := p.judge(pick); ok && y.value < now-rounding*math.Abs(now) {
				now, next = y.value, slices.Clone(pick)
			}
		}
		p.around(best.pick) // what one layer's change makes of the plan is exact
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
			if p.together(pick) {
				try(pick)
			}
			for l := range points {
				pick[l] = 0
			}
			if p.together(pick) {
				try(pick)
			}
			copy(pick, best.pick)
		}
		if next == nil {
			break
		}
		best.pick, best.value = next, now
		p.held = p.tiedIn(next)
	}
	return best
}

// ties are the points that tied layers can only have together.
func (p *problem) ties() (out []map[int]int) {
	for i, c := range p.curves {
		for k := range c.Points {
			x := &c.Points[k]
			if x.tied == nil || slices.Min(x.tied) < i {
				continue
			}
			points := map[int]int{i: k}
			for _, l := range x.tied {
				if at := p.like(l, x); at >= 0 {
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
