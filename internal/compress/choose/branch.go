package choose

import (
	"container/heap"
	"math"
	"slices"
)

// What prices leave open is looked through: states of layers are chosen in the reverse of the order in which they were taken out, those first with which the
// sum at the price can be least. The tables that are in the place of a layer tell that of all that is still to be chosen. With all states chosen
// costs add up, and points are chosen as of layers that reach nothing.

// Limits on what is looked through.
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

// branch looks for a plan that is better than the best, false for none that is known, and for a bound that none is below.
func (t *terms) branch(by *priced, best choice, ok bool) (choice, bool, float64) {
	order := by.best.gone
	if len(order) == 0 { // no price has a least
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
				if x, keeps := t.p.judge(c.pick); keeps && (!ok || x.value < best.value) {
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

// leaf chooses points where all states are chosen; false where none keep to the bound.
func (t *terms) leaf(state []int) (c choice, ok bool) {
	bound, lossBound := t.bound()
	fixed := t.p.apart()
	if !lossBound {
		bound -= fixed
	}
	items := make([][]option, len(state))
	for i := range state {
		left := t.left(i, t.reach[i], state)
		for _, k := range t.states[i][state[i]] {
			x := &t.p.curves[i].Points[k]
			o := option{t.p.taken(i, x, left), t.p.plain(x), k}
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
	c = choice{pick: make([]int, len(items)), value: s.value, lower: s.lower, exact: s.exact}
	for i, k := range s.pick {
		c.pick[i] = items[i][k].index
	}
	if lossBound {
		c.value, c.lower = c.value+fixed, c.lower+fixed
	}
	return c, true
}
