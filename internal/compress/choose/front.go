package choose

import (
	"cmp"
	"slices"
)

// Limits on the front: points that are kept, and places between them at which a plan is looked for.
const (
	maxFront  = 256
	maxRefine = 48
	coarse    = 0.02 // of the range of costs: a gap that is looked into
)

// spot is a plan of the front.
type spot struct {
	cost, loss float64
	pick       []int
}

// front returns plans that no other beats, by rising cost: those of the hulls, which are the best
// for their loss, and better ones than these between distant neighbours. Items have costs as
// values and losses as weights.
func front(items [][]option) []spot {
	pick := make([]int, len(items))
	at := func() spot { return spot{total(items, pick), load(items, pick), slices.Clone(pick)} }
	all := steps(items)
	out := []spot{at()}
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
	return rise(refine(items, out, (out[0].cost-end)*coarse))
}

// refine looks for plans between neighbours that are far apart.
func refine(items [][]option, spots []spot, far float64) []spot {
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
				out = append(out, spot{s.value, load(items, s.pick), s.pick})
			}
		}
	}
	return out
}

// rise sorts by cost and drops what another point beats.
func rise(spots []spot) []spot {
	slices.SortStableFunc(spots, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.loss, b.loss), cmp.Compare(a.cost, b.cost))
	})
	out := spots[:0]
	for _, s := range spots {
		if len(out) == 0 || s.cost < out[len(out)-1].cost {
			out = append(out, s)
		}
	}
	slices.Reverse(out)
	return out
}
