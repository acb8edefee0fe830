package choose

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// option is one choice for an item: its value, which is minimised, and its weight, which is
// bounded.
type option struct {
	value, weight float64
	index         int // index of its point
}

// rounding is the relative tolerance of sums of a few hundred figures in another order.
const rounding = 1e-12

// withinBound reports whether a weight keeps to a bound, except for rounding.
func withinBound(weight, bound float64) bool { return weight <= bound+rounding*math.Abs(bound) }

// solution picks an option for each item.
type solution struct {
	pick  []int   // positions in the items' lists
	value float64 // of the picked options
	lower float64 // no pick within the bound has a smaller value
	exact bool    // the value is optimal
}

// frontier drops dominated options. The rest has rising weight and falling value; of equal
// options the first is kept.
func frontier(os []option) []option {
	os = slices.Clone(os)
	sorting.Stable(os, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.value, b.value), cmp.Compare(a.index, b.index))
	})
	out := os[:0]
	for _, o := range os {
		if len(out) == 0 || o.value < out[len(out)-1].value {
			out = append(out, o)
		}
	}
	return out
}

// lowerHull returns the positions of a frontier that lie on its lower convex hull.
func lowerHull(os []option) []int {
	var h []int
	for i := range os {
		for len(h) > 1 {
			a, b := os[h[len(h)-2]], os[h[len(h)-1]]
			// b stays if it is below the line from a to the new point.
			if (b.value-a.value)*(os[i].weight-a.weight) < (os[i].value-a.value)*(b.weight-a.weight) {
				break
			}
			h = h[:len(h)-1]
		}
		h = append(h, i)
	}
	return h
}

// step goes from one point of a hull to the next.
type step struct {
	item, to             int
	value, weight, slope float64
}

// steps lists the steps of all hulls, ordered by saved value per weight. Steps of an item stay in
// order.
func steps(items [][]option) []step {
	var out []step
	for i, os := range items {
		h := lowerHull(os)
		for k := 1; k < len(h); k++ {
			a, b := os[h[k-1]], os[h[k]]
			s := step{item: i, to: h[k], value: b.value - a.value, weight: b.weight - a.weight}
			s.slope = s.value / s.weight
			if k > 1 && len(out) > 0 {
				s.slope = max(s.slope, out[len(out)-1].slope) // convex except for rounding
			}
			out = append(out, s)
		}
	}
	sorting.Stable(out, func(a, b step) int { return cmp.Compare(a.slope, b.slope) })
	return out
}

// solve picks an option for each item so that the sum of values is minimal within a bound on the
// sum of weights. Items are non-empty frontiers. ok is false where even the smallest weights
// exceed the bound.
func solve(items [][]option, bound float64) (s solution, ok bool) {
	s, r, ok := greedy(items, bound)
	if !ok || s.exact {
		return s, ok
	}
	r.localSearch(s.pick)
	s.value = totalValue(items, s.pick)
	r.exact(&s)
	s.lower = min(s.lower, s.value)
	return s, true
}

// greedy follows the hulls as far as the bound allows. If it takes all steps the solution is
// exact; otherwise r is the relaxed problem with the slope of the first step that did not fit as
// multiplier.
func greedy(items [][]option, bound float64) (s solution, r *relaxed, ok bool) {
	s.pick = make([]int, len(items))
	weight := totalWeight(items, s.pick)
	if !withinBound(weight, bound) {
		return s, nil, false
	}
	multiplier, whole := 0.0, true
	for _, st := range steps(items) {
		if withinBound(weight+st.weight, bound) && (whole || previousOnHull(items[st.item], st.to) == s.pick[st.item]) {
			s.pick[st.item] = st.to
			weight += st.weight
			continue
		}
		if whole {
			multiplier, whole = -st.slope, false
		}
	}
	s.value = totalValue(items, s.pick)
	if whole {
		// Every item has its smallest value.
		s.lower, s.exact = s.value, true
		return s, nil, true
	}
	r = newRelaxed(items, multiplier, bound)
	s.lower = min(s.value, r.bound)
	return s, r, true
}

// previousOnHull returns the hull position before one that is on the hull.
func previousOnHull(os []option, to int) int {
	h := lowerHull(os)
	return h[slices.Index(h, to)-1]
}

// pointsOf returns the points of picked options.
func pointsOf(items [][]option, pick []int) []int {
	out := make([]int, len(pick))
	for i, k := range pick {
		out[i] = items[i][k].index
	}
	return out
}

func totalValue(items [][]option, pick []int) (value float64) {
	for i, os := range items {
		value += os[pick[i]].value
	}
	return value
}

func totalWeight(items [][]option, pick []int) (weight float64) {
	for i, os := range items {
		weight += os[pick[i]].weight
	}
	return weight
}

// localSearch improves a pick in place. It repeats the best move of one item, or of one item
// against another, while the value decreases; of equal moves it takes the first. Options that no
// better pick can contain are skipped.
func (r *relaxed) localSearch(pick []int) {
	for range 20 * len(r.items) { // work limit: each move gains, and few are needed
		value := totalValue(r.items, pick)
		slack := rounding * (math.Abs(value) + math.Abs(r.bound))
		free := r.limit - totalWeight(r.items, pick)
		best := localMove{}
		for i, os := range r.items {
			for a := range os {
				if a != pick[i] && r.excess[i][a] <= value-r.bound+slack {
					r.tryMove(pick, i, a, free, &best)
				}
			}
		}
		if best.gain <= slack {
			return
		}
		pick[best.item] = best.to
		if best.paired {
			pick[best.other] = best.back
		}
	}
}

// localMove moves an item to another option, and optionally another item back.
type localMove struct {
	item, to    int
	other, back int
	paired      bool
	gain        float64
}

// tryMove moves item i to option a, alone or together with another item that moves to the
// heaviest of its lighter options that fits.
func (r *relaxed) tryMove(pick []int, i, a int, free float64, best *localMove) {
	now, o := r.items[i][pick[i]], r.items[i][a]
	weight, gain := o.weight-now.weight, now.value-o.value
	if withinBound(weight, free) && gain > best.gain {
		*best = localMove{item: i, to: a, gain: gain}
	}
	if weight <= 0 {
		return
	}
	for j, qs := range r.items {
		if j == i || pick[j] == 0 {
			continue
		}
		b := lastWithin(qs[:pick[j]], free-weight+qs[pick[j]].weight)
		if b < 0 {
			continue
		}
		if g := gain - (qs[b].value - qs[pick[j]].value); g > best.gain {
			*best = localMove{i, a, j, b, true, g}
		}
	}
}

// lastWithin returns the last option of a frontier within a weight, -1 for none.
func lastWithin(os []option, weight float64) int {
	n, _ := slices.BinarySearchFunc(os, weight, func(o option, w float64) int {
		if withinBound(o.weight, w) {
			return -1
		}
		return 1
	})
	return n - 1
}
