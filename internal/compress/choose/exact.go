package choose

import (
	"cmp"
	"math"
	"slices"
)

// Limits on the exact search: states that are kept, and those that are made to find them.
const (
	maxStates = 1 << 19
	maxMade   = 1 << 22
)

// relaxed is the problem with the bound made a price: an option costs its value and the
// multiplier times its weight. excess is by how much an option is dearer than the cheapest of its
// item; a pick whose excesses exceed value - bound cannot be better than the value.
type relaxed struct {
	items  [][]option
	limit  float64 // on the weights
	bound  float64 // least that any pick has
	excess [][]float64
}

func newRelaxed(items [][]option, multiplier, limit float64) *relaxed {
	r := &relaxed{items: items, limit: limit, bound: -multiplier * limit}
	for _, os := range items {
		least := math.Inf(1)
		for _, o := range os {
			least = min(least, o.value+multiplier*o.weight)
		}
		r.bound += least
		es := make([]float64, len(os))
		for k, o := range os {
			es[k] = o.value + multiplier*o.weight - least
		}
		r.excess = append(r.excess, es)
	}
	return r
}

// state is a pick for the first items.
type state struct {
	value, weight, excess float64
	before                int32 // state of one item less
	pick                  int32
}

// exact finds the best pick if that takes no more than the limits: it extends picks item by item
// and keeps those that no other beats and that may still be better than the one that is known.
func (r *relaxed) exact(s *solution) {
	slack := rounding * (math.Abs(s.value) + math.Abs(r.bound))
	gap := s.value - r.bound
	if gap <= slack {
		s.exact = true
		return
	}
	order := r.order(gap + slack)
	lightest := make([]float64, len(order)+1) // of the items to come
	for k := len(order) - 1; k >= 0; k-- {
		lightest[k] = lightest[k+1] + r.items[order[k]][0].weight
	}
	layers := [][]state{{{before: -1}}}
	kept, made := 0, 0
	for k, i := range order {
		last := layers[len(layers)-1]
		var next []state
		for at, st := range last {
			for p, o := range r.items[i] {
				e := st.excess + r.excess[i][p]
				w := st.weight + o.weight
				if e > gap+slack || !within(w+lightest[k+1], r.limit) {
					continue
				}
				next = append(next, state{st.value + o.value, w, e, int32(at), int32(p)})
			}
			if made += len(r.items[i]); made > maxMade {
				return
			}
		}
		next = undominated(next)
		if kept += len(next); kept > maxStates {
			return
		}
		layers = append(layers, next)
	}
	s.exact = true
	end := layers[len(layers)-1]
	best := -1
	for i, st := range end {
		if st.value < s.value-slack && (best < 0 || st.value < end[best].value) {
			best = i
		}
	}
	if best >= 0 {
		for k := len(order) - 1; k >= 0; k-- {
			st := layers[k+1][best]
			s.pick[order[k]], best = int(st.pick), int(st.before)
		}
		s.value = total(r.items, s.pick)
	}
	s.lower = s.value
}

// order has the items with the fewest options left first, so that states stay few for long.
func (r *relaxed) order(gap float64) []int {
	left := make([]int, len(r.items))
	order := make([]int, len(r.items))
	for i, es := range r.excess {
		order[i] = i
		for _, e := range es {
			if e <= gap {
				left[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(left[a], left[b]) })
	return order
}

// undominated keeps states by rising weight and falling value.
func undominated(ss []state) []state {
	slices.SortStableFunc(ss, func(a, b state) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.value, b.value))
	})
	out := ss[:0]
	for _, s := range ss {
		if len(out) == 0 || s.value < out[len(out)-1].value {
			out = append(out, s)
		}
	}
	return out
}
