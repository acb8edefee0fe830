package choose

import (
	"cmp"
	"math"
	"slices"
)

// option is one way to treat a layer: what it adds to the value that is made small, and to the
// weight that is bounded.
type option struct {
	value, weight float64
	index         int // position of its point
}

// rounding is how much a sum may be off: sums of a few hundred figures in another order.
const rounding = 1e-12

// within reports whether a weight keeps to a bound but for rounding.
func within(weight, bound float64) bool { return weight <= bound+rounding*math.Abs(bound) }

// solution picks an option for each item.
type solution struct {
	pick  []int   // positions in the items' lists
	value float64 // of the picked ones
	lower float64 // no pick within the bound has less
	exact bool    // the value is the least
}

// frontier drops what another option beats: options by rising weight and falling value remain, of
// equal ones the first.
func frontier(os []option) []option {
	os = slices.Clone(os)
	slices.SortStableFunc(os, func(a, b option) int {
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

// hull returns the positions of a frontier that lie on its lower convex hull.
func hull(os []option) []int {
	var h []int
	for i := range os {
		for len(h) > 1 {
			a, b := os[h[len(h)-2]], os[h[len(h)-1]]
			// b stays where it is below the line from a to the new one.
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

// steps lists the steps of all hulls, those first that save most value by weight; steps of an
// item stay in their order.
func steps(items [][]option) []step {
	var out []step
	for i, os := range items {
		h := hull(os)
		for k := 1; k < len(h); k++ {
			a, b := os[h[k-1]], os[h[k]]
			s := step{item: i, to: h[k], value: b.value - a.value, weight: b.weight - a.weight}
			s.slope = s.value / s.weight
			if k > 1 && len(out) > 0 {
				s.slope = max(s.slope, out[len(out)-1].slope) // convex but for rounding
			}
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(a.slope, b.slope) })
	return out
}

// solve picks an option for each item so that values add up to the least within a bound on the
// weights; items are frontiers and not empty. ok is false where the least weights are too much.
func solve(items [][]option, bound float64) (s solution, ok bool) {
	s, r, ok := greedy(items, bound)
	if !ok || s.exact {
		return s, ok
	}
	r.search(s.pick)
	s.value = total(items, s.pick)
	r.exact(&s)
	s.lower = min(s.lower, s.value)
	return s, true
}

// greedy walks up the hulls as far as the bound allows. Where it takes all steps the solution is
// exact, else r is the problem with the step that did not fit as the price of the bound.
func greedy(items [][]option, bound float64) (s solution, r *relaxed, ok bool) {
	s.pick = make([]int, len(items))
	weight := 0.0
	for _, os := range items {
		weight += os[0].weight
	}
	if !within(weight, bound) {
		return s, nil, false
	}
	multiplier, whole := 0.0, true
	for _, st := range steps(items) {
		if within(weight+st.weight, bound) && (whole || previous(items[st.item], st.to) == s.pick[st.item]) {
			s.pick[st.item] = st.to
			weight += st.weight
			continue
		}
		if whole {
			multiplier, whole = -st.slope, false
		}
	}
	s.value = total(items, s.pick)
	if whole {
		// Every item has its least value.
		s.lower, s.exact = s.value, true
		return s, nil, true
	}
	r = newRelaxed(items, multiplier, bound)
	s.lower = min(s.value, r.bound)
	return s, r, true
}

// previous is the position on the hull before one that is on it.
func previous(os []option, to int) int {
	h := hull(os)
	return h[slices.Index(h, to)-1]
}

func total(items [][]option, pick []int) (value float64) {
	for i, os := range items {
		value += os[pick[i]].value
	}
	return value
}

func load(items [][]option, pick []int) (weight float64) {
	for i, os := range items {
		weight += os[pick[i]].weight
	}
	return weight
}

// search improves a pick in place: it moves one item, or one against another, as long as that
// makes the value less; of all such moves the best, the first of equals. Options that no better
// pick can have are passed over.
func (r *relaxed) search(pick []int) {
	for range 20 * len(r.items) { // a bound on work: each move gains, and few are needed
		value := total(r.items, pick)
		slack := rounding * (math.Abs(value) + math.Abs(r.bound))
		free := r.limit - load(r.items, pick)
		best := move{}
		for i, os := range r.items {
			for a := range os {
				if a != pick[i] && r.excess[i][a] <= value-r.bound+slack {
					r.try(pick, i, a, free, &best)
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

// move takes an item to another option, and another one back.
type move struct {
	item, to    int
	other, back int
	paired      bool
	gain        float64
}

// try takes item i to option a, alone or with another item that gives way: to the heaviest of its
// lighter options that leaves room.
func (r *relaxed) try(pick []int, i, a int, free float64, best *move) {
	now, o := r.items[i][pick[i]], r.items[i][a]
	weight, gain := o.weight-now.weight, now.value-o.value
	if within(weight, free) && gain > best.gain {
		*best = move{item: i, to: a, gain: gain}
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
			*best = move{i, a, j, b, true, g}
		}
	}
}

// lastWithin is the last option of a frontier that weighs no more, -1 for none.
func lastWithin(os []option, weight float64) int {
	n, _ := slices.BinarySearchFunc(os, weight, func(o option, w float64) int {
		if within(o.weight, w) {
			return -1
		}
		return 1
	})
	return n - 1
}
