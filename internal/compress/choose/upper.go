package choose

import (
	"math"

	"github.com/opmeter/opmeter/study"
)

// Drops of layers come from samples that change sides, other ones for other layers: their errors
// are taken as independent, so that the upper end of a sum is the sum and the root of the summed
// squares of what the ends of layers are above their values. That does not add up, but for any
// width w the root is at most half of w and the squares by 2w, which do, and which are equal to
// it where w is the root itself. Plans are made for several widths, and the best is taken.

// squares says whether upper ends add up in that way.
func (p *problem) squares() bool { return p.Upper && p.metric.Adds == Drops }

// above is how far the upper end of a point's loss lies above it.
func (x *Point) above() float64 { return x.loss.hi - x.Loss }

// lossOf is the loss that counts: with Upper the end of its interval, or its part of the end of
// the sum's.
func (p *problem) lossOf(x *Point) float64 {
	switch {
	case p.squares() && p.width > 0:
		return x.Loss + x.above()*x.above()/(2*p.width)
	case p.squares():
		return x.Loss
	case p.Upper:
		return x.loss.hi
	}
	return x.Loss
}

// constant is what the sum of [problem.lossOf] lacks to the loss that counts.
func (p *problem) constant() float64 {
	if p.squares() {
		return p.width / 2
	}
	return 0
}

// choice is a plan as points of curves, with what is made small and the least that it can be.
type choice struct {
	pick         []int
	value, lower float64
	exact        bool
}

// solve chooses points; errors say what cannot be reached.
func (p *problem) solve() (choice, error) {
	if !p.squares() {
		c, items, ok := p.attempt(true)
		if !ok {
			return c, p.unreachable(items)
		}
		return c, nil
	}
	best, found := p.everything()
	if found {
		p.width = p.root(best.pick)
		return best, nil
	}
	take := func(c choice, ok bool) {
		if ok && (!found || c.value < best.value) {
			best, found = c, true
		}
	}
	most, least, points := p.widths()
	// With many points what the hulls leave of a bound is little, and each attempt dear.
	const tries, many = 16, 5000
	for k := range tries {
		if p.width = 0; most > 0 {
			p.width = least * math.Pow(most/least, float64(k)/(tries-1))
		}
		c, _, ok := p.attempt(points < many)
		take(c, ok)
	}
	// To where the width is that of the plan.
	for range tries / 4 {
		before := best.value
		if p.width = p.root(best.pick); !found || p.width == 0 {
			break
		}
		c, _, ok := p.attempt(true)
		if take(c, ok); !(best.value < before) {
			break
		}
	}
	if !found {
		p.width = 0
		_, items, _ := p.attempt(false)
		return best, p.unreachable(items)
	}
	p.width = p.root(best.pick)
	if !best.exact {
		best.lower = min(best.value, p.below(best.pick))
	}
	return best, nil
}

// widths are the largest root that a plan can have, the smallest part of one, and how many points
// there are.
func (p *problem) widths() (most, least float64, points int) {
	for _, c := range p.curves {
		points += len(c.Points)
		top := 0.0
		for _, x := range c.Points {
			h := x.above()
			top = max(top, h)
			if h > 0 && (least == 0 || h < least) {
				least = h
			}
		}
		most += top * top
	}
	return math.Sqrt(most), least, points
}

// root is what the upper end of a plan's loss is above it.
func (p *problem) root(pick []int) float64 {
	s := 0.0
	for i, k := range pick {
		h := p.curves[i].Points[k].above()
		s += h * h
	}
	return math.Sqrt(s)
}

// attempt solves the problem with losses as [problem.lossOf] has them, as well as it can be or
// only to see how good that would be.
func (p *problem) attempt(well bool) (c choice, items [][]option, ok bool) {
	lossBound := p.Goal.MaxLoss != nil
	items = p.items(lossBound)
	var bound float64
	if lossBound {
		bound = p.metric.Bound(*p.Goal.MaxLoss) - p.constant()
	} else {
		// The difference of large sums: a model that is just within must not fall out.
		bound = p.budget() - p.fixed + rounding*math.Abs(p.fixed)
	}
	var s solution
	if well && !p.quick {
		s, ok = solve(items, bound)
	} else {
		s, _, ok = greedy(items, bound)
	}
	if !ok {
		return c, items, false
	}
	c = choice{pick: make([]int, len(items)), value: s.value, lower: s.lower, exact: s.exact && !p.squares()}
	for i, k := range s.pick {
		c.pick[i] = items[i][k].index
	}
	c.value, c.lower = c.value+p.besides(lossBound), c.lower+p.besides(lossBound)
	return c, items, true
}

// besides is what comes to the sum that is made small.
func (p *problem) besides(lossBound bool) float64 {
	if lossBound {
		return p.fixed
	}
	return p.constant()
}

// below is a bound that no plan is below: a root of squares is at least the sum of its parts, each
// by its share in the root of some plan.
func (p *problem) below(pick []int) float64 {
	root := p.root(pick)
	linear := &problem{Options: p.Options, metric: p.metric, kind: p.kind, fixed: p.fixed}
	linear.Upper = false
	for i, c := range p.curves {
		share := 0.0
		if root > 0 {
			share = c.Points[pick[i]].above() / root
		}
		l := Curve{Layer: c.Layer}
		for _, x := range c.Points {
			x.Loss += share * x.above()
			l.Points = append(l.Points, x)
		}
		linear.curves = append(linear.curves, l)
	}
	c, _, ok := linear.attempt(true)
	if !ok {
		return math.Inf(1)
	}
	return c.lower
}

// maxChoices is how many plans are few.
const maxChoices = 1 << 17

// everything looks through all plans where they are few.
func (p *problem) everything() (best choice, ok bool) {
	n := 1
	if p.sides { // costs do not add up
		return best, false
	}
	for _, c := range p.curves {
		if n *= len(c.Points); n > p.few {
			return best, false
		}
	}
	lossBound := p.Goal.MaxLoss != nil
	bound := p.budget() - p.fixed + rounding*math.Abs(p.fixed)
	if lossBound {
		bound = p.metric.Bound(*p.Goal.MaxLoss)
	}
	pick := make([]int, len(p.curves))
	var try func(i int, cost, loss, squares float64)
	try = func(i int, cost, loss, squares float64) {
		value, weight := cost, loss+math.Sqrt(squares)
		if !lossBound {
			value, weight = weight, value
		}
		if lossBound && !within(weight, bound) {
			return // losses only grow
		}
		if i < len(pick) {
			for k := range p.curves[i].Points {
				x := &p.curves[i].Points[k]
				pick[i] = k
				try(i+1, cost+x.Cost, loss+x.Loss, squares+x.above()*x.above())
			}
			return
		}
		if within(weight, bound) && (!ok || value < best.value) {
			best, ok = choice{append([]int(nil), pick...), value, value, true}, true
		}
	}
	try(0, 0, 0, 0)
	if lossBound {
		best.value, best.lower = best.value+p.fixed, best.lower+p.fixed
	}
	return best, ok
}

// total adds losses up: those of layers whose errors are independent by squares, others end by end.
func (m Metric) total(of []interval) (sum interval) {
	var up, down float64
	for _, v := range of {
		sum = sum.plus(v)
		up += (v.hi - v.mid) * (v.hi - v.mid)
		down += (v.mid - v.lo) * (v.mid - v.lo)
	}
	if m.Adds == Drops {
		sum.hi, sum.lo = sum.mid+math.Sqrt(up), max(0, sum.mid-math.Sqrt(down))
	}
	return sum
}

// changes lists the changes of a plan.
func (p *problem) changes(pick []int) []study.Change {
	out := make([]study.Change, len(pick))
	for i, k := range pick {
		out[i] = p.curves[i].Points[k].Change
	}
	return out
}
