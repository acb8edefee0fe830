package choose

import (
	"container/heap"
	"math"
	"slices"
)

// Branch and bound closes the gap that prices leave. States of layers are chosen in reverse
// elimination order, those with the smallest bound of the sum at the price first. The tables that
// replaced a layer give the bound for everything still to be chosen. Once all states are chosen,
// costs are additive, and points are chosen as for independent layers.

// Work limits of the search.
const (
	maxBranches = 4000
	maxLeaves   = 400
)

// branch is a choice of states of the last layers.
type branch struct {
	lower float64
	state []int // by layer
	next  int   // position of the layer to choose, -1 where all are chosen
}

type branches []branch

func (b branches) Len() int { return len(b) }
func (b branches) Less(i, j int) bool {
	if b[i].lower != b[j].lower {
		return b[i].lower < b[j].lower
	}
	return b[i].next < b[j].next
}
func (b branches) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *branches) Push(x any)   { *b = append(*b, x.(branch)) }
func (b *branches) Pop() any {
	old := *b
	x := old[len(old)-1]
	*b = old[:len(old)-1]
	return x
}

// branch searches for a better plan than best (ok is false if none is known), and for a lower
// bound of all plans.
func (t *costTerms) branch(by *pricedBound, best choice, ok bool) (choice, bool, float64) {
	order := by.best.eliminated
	if len(order) == 0 { // no price gave a minimum
		return best, ok, by.lower
	}
	open := branches{{by.lower, make([]int, len(t.states)), len(order) - 1}}
	leaves, lower := 0, math.Inf(1)
	for n := 0; len(open) > 0; n++ {
		b := heap.Pop(&open).(branch)
		if ok && b.lower >= best.value-rounding*math.Abs(best.value) {
			return best, ok, min(lower, best.value)
		}
		if n == maxBranches || leaves == maxLeaves {
			return best, ok, min(lower, b.lower)
		}
		if b.next < 0 {
			leaves++
			c, is := t.leaf(b.state)
			if !is {
				continue
			}
			if lower = min(lower, max(c.lower, b.lower)); !ok || c.value < best.value {
				if x, keeps := t.p.evaluate(c.pick); keeps && (!ok || x.value < best.value) {
					best, ok = x, true
				}
			}
			continue
		}
		g := &order[b.next]
		state := slices.Clone(b.state)
		before := sumAt(g.to, state)
		for s := range t.states[g.layer] {
			state[g.layer] = s
			x := branch{b.lower + max(0, sumAt(g.from, state)-before), slices.Clone(state), b.next - 1}
			if !math.IsInf(x.lower, 1) && !(ok && x.lower >= best.value) {
				heap.Push(&open, x)
			}
		}
	}
	if ok {
		lower = min(lower, best.value)
	}
	return best, ok, lower
}

// leaf chooses points once all states are chosen; false where none keep to the bound.
func (t *costTerms) leaf(state []int) (c choice, ok bool) {
	bound, lossBound := t.bound()
	fixed := t.p.outsideCost()
	if !lossBound {
		bound -= fixed
	}
	items := make([][]option, len(state))
	for i := range state {
		left := t.remainingShare(i, t.reach[i], state)
		for _, k := range t.states[i][state[i]] {
			x := &t.p.curves[i].Points[k]
			o := option{t.p.pointCost(i, x, left), t.p.additiveLoss(x), k}
			if !lossBound {
				o.value, o.weight = o.weight, o.value
			}
			items[i] = append(items[i], o)
		}
		items[i] = frontier(items[i])
	}
	s, ok := solve(items, bound)
	if !ok {
		return c, false
	}
	c = choice{pick: pointsOf(items, s.pick), value: s.value, lower: s.lower, exact: s.exact}
	if lossBound {
		c.value, c.lower = c.value+fixed, c.lower+fixed
	}
	return c, true
}
