package choose

import (
	"math"

	"github.com/opmeter/opmeter/study"
)

// Drops of layers come from samples that change their class, which differ between layers. Their
// errors are taken as independent, so the upper end of a sum is the sum plus the root of the
// summed squares of the layers' margins. That is not additive. But for any width w, the root is
// at most w/2 plus the sum of squares divided by 2w, which is additive, with equality if w is the
// root itself. Plans are made for several widths, and the best is taken.

// upperDrops reports whether upper ends are combined in this way.
func (p *problem) upperDrops() bool { return p.Upper && p.metric.Adds == Drops }

// upperMargin is the distance of the upper end of a point's loss from the loss.
func (x *Point) upperMargin() float64 { return x.loss.hi - x.Loss }

// lossOf returns the loss used for optimisation: with Upper the end of its interval, or its
// additive part of the end of the sum.
func (p *problem) lossOf(x *Point) float64 {
	switch {
	case p.upperDrops() && p.width > 0:
		return x.Loss + x.upperMargin()*x.upperMargin()/(2*p.width)
	case p.upperDrops():
		return x.Loss
	case p.Upper:
		return x.loss.hi
	}
	return x.Loss
}

// lossConstant is the constant that the sum of [problem.lossOf] lacks.
func (p *problem) lossConstant() float64 {
	if p.upperDrops() {
		return p.width / 2
	}
	return 0
}

// choice is a plan as points of curves, with the minimised value and its lower bound.
type choice struct {
	pick         []int
	value, lower float64
	exact        bool
}

// solve chooses points. Errors say what cannot be reached.
func (p *problem) solve() (choice, error) {
	if !p.upperDrops() {
		c, lightest, ok := p.solveAtWidth(true)
		if !ok {
			return c, p.unreachable(lightest, lightest+p.fixed)
		}
		return c, nil
	}
	best, found := p.enumerate()
	if found {
		p.width = p.combinedMargin(best.pick)
		return best, nil
	}
	take := func(c choice, ok bool) {
		if ok && (!found || c.value < best.value) {
			best, found = c, true
		}
	}
	most, least, points := p.widths()
	// With many points the hulls leave little of a bound unused, and each attempt is expensive.
	const tries, many = 16, 5000
	for k := range tries {
		if p.width = 0; most > 0 {
			p.width = least * math.Pow(most/least, float64(k)/(tries-1))
		}
		c, _, ok := p.solveAtWidth(points < many)
		take(c, ok)
	}
	// Iterate until the width is that of the plan.
	for range tries / 4 {
		before := best.value
		if p.width = p.combinedMargin(best.pick); !found || p.width == 0 {
			break
		}
		c, _, ok := p.solveAtWidth(true)
		if take(c, ok); !(best.value < before) {
			break
		}
	}
	if !found {
		p.width = 0
		_, lightest, _ := p.solveAtWidth(false)
		return best, p.unreachable(lightest, lightest+p.fixed)
	}
	p.width = p.combinedMargin(best.pick)
	if !best.exact {
		best.lower = min(best.value, p.lowerBound(best.pick))
	}
	return best, nil
}

// widths returns the largest combined margin of any plan, the smallest margin of a point, and the
// number of points.
func (p *problem) widths() (most, least float64, points int) {
	for _, c := range p.curves {
		points += len(c.Points)
		top := 0.0
		for _, x := range c.Points {
			h := x.upperMargin()
			top = max(top, h)
			if h > 0 && (least == 0 || h < least) {
				least = h
			}
		}
		most += top * top
	}
	return math.Sqrt(most), least, points
}

// combinedMargin is the distance of the upper end of a plan's loss from the loss.
func (p *problem) combinedMargin(pick []int) float64 {
	s := 0.0
	for i, k := range pick {
		h := p.curves[i].Points[k].upperMargin()
		s += h * h
	}
	return math.Sqrt(s)
}

// solveAtWidth solves the problem with losses from [problem.lossOf], with well as well as
// possible, else only greedily. lightest is the smallest possible sum of the bounded quantity.
func (p *problem) solveAtWidth(well bool) (c choice, lightest float64, ok bool) {
	lossBound := p.Goal.MaxLoss != nil
	items := p.items(lossBound)
	lightest = totalWeight(items, make([]int, len(items)))
	var bound float64
	if lossBound {
		bound = p.metric.Bound(*p.Goal.MaxLoss) - p.lossConstant()
	} else {
		// A difference of large sums: a model that just fits must not be excluded.
		bound = p.budget() - p.fixed + rounding*math.Abs(p.fixed)
	}
	var s solution
	if well && !p.quick {
		s, ok = solve(items, bound)
	} else {
		s, _, ok = greedy(items, bound)
	}
	if !ok {
		return c, lightest, false
	}
	c = choice{pick: pointsOf(items, s.pick), value: s.value, lower: s.lower, exact: s.exact && !p.upperDrops()}
	c.value, c.lower = c.value+p.constantPart(lossBound), c.lower+p.constantPart(lossBound)
	return c, lightest, true
}

// constantPart is the constant part of the minimised sum.
func (p *problem) constantPart(lossBound bool) float64 {
	if lossBound {
		return p.fixed
	}
	return p.lossConstant()
}

// lowerBound returns a bound for all plans: a root of squares is at least the weighted sum of its
// parts, with their shares in the root of some plan as weights.
func (p *problem) lowerBound(pick []int) float64 {
	root := p.combinedMargin(pick)
	linear := &problem{Options: p.Options, metric: p.metric, kind: p.kind, fixed: p.fixed}
	linear.Upper = false
	for i, c := range p.curves {
		share := 0.0
		if root > 0 {
			share = c.Points[pick[i]].upperMargin() / root
		}
		l := Curve{Layer: c.Layer}
		for _, x := range c.Points {
			x.Loss += share * x.upperMargin()
			l.Points = append(l.Points, x)
		}
		linear.curves = append(linear.curves, l)
	}
	c, _, ok := linear.solveAtWidth(true)
	if !ok {
		return math.Inf(1)
	}
	return c.lower
}

// maxChoices is the number of plans up to which all are enumerated.
const maxChoices = 1 << 17

// enumerate tries all plans if there are few.
func (p *problem) enumerate() (best choice, ok bool) {
	n := 1
	if p.coupled { // costs are not additive
		return best, false
	}
	for _, c := range p.curves {
		if n *= len(c.Points); n > p.maxEnumerated {
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
		if lossBound && !withinBound(weight, bound) {
			return // losses only grow
		}
		if i < len(pick) {
			for k := range p.curves[i].Points {
				x := &p.curves[i].Points[k]
				pick[i] = k
				try(i+1, cost+x.Cost, loss+x.Loss, squares+x.upperMargin()*x.upperMargin())
			}
			return
		}
		if withinBound(weight, bound) && (!ok || value < best.value) {
			best, ok = choice{append([]int(nil), pick...), value, value, true}, true
		}
	}
	try(0, 0, 0, 0)
	if lossBound {
		best.value, best.lower = best.value+p.fixed, best.lower+p.fixed
	}
	return best, ok
}

// total sums losses: margins of independent errors by squares, others linearly.
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
