package choose

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// Where changes affect other layers, the cost of a model is a sum of terms, one per layer, each
// of which depends on the changes of that layer and of those that affect it. With a price on the
// bounded quantity the minimum of the sum is found by variable elimination: layers are eliminated
// one by one, for every state of their neighbours. Networks are mostly chains, so these are few.
// The minimum at any price, less the price of the bound, is a lower bound for all plans within
// the bound.

// maxTable bounds the size of a table; with more neighbours the terms are minimised separately,
// which gives a weaker bound.
const maxTable = 1 << 18

// costTable is a term: a value for each combination of states of some layers.
type costTable struct {
	of     []int // ascending
	stride []int
	v      []float64
}

// offset returns the index of the value for states by layer.
func (t *costTable) offset(state []int) (at int) {
	for i, l := range t.of {
		at += state[l] * t.stride[i]
	}
	return at
}

// sumAt sums the values of tables for states.
func sumAt(all []*costTable, state []int) (sum float64) {
	for _, x := range all {
		sum += x.v[x.offset(state)]
	}
	return sum
}

// costTerms has the terms of a problem. A state of a layer is one of its points that affect
// others or are tied, or the set of all its other points.
type costTerms struct {
	p      *problem
	states [][][]int // points by layer and state
	reach  [][]int   // by layer, the layers that its time depends on, itself included
	limit  int
}

// terms finds the states of layers, and their dependencies.
func (p *problem) terms(limit int) *costTerms {
	t := &costTerms{p: p, limit: limit}
	n := len(p.curves)
	apart := make([]map[int]bool, n)
	for i := range apart {
		apart[i] = map[int]bool{}
	}
	t.reach = make([][]int, n)
	for i, c := range p.curves {
		t.reach[i] = append(t.reach[i], i)
		for k := range c.Points {
			x := &c.Points[k]
			if x.tied != nil || x.side.affectsOthers() {
				apart[i][k] = true
			}
			for _, l := range x.tied {
				if at := p.pointWith(l, x); at >= 0 {
					apart[l][at] = true
				}
			}
			for _, o := range x.side.others {
				if !slices.Contains(t.reach[o.layer], i) {
					t.reach[o.layer] = append(t.reach[o.layer], i)
				}
			}
		}
	}
	t.states = make([][][]int, n)
	for i, c := range p.curves {
		slices.Sort(t.reach[i])
		t.reach[i] = slices.Compact(t.reach[i])
		var free []int
		for k := range c.Points {
			if apart[i][k] {
				t.states[i] = append(t.states[i], []int{k})
			} else {
				free = append(free, k)
			}
		}
		t.states[i] = append(t.states[i], free) // includes the first point
	}
	return t
}

// pointWith returns the point of a layer with the same change, -1 for none.
func (p *problem) pointWith(layer int, x *Point) int {
	return slices.IndexFunc(p.curves[layer].Points, func(y Point) bool { return y.Change == x.Change })
}

// minimum is a lower bound of the sum at a price, and a plan that attains it if no table was
// split.
type minimum struct {
	sum        float64
	pick       []int
	eliminated []elimination // in elimination order
}

// elimination is an eliminated layer, the tables that depended on it, and the tables that replace
// them.
type elimination struct {
	layer    int
	from, to []*costTable
}

// minimise minimises the weighted sum of cost and loss.
func (t *costTerms) minimise(cost, loss float64) minimum {
	p := t.p
	var all []*costTable
	for i := range p.curves {
		all = append(all, t.layerTable(i, cost, loss))
		all = append(all, t.tieTables(i)...)
	}
	var order []elimination
	sum := cost * p.outsideCost()
	left := make([]int, len(p.curves))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		at := t.nextToEliminate(left, all)
		l := left[at]
		left = slices.Delete(left, at, at+1)
		var from, rest []*costTable
		for _, x := range all {
			if slices.Contains(x.of, l) {
				from = append(from, x)
			} else {
				rest = append(rest, x)
			}
		}
		g := elimination{layer: l, from: from}
		for _, together := range t.splitTables(l, from) {
			x := t.eliminate(l, together)
			if g.to = append(g.to, x); len(x.of) == 0 {
				sum += x.v[0]
			} else {
				rest = append(rest, x)
			}
		}
		order, all = append(order, g), rest
	}
	state := make([]int, len(p.curves))
	for _, g := range slices.Backward(order) {
		best, at := math.Inf(1), 0
		for s := range t.states[g.layer] {
			state[g.layer] = s
			if v := sumAt(g.from, state); v < best {
				best, at = v, s
			}
		}
		state[g.layer] = at
	}
	return minimum{sum, t.bestPoints(state, cost, loss), order}
}

// nextToEliminate returns the position of the layer whose elimination leaves the smallest table.
func (t *costTerms) nextToEliminate(left []int, all []*costTable) int {
	best, at := math.Inf(1), 0
	for i, l := range left {
		size := 1.0
		for _, k := range tableNeighbours(l, all) {
			size *= float64(len(t.states[k]))
		}
		if size < best {
			best, at = size, i
		}
	}
	return at
}

// tableNeighbours returns the layers that share a table with one, itself included.
func tableNeighbours(l int, all []*costTable) (out []int) {
	for _, x := range all {
		if slices.Contains(x.of, l) {
			out = append(out, x.of...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// splitTables groups the tables of a layer so that each group stays within the size limit.
func (t *costTerms) splitTables(l int, from []*costTable) (out [][]*costTable) {
	for _, x := range from {
		k := slices.IndexFunc(out, func(g []*costTable) bool {
			return t.fits(tableNeighbours(l, append(slices.Clone(g), x)))
		})
		if k < 0 {
			k, out = len(out), append(out, nil)
		}
		out[k] = append(out[k], x)
	}
	return out
}

// newTable allocates a table for layers.
func (t *costTerms) newTable(of []int) *costTable {
	x := &costTable{of: of, stride: make([]int, len(of))}
	size := 1
	for i, l := range of {
		x.stride[i] = size
		size *= len(t.states[l])
	}
	x.v = make([]float64, size)
	return x
}

// forEachState calls do for all combinations of states of layers, in table order.
func (t *costTerms) forEachState(of, state []int, do func(at int)) {
	for _, l := range of {
		state[l] = 0
	}
	for at := 0; ; at++ {
		do(at)
		i := 0
		for ; i < len(of); i++ {
			if state[of[i]]++; state[of[i]] < len(t.states[of[i]]) {
				break
			}
			state[of[i]] = 0
		}
		if i == len(of) {
			return
		}
	}
}

// eliminate adds tables and minimises over the states of a layer.
func (t *costTerms) eliminate(l int, from []*costTable) *costTable {
	of := slices.DeleteFunc(tableNeighbours(l, from), func(k int) bool { return k == l })
	out := t.newTable(of)
	state := make([]int, len(t.states))
	// of the layer's states in each table
	first, stride := make([]int, len(from)), make([]int, len(from))
	for i, x := range from {
		stride[i] = x.stride[slices.Index(x.of, l)]
	}
	t.forEachState(of, state, func(at int) {
		for i, x := range from {
			first[i] = x.offset(state)
		}
		best := math.Inf(1)
		for s := range t.states[l] {
			v := 0.0
			for i, x := range from {
				v += x.v[first[i]+s*stride[i]]
			}
			best = min(best, v)
		}
		out.v[at] = best
	})
	return out
}

// layerTable returns the term of a layer. Layers that affect it beyond the size limit contribute
// their smallest possible ratio.
func (t *costTerms) layerTable(i int, cost, loss float64) *costTable {
	of, more := t.reach[i], 1.0
	if !t.fits(of) {
		others := slices.DeleteFunc(slices.Clone(of), func(l int) bool { return l == i })
		sorting.Stable(others, func(a, b int) int { return cmp.Compare(t.strongestRatio(a, i), t.strongestRatio(b, i)) })
		of = []int{i}
		for _, l := range others {
			if with := append(slices.Clone(of), l); t.fits(with) {
				of = with
			} else {
				more *= t.strongestRatio(l, i)
			}
		}
		slices.Sort(of)
	}
	out := t.newTable(of)
	state := make([]int, len(t.states))
	t.forEachState(of, state, func(at int) {
		_, out.v[at] = t.bestPoint(i, state[i], more*t.remainingShare(i, of, state), cost, loss)
	})
	return out
}

// fits reports whether a table of these layers stays within the size limit.
func (t *costTerms) fits(of []int) bool {
	size := 1
	for _, l := range of {
		if size *= len(t.states[l]); size > t.limit {
			return false
		}
	}
	return true
}

// remainingShare is the share of a layer's time that other layers leave.
func (t *costTerms) remainingShare(i int, of, state []int) float64 {
	r := 1.0
	for _, l := range of {
		if l != i {
			r *= t.p.timeRatio(l, t.states[l][state[l]][0], i)
		}
	}
	return r
}

// bestPoint returns the point of a state with the smallest sum, given the remaining share of the
// layer's time.
func (t *costTerms) bestPoint(i, state int, left, cost, loss float64) (at int, sum float64) {
	sum = math.Inf(1)
	for _, k := range t.states[i][state] {
		x := &t.p.curves[i].Points[k]
		v := cost*t.p.pointCost(i, x, left) + loss*t.p.additiveLoss(x)
		if v < sum {
			at, sum = k, v
		}
	}
	return at, sum
}

// timeRatio is the effect of a layer's point on the time of another layer.
func (p *problem) timeRatio(layer, point, of int) float64 {
	for _, o := range p.curves[layer].Points[point].side.others {
		if o.layer == of {
			return o.ratio.mid
		}
	}
	return 1
}

// strongestRatio is the smallest ratio that a layer can cause in another one.
func (t *costTerms) strongestRatio(layer, of int) float64 {
	least := 1.0
	for k := range t.p.curves[layer].Points {
		least = min(least, t.p.timeRatio(layer, k, of))
	}
	return least
}

// additiveLoss is the additive part of a point's loss, a lower bound of its loss.
func (p *problem) additiveLoss(x *Point) float64 {
	if p.upperDrops() {
		return x.Loss
	}
	return p.lossOf(x)
}

// tieTables returns tables that are infinite where layers that must have the same change do not.
func (t *costTerms) tieTables(i int) (out []*costTable) {
	with := map[int]*costTable{}
	for s, points := range t.states[i] {
		x := &t.p.curves[i].Points[points[0]]
		if len(points) > 1 {
			continue // the set of independent points
		}
		for _, l := range x.tied {
			if with[l] == nil {
				of := []int{i, l}
				slices.Sort(of)
				with[l] = t.newTable(of)
				out = append(out, with[l])
			}
			want := t.p.pointWith(l, x)
			state := make([]int, len(t.states))
			t.forEachState(with[l].of, state, func(at int) {
				if state[i] == s && (len(t.states[l][state[l]]) != 1 || t.states[l][state[l]][0] != want) {
					with[l].v[at] = math.Inf(1)
				}
			})
		}
	}
	return out
}

// bestPoints returns the best points of states.
func (t *costTerms) bestPoints(state []int, cost, loss float64) []int {
	pick := make([]int, len(state))
	for i := range pick {
		pick[i], _ = t.bestPoint(i, state[i], t.remainingShare(i, t.reach[i], state), cost, loss)
	}
	return pick
}

// maxPrices bounds the number of prices tried.
const maxPrices = 16

// pricedBound is the result of the price search: no plan within the bound is below lower, which
// comes from best. picks are the plans found on the way.
type pricedBound struct {
	lower float64
	best  minimum
	picks [][]int
}

// bound returns the bound, and whether it is on the loss rather than the cost.
func (t *costTerms) bound() (bound float64, loss bool) {
	p := t.p
	if bound = p.budget(); p.Goal.MaxLoss != nil {
		bound, loss = p.metric.Bound(*p.Goal.MaxLoss), true
	}
	return bound + rounding*math.Abs(bound), loss
}

// findPrice searches the price with the highest lower bound.
func (t *costTerms) findPrice() (out pricedBound) {
	p := t.p
	bound, lossBound := t.bound()
	out.lower = math.Inf(-1)
	met := func(x minimum) (value, weight float64) {
		out.picks = append(out.picks, x.pick)
		value = p.modelCost(x.pick).mid
		for i, k := range x.pick {
			weight += p.additiveLoss(&p.curves[i].Points[k])
		}
		if !lossBound {
			value, weight = weight, value
		}
		return value, weight
	}
	try := func(price float64) (value, weight float64) {
		cost, loss := 1.0, price
		if !lossBound {
			cost, loss = price, 1
		}
		x := t.minimise(cost, loss)
		if v := x.sum - price*bound; v > out.lower {
			out.lower, out.best = v, x
		}
		return met(x)
	}
	v0, w0 := try(0)
	if withinBound(w0, bound) {
		return out
	}
	lightest := t.minimise(0, 1) // at an infinite price
	if !lossBound {
		lightest = t.minimise(1, 0)
	}
	v1, w1 := met(lightest)
	if !withinBound(w1, bound) {
		return out
	}
	// The next price makes the plan within the bound and the one beyond it equally good.
	for range maxPrices {
		next := (v1 - v0) / (w0 - w1)
		if !(next > 0) || math.IsInf(next, 0) {
			break
		}
		v, w := try(next)
		if v+next*w >= (v0+next*w0)*(1-1e-9) {
			break // no better plan
		}
		if withinBound(w, bound) {
			v1, w1 = v, w
		} else {
			v0, w0 = v, w
		}
	}
	return out
}
