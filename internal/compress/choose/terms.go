package choose

import (
	"cmp"
	"math"
	"slices"
)

// Where changes reach other layers, the cost of a model is a sum of terms: of each layer by its own change and by those that reach it. With a price
// on what is bounded the least of that sum is found by taking the layers out one after the other, each for every choice of those that
// are in a term with it: what lies in rows, as layers of networks do, has few of these. The least at any price, less the price of the bound, is
// no more than any plan within the bound has.

// maxTable is how many choices of layers are looked through together: where more are tied, terms are made small apart, which gives less.
const maxTable = 1 << 18

// table is a term: a figure for each choice of states of some layers.
type table struct {
	of     []int // rising
	stride []int
	v      []float64
}

// place is where the figure for states by layer stands.
func (t *table) place(state []int) (at int) {
	for i, l := range t.of {
		at += state[l] * t.stride[i]
	}
	return at
}

// sumAt adds up what tables have for states.
func sumAt(all []*table, state []int) (sum float64) {
	for _, x := range all {
		sum += x.v[x.place(state)]
	}
	return sum
}

// terms are those of a problem. A state of a layer is one of its points that reach others or are tied, or all that do neither.
type terms struct {
	p      *problem
	states [][][]int // points by layer and state
	reach  [][]int   // by layer the layers, itself but once, that its time depends on
	limit  int
}

// terms finds the states of a problem's layers, and which reach which.
func (p *problem) terms(limit int) *terms {
	t := &terms{p: p, limit: limit}
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
			if x.tied != nil || x.side.reaches() {
				apart[i][k] = true
			}
			for _, l := range x.tied {
				if at := p.like(l, x); at >= 0 {
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
		t.states[i] = append(t.states[i], free) // the first point is among them
	}
	return t
}

// like is the point of a layer with the change of another one's, -1 for none.
func (p *problem) like(layer int, x *Point) int {
	return slices.IndexFunc(p.curves[layer].Points, func(y Point) bool { return y.Change == x.Change })
}

// least is a sum at a price: no plan has less, and a plan that has it where all was looked through together.
type least struct {
	sum  float64
	pick []int
	gone []gone // in the order in which layers were taken out
}

// gone is a layer that was taken out, the tables that it was in, and those that are in their place.
type gone struct {
	layer    int
	from, to []*table
}

// least makes cost times its weight and loss times its weight small.
func (t *terms) least(cost, loss float64) least {
	p := t.p
	var all []*table
	for i := range p.curves {
		all = append(all, t.layer(i, cost, loss))
		all = append(all, t.ties(i)...)
	}
	var order []gone
	sum := cost * p.apart()
	left := make([]int, len(p.curves))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		at := t.next(left, all)
		l := left[at]
		left = slices.Delete(left, at, at+1)
		var from, rest []*table
		for _, x := range all {
			if slices.Contains(x.of, l) {
				from = append(from, x)
			} else {
				rest = append(rest, x)
			}
		}
		g := gone{layer: l, from: from}
		for _, together := range t.split(l, from) {
			x := t.without(l, together)
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
	return least{sum, t.points(state, cost, loss), order}
}

// next is the layer to take out, by position: that which leaves the smallest table.
func (t *terms) next(left []int, all []*table) int {
	best, at := math.Inf(1), 0
	for i, l := range left {
		size := 1.0
		for _, k := range around(l, all) {
			size *= float64(len(t.states[k]))
		}
		if size < best {
			best, at = size, i
		}
	}
	return at
}

// around are the layers in tables with one, itself among them.
func around(l int, all []*table) (out []int) {
	for _, x := range all {
		if slices.Contains(x.of, l) {
			out = append(out, x.of...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// split has tables of a layer in groups that can be looked through together.
func (t *terms) split(l int, from []*table) (out [][]*table) {
	for _, x := range from {
		k := slices.IndexFunc(out, func(g []*table) bool {
			return t.fits(around(l, append(slices.Clone(g), x)))
		})
		if k < 0 {
			k, out = len(out), append(out, nil)
		}
		out[k] = append(out[k], x)
	}
	return out
}

// table has room for the choices of layers.
func (t *terms) table(of []int) *table {
	x := &table{of: of, stride: make([]int, len(of))}
	size := 1
	for i, l := range of {
		x.stride[i] = size
		size *= len(t.states[l])
	}
	x.v = make([]float64, size)
	return x
}

// each calls do for all choices of states of layers, in the order of their tables.
func (t *terms) each(of, state []int, do func(at int)) {
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

// without adds tables up and takes the least over the states of a layer.
func (t *terms) without(l int, from []*table) *table {
	of := slices.DeleteFunc(around(l, from), func(k int) bool { return k == l })
	out := t.table(of)
	state := make([]int, len(t.states))
	first, stride := make([]int, len(from)), make([]int, len(from)) // of the layer's states in each table
	for i, x := range from {
		stride[i] = x.stride[slices.Index(x.of, l)]
	}
	t.each(of, state, func(at int) {
		for i, x := range from {
			first[i] = x.place(state)
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

// layer is the term of a layer. Of those that reach it beyond what can be looked through, each has the least that it could make of it.
func (t *terms) layer(i int, cost, loss float64) *table {
	of, more := t.reach[i], 1.0
	if !t.fits(of) {
		others := slices.DeleteFunc(slices.Clone(of), func(l int) bool { return l == i })
		slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(t.strongest(a, i), t.strongest(b, i)) })
		of = []int{i}
		for _, l := range others {
			if with := append(slices.Clone(of), l); t.fits(with) {
				of = with
			} else {
				more *= t.strongest(l, i)
			}
		}
		slices.Sort(of)
	}
	out := t.table(of)
	state := make([]int, len(t.states))
	t.each(of, state, func(at int) {
		_, out.v[at] = t.best(i, state[i], more*t.left(i, of, state), cost, loss)
	})
	return out
}

// fits reports whether choices of layers can be looked through together.
func (t *terms) fits(of []int) bool {
	size := 1
	for _, l := range of {
		if size *= len(t.states[l]); size > t.limit {
			return false
		}
	}
	return true
}

// left is what others leave of the time of a layer.
func (t *terms) left(i int, of, state []int) float64 {
	r := 1.0
	for _, l := range of {
		if l != i {
			r *= t.p.ratio(l, t.states[l][state[l]][0], i)
		}
	}
	return r
}

// best is the point of a state with the least sum where others leave a share of a layer's time.
func (t *terms) best(i, state int, left, cost, loss float64) (at int, sum float64) {
	sum = math.Inf(1)
	for _, k := range t.states[i][state] {
		x := &t.p.curves[i].Points[k]
		v := cost*t.p.taken(i, x, left) + loss*t.p.plain(x)
		if v < sum {
			at, sum = k, v
		}
	}
	return at, sum
}

// ratio is what a point of a layer makes of the time of another one.
func (p *problem) ratio(layer, point, of int) float64 {
	for _, o := range p.curves[layer].Points[point].side.others {
		if o.layer == of {
			return o.ratio.mid
		}
	}
	return 1
}

// strongest is the least that a layer makes of the time of another one.
func (t *terms) strongest(layer, of int) float64 {
	least := 1.0
	for k := range t.p.curves[layer].Points {
		least = min(least, t.p.ratio(layer, k, of))
	}
	return least
}

// plain is the loss of a point that adds up, no more than what counts.
func (p *problem) plain(x *Point) float64 {
	if p.squares() {
		return x.Loss
	}
	return p.lossOf(x)
}

// ties are terms without end where layers that must have the same change do not.
func (t *terms) ties(i int) (out []*table) {
	with := map[int]*table{}
	var order []int
	for s, points := range t.states[i] {
		x := &t.p.curves[i].Points[points[0]]
		if len(points) > 1 {
			continue // of those that are free
		}
		for _, l := range x.tied {
			if with[l] == nil {
				of := []int{i, l}
				slices.Sort(of)
				with[l] = t.table(of)
				order = append(order, l)
			}
			want := t.p.like(l, x)
			state := make([]int, len(t.states))
			t.each(with[l].of, state, func(at int) {
				if state[i] == s && (len(t.states[l][state[l]]) != 1 || t.states[l][state[l]][0] != want) {
					with[l].v[at] = math.Inf(1)
				}
			})
		}
	}
	for _, l := range order {
		out = append(out, with[l])
	}
	return out
}

// points are the best ones of states.
func (t *terms) points(state []int, cost, loss float64) []int {
	pick := make([]int, len(state))
	for i := range pick {
		pick[i], _ = t.best(i, state[i], t.left(i, t.reach[i], state), cost, loss)
	}
	return pick
}

// pricings bounds how many prices are tried.
const pricings = 16

// priced is what prices of the bound tell: no plan within it has less than lower, which comes of best; picks are plans that were met on the way.
type priced struct {
	lower float64
	best  least
	picks [][]int
}

// bound is that on the loss or on the cost, and whether it is the former.
func (t *terms) bound() (bound float64, loss bool) {
	p := t.p
	if bound = p.budget(); p.Goal.MaxLoss != nil {
		bound, loss = p.metric.Bound(*p.Goal.MaxLoss), true
	}
	return bound + rounding*math.Abs(bound), loss
}

// price looks for the price of the bound at which the least is most.
func (t *terms) price() (out priced) {
	p := t.p
	bound, lossBound := t.bound()
	out.lower = math.Inf(-1)
	met := func(x least) (value, weight float64) {
		out.picks = append(out.picks, x.pick)
		value = p.whole(x.pick).mid
		for i, k := range x.pick {
			weight += p.plain(&p.curves[i].Points[k])
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
		x := t.least(cost, loss)
		if v := x.sum - price*bound; v > out.lower {
			out.lower, out.best = v, x
		}
		return met(x)
	}
	v0, w0 := try(0)
	if within(w0, bound) {
		return out
	}
	lightest := t.least(0, 1) // at a price without end
	if !lossBound {
		lightest = t.least(1, 0)
	}
	v1, w1 := met(lightest)
	if !within(w1, bound) {
		return out
	}
	// Between two plans, one within the bound and one beyond it, the price is that at which both are as good.
	for range pricings {
		next := (v1 - v0) / (w0 - w1)
		if !(next > 0) || math.IsInf(next, 0) {
			break
		}
		v, w := try(next)
		if v+next*w >= (v0+next*w0)*(1-1e-9) {
			break // none is better
		}
		if within(w, bound) {
			v1, w1 = v, w
		} else {
			v0, w0 = v, w
		}
	}
	return out
}
