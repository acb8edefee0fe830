package choose

import (
	"cmp"
	"math"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Limits of the exact search: states kept, and states generated.
const (
	maxStates = 1 << 19
	maxMade   = 1 << 22
)

// relaxed is the Lagrangian relaxation: an option costs its value plus the multiplier times its
// weight. excess is the additional cost of an option over the cheapest of its item. A pick whose
// excesses add up to more than value - bound cannot be better than the value.
type relaxed struct {
	items  [][]option
	limit  float64 // of the weights
	bound  float64 // lower bound of all picks
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
	before                int32 // state with one item less
	pick                  int32
}

// exact finds the optimal pick within the work limits. It extends picks item by item, and keeps
// the non-dominated ones that may still be better than the known solution.
func (r *relaxed) exact(s *solution) {
	slack := rounding * (math.Abs(s.value) + math.Abs(r.bound))
	gap := s.value - r.bound
	if gap <= slack {
		s.exact = true
		return
	}
	order := r.order(gap + slack)
	lightest := make([]float64, len(order)+1) // of the remaining items
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
				if e > gap+slack || !withinBound(w+lightest[k+1], r.limit) {
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
		s.value = totalValue(r.items, s.pick)
	}
	s.lower = s.value
}

// order sorts items by the number of remaining options, so that the number of states stays small.
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
	sorting.Stable(order, func(a, b int) int { return cmp.Compare(left[a], left[b]) })
	return order
}

// undominated keeps states of rising weight and falling value.
func undominated(ss []state) []state {
	sorting.Stable(ss, func(a, b state) int {
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
