package choose

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/study"
)

// Limits of the front: the number of points, and the number of attempts to find plans between
// them.
const (
	maxFront  = 256
	maxRefine = 48
	refineGap = 0.02 // share of the cost range: a gap that is refined
)

// frontPoint is a plan of the front.
type frontPoint struct {
	cost, loss float64
	pick       []int
}

// front returns non-dominated plans by rising cost: those on the hulls, which are optimal for
// their loss, and further ones between distant neighbours. Items have costs as values and losses
// as weights.
func front(items [][]option) []frontPoint {
	pick := make([]int, len(items))
	at := func() frontPoint {
		return frontPoint{totalValue(items, pick), totalWeight(items, pick), slices.Clone(pick)}
	}
	all := steps(items)
	out := []frontPoint{at()}
	last, end := out[0].cost, out[0].cost
	for _, s := range all {
		end += s.value
	}
	thin := (last - end) / maxFront
	cost := last
	for k, s := range all {
		pick[s.item] = s.to
		if cost += s.value; len(all) < maxFront || last-cost >= thin || k == len(all)-1 {
			out = append(out, at())
			last = cost
		}
	}
	return paretoPoints(refineFront(items, out, (out[0].cost-end)*refineGap))
}

// refineFront searches for plans between distant neighbours.
func refineFront(items [][]option, spots []frontPoint, far float64) []frontPoint {
	out := slices.Clone(spots)
	tries := 0
	for i := 1; i < len(spots) && tries < maxRefine; i++ {
		a, b := spots[i-1], spots[i]
		parts := 1
		if far > 0 {
			parts = min(8, int((a.cost-b.cost)/far))
		}
		for k := 1; k < parts && tries < maxRefine; k++ {
			tries++
			if s, ok := solve(items, a.loss+(b.loss-a.loss)*float64(k)/float64(parts)); ok {
				out = append(out, frontPoint{s.value, totalWeight(items, s.pick), s.pick})
			}
		}
	}
	return out
}

// paretoSort drops dominated points and sorts the others by cost.
func paretoSort[P any](points []P, loss, cost func(*P) float64) []P {
	sorting.Stable(points, func(a, b P) int {
		return cmp.Or(cmp.Compare(loss(&a), loss(&b)), cmp.Compare(cost(&a), cost(&b)))
	})
	out := points[:0]
	for _, p := range points {
		if len(out) == 0 || cost(&p) < cost(&out[len(out)-1]) {
			out = append(out, p)
		}
	}
	slices.Reverse(out)
	return out
}

func paretoPoints(points []frontPoint) []frontPoint {
	return paretoSort(points, func(p *frontPoint) float64 { return p.loss }, func(p *frontPoint) float64 { return p.cost })
}

// ReconcileFront returns a front without plans that its chosen one or another one dominates, or
// that would dominate the chosen one: when models were run, those predictions did not come true.
// Losses are at most all that the model can lose. Points are in order of cost.
func ReconcileFront(points []study.FrontPoint, all float64) []study.FrontPoint {
	points = slices.Clone(points)
	for i := range points {
		points[i].Loss = min(points[i].Loss, all)
	}
	if at := slices.IndexFunc(points, func(p study.FrontPoint) bool { return p.Chosen }); at >= 0 {
		chosen := points[at]
		points = slices.DeleteFunc(points, func(p study.FrontPoint) bool {
			return !p.Chosen && p.Cost <= chosen.Cost && p.Loss <= chosen.Loss
		})
	}
	return paretoSort(points, func(p *study.FrontPoint) float64 { return p.Loss }, func(p *study.FrontPoint) float64 { return p.Cost })
}

// MaxLoss is the most that a model can lose by a metric: all of its accuracy or agreement,
// infinite for other metrics.
func (m Metric) MaxLoss() float64 {
	if m.Adds == Drops && m.higher && m.base > 0 {
		return m.base
	}
	return math.Inf(1)
}
