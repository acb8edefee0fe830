package align

import "slices"

// stage says how partners were found.
type stage uint8

const (
	unpaired  stage = iota
	isomorph        // the only nodes with their hashes of all before and after them
	alike           // one of several such nodes
	named           // the only ones with their name
	oneSided        // the only ones with their hash of all before, or all after them
	similar         // the sum of the similarities is the largest
	between         // the only ones left between partners
	following       // of one class, and belong to partners
)

// aligner pairs the nodes of two graphs.
type aligner struct {
	a, b *network
	// cores are the views of core operators.
	cores [2]*view
	// trusted says that names mean the same in both networks.
	trusted bool
	// contexts are hashes of the operators around each core node, in the order of what they say.
	contexts [2][][]uint64
	local    [2][]uint64
	sides    [2]*sided
	types    [2]types
}

func newAligner(a, b *network, ts [2]types) *aligner {
	x := &aligner{a: a, b: b, types: ts, cores: [2]*view{a.view(cores), b.view(cores)}}
	for side, v := range x.cores {
		for _, c := range contextOf {
			x.contexts[side] = append(x.contexts[side], v.contexts(classLabel, c.steps, c.before, c.after))
		}
		x.local[side] = v.contexts(sizedLabel, 2, true, true)
	}
	return x
}

// contextOf are the contexts that similar nodes have in common, with what each adds to the
// similarity.
var contextOf = []struct {
	steps         int
	before, after bool
	value         float64
}{
	{3, true, false, 1},
	{6, true, false, 0.5},
	{3, false, true, 1},
	{6, false, true, 0.5},
	{2, true, true, 1},
	{4, true, true, 0.5},
}

// levels are the views and labels by which structures are compared, from what says most.
var levels = []struct {
	filter filter
	label  func(*node) uint64
	strict bool
}{
	{everything, weighedLabel, true},
	{everything, exactLabel, true},
	{everything, sizedLabel, false},
	{everything, windowLabel, false},
	{computing, sizedLabel, false},
	{computing, windowLabel, false},
	{cores, sizedLabel, false},
	{cores, windowLabel, false},
}

// sizedCores is the level of core operators with their sizes.
const sizedCores = 6

func (x *aligner) run() {
	var views [3][2]*view
	for f := range views {
		views[f] = [2]*view{x.a.view(filter(f)), x.b.view(filter(f))}
	}
	x.trusted = x.trustNames()
	hs := make([][2]hashes, len(levels))
	for k, l := range levels {
		vs := views[l.filter]
		for side, v := range vs {
			hs[k][side] = v.hash(l.label, l.strict)
		}
		x.isomorphic(vs, hs[k])
		if k == sizedCores {
			x.sides = [2]*sided{newSided(vs[0], hs[k][0]), newSided(vs[1], hs[k][1])}
		}
	}
	if x.trusted {
		x.byNames()
	}
	for k, l := range levels {
		x.oneSided(views[l.filter], [2][]uint64{hs[k][0].up, hs[k][1].up}, true)
		x.oneSided(views[l.filter], [2][]uint64{hs[k][0].down, hs[k][1].down}, false)
	}
	x.similar()
	for x.byNeighbours() {
	}
	x.beside()
	x.followers()
}

func (x *aligner) pair(i, j int, how stage) {
	x.a.partner[i], x.b.partner[j] = j, i
	x.a.how[i], x.b.how[j] = how, how
}

// gather lists the nodes of both networks without a partner, in order, by a key.
func gather[K comparable](x *aligner, vs [2]*view, key func(side, i int) K) map[K]*[2][]int {
	out := map[K]*[2][]int{}
	for side, v := range vs {
		for _, i := range v.g.order {
			if !v.keep[i] || v.g.partner[i] >= 0 {
				continue
			}
			k := key(side, i)
			s := out[k]
			if s == nil {
				s = new([2][]int)
				out[k] = s
			}
			s[side] = append(s[side], i)
		}
	}
	return out
}

// isomorphic pairs nodes that agree in all before and after them. All nodes that they are connected
// with must have counterparts, too: of a node that reads constants and the inputs of the graph
// alone there is nothing before it that could differ.
func (x *aligner) isomorphic(vs [2]*view, hs [2]hashes) {
	type both [2]uint64
	key := func(side, i int) both { return both{hs[side].up[i], hs[side].down[i]} }
	counts := map[both][2]int{}
	for side, v := range vs {
		for i := range v.keep {
			if v.keep[i] {
				n := counts[key(side, i)]
				n[side]++
				counts[key(side, i)] = n
			}
		}
	}
	firm := vs[0].firm(func(i int) bool { n := counts[key(0, i)]; return n[0] == n[1] })
	for _, s := range gather(x, vs, key) {
		if len(s[0]) != len(s[1]) || !firm[s[0][0]] {
			continue
		}
		if len(s[0]) == 1 {
			if x.sameClass(s[0][0], s[1][0]) {
				x.pair(s[0][0], s[1][0], isomorph)
			}
			continue
		}
		x.likeNames(s)
		n := 0
		for _, i := range s[0] {
			if x.a.partner[i] >= 0 {
				continue
			}
			for n < len(s[1]) && x.b.partner[s[1][n]] >= 0 {
				n++
			}
			if n < len(s[1]) && x.sameClass(i, s[1][n]) {
				x.pair(i, s[1][n], alike)
			}
		}
	}
}

// firm reports for which nodes something holds that also holds for all nodes that they are
// connected with.
func (v *view) firm(holds func(int) bool) []bool {
	out, seen := make([]bool, len(v.keep)), make([]bool, len(v.keep))
	for _, i := range v.g.order {
		if !v.keep[i] || seen[i] {
			continue
		}
		seen[i] = true
		part, all := []int{i}, true
		next := func(m int) {
			if m >= 0 && !seen[m] {
				seen[m] = true
				part = append(part, m)
			}
		}
		for k := 0; k < len(part); k++ {
			all = all && holds(part[k])
			for _, m := range v.ins[part[k]] {
				next(m)
			}
			for _, u := range v.outs[part[k]] {
				next(u.by)
			}
		}
		for _, k := range part {
			out[k] = all
		}
	}
	return out
}

// sameClass guards against collisions of hashes.
func (x *aligner) sameClass(i, j int) bool { return x.a.nodes[i].class == x.b.nodes[j].class }

// likeNames pairs equivalent nodes by their names.
func (x *aligner) likeNames(s *[2][]int) {
	if !x.trusted {
		return
	}
	names := map[name]int{}
	for _, j := range s[1] {
		for _, n := range x.b.nodes[j].names {
			names[n] = j
		}
	}
	for _, i := range s[0] {
		for _, n := range x.a.nodes[i].names {
			if j, ok := names[n]; ok && x.b.partner[j] < 0 && x.sameClass(i, j) {
				x.pair(i, j, alike)
				break
			}
		}
	}
}

// oneSided pairs the only nodes with a hash of all before or after them, if these have partners.
func (x *aligner) oneSided(vs [2]*view, hs [2][]uint64, up bool) {
	sets := gather(x, vs, func(side, i int) uint64 { return hs[side][i] })
	order := slices.Values(x.a.order)
	if !up {
		order = func(yield func(int) bool) {
			for _, i := range slices.Backward(x.a.order) {
				if !yield(i) {
					return
				}
			}
		}
	}
	for i := range order {
		s := sets[hs[0][i]]
		if s == nil || x.a.partner[i] >= 0 || len(s[0]) != 1 || len(s[1]) != 1 || s[0][0] != i || !x.sameClass(i, s[1][0]) {
			continue
		}
		j := s[1][0]
		if up && x.follows(vs[0].ins[i], vs[1].ins[j], hs) || !up && x.leads(vs[0].outs[i], vs[1].outs[j], hs) {
			x.pair(i, j, oneSided)
		}
	}
}

// follows reports whether operands come from partners of each other, or the inputs of the graph.
// Those that are computed from constants do not count.
func (x *aligner) follows(ins, with []int, hs [2][]uint64) bool {
	data := false
	for _, m := range ins {
		if m >= 0 && x.a.nodes[m].helper {
			continue
		}
		if data = true; m >= 0 && len(with) <= maxNear && !slices.ContainsFunc(with, func(q int) bool { return q >= 0 && x.mayPair(m, q, hs) }) {
			return false
		}
	}
	return data
}

// leads reports whether partners of each other read the results, or nobody does.
func (x *aligner) leads(outs, with []use, hs [2][]uint64) bool {
	return !slices.ContainsFunc(outs, func(u use) bool {
		return len(with) <= maxNear && !slices.ContainsFunc(with, func(v use) bool { return x.mayPair(u.by, v.by, hs) })
	})
}

// mayPair reports whether two nodes are partners, or have none and are equal in all before or after
// them: of several such nodes none is the only one, such as those that read the shape of an input.
func (x *aligner) mayPair(i, j int, hs [2][]uint64) bool {
	if p, q := x.a.partner[i], x.b.partner[j]; p >= 0 || q >= 0 {
		return p == j
	}
	return hs[0][i] == hs[1][j]
}

// unique lists the nodes by names that only one of them has.
func (g *network) unique() map[name]int {
	out := map[name]int{}
	for i := range g.nodes {
		for _, n := range g.nodes[i].names {
			if j, ok := out[n]; ok && j != i {
				out[n] = -1
			} else {
				out[n] = i
			}
		}
	}
	return out
}

// Names are trusted if enough of those that both networks have stand for equal operators.
const (
	leastNames  = 3
	trustedPart = 0.95
)

// trustNames reports whether equal names stand for equal operators, and forgets those that do not.
// All of the numbered ones must: those of a model with one more layer are shifted from there on.
func (x *aligner) trustNames() bool {
	theirs := x.b.unique()
	var shared, equal [2]float64
	for name, i := range x.a.unique() {
		j, ok := theirs[name]
		if !ok || i < 0 || j < 0 {
			continue
		}
		k := 0
		if name.numbered {
			k = 1
		}
		shared[k]++
		if p, q := &x.a.nodes[i], &x.b.nodes[j]; p.class == q.class && p.shape.window == q.shape.window || p.role != core || q.role != core {
			equal[k]++
		}
	}
	trusted := [2]bool{shared[0] >= leastNames && equal[0] >= trustedPart*shared[0], shared[1] >= leastNames && equal[1] == shared[1]}
	for _, g := range []*network{x.a, x.b} {
		for i := range g.nodes {
			g.nodes[i].names = slices.DeleteFunc(g.nodes[i].names, func(n name) bool { return n.numbered && !trusted[1] || !n.numbered && !trusted[0] })
		}
	}
	return trusted[0] || trusted[1]
}

// byNames pairs nodes of one class that share a name that no other has.
func (x *aligner) byNames() {
	theirs := x.b.unique()
	for i := range x.a.nodes {
		if x.a.partner[i] >= 0 {
			continue
		}
		mine := &x.a.nodes[i]
		for _, n := range mine.names {
			j, ok := theirs[n]
			if ok && j >= 0 && x.b.partner[j] < 0 && x.sameClass(i, j) && mine.role == x.b.nodes[j].role {
				x.pair(i, j, named)
				break
			}
		}
	}
}

// byNeighbours pairs core nodes of one class that are the only ones left between partners, and
// reports whether it found any.
func (x *aligner) byNeighbours() (found bool) {
	for _, i := range x.a.order {
		if x.a.nodes[i].role != core || x.a.partner[i] >= 0 {
			continue
		}
		if j := x.between(i); j >= 0 {
			x.pair(i, j, between)
			found = true
		}
	}
	return found
}

// between returns the one node without a partner that reads from the partners of a node's
// producers and is read by those of its consumers, -1 if it is absent or not the only one.
func (x *aligner) between(i int) int {
	at := -1
	for _, m := range x.cores[0].ins[i] {
		if m < 0 {
			continue
		}
		q := x.a.partner[m]
		if q < 0 || len(x.cores[1].outs[q]) > maxNear {
			return -1
		}
		for _, u := range x.cores[1].outs[q] {
			c := u.by
			if c == at || x.b.partner[c] >= 0 || !x.sameClass(i, c) || !x.surrounded(i, c) {
				continue
			}
			if at >= 0 {
				return -1
			}
			at = c
		}
	}
	return at
}

// maxNear bounds how many neighbours are compared.
const maxNear = 64

// surrounded reports whether the core nodes around two are partners of each other.
func (x *aligner) surrounded(i, j int) bool {
	ins, with := x.cores[0].ins[i], x.cores[1].ins[j]
	outs, and := x.cores[0].outs[i], x.cores[1].outs[j]
	if len(ins) != len(with) || len(outs) != len(and) || len(ins) > maxNear || len(outs) > maxNear {
		return false
	}
	for _, m := range ins {
		if m < 0 {
			if !slices.Contains(with, m) {
				return false
			}
		} else if q := x.a.partner[m]; q < 0 || !slices.Contains(with, q) {
			return false
		}
	}
	for _, u := range outs {
		q := x.a.partner[u.by]
		if q < 0 || !slices.ContainsFunc(and, func(v use) bool { return v.by == q }) {
			return false
		}
	}
	return true
}

// beside pairs the other nodes that make an operand of partners, or are the only ones of their
// class that read from partners.
func (x *aligner) beside() {
	for k := range 2 * len(x.a.order) {
		find, at := x.operand, len(x.a.order)-1-k
		if at < 0 {
			find, at = x.reader, -1-at
		}
		i := x.a.order[at]
		if x.a.nodes[i].role == core || x.a.partner[i] >= 0 {
			continue
		}
		if j := find(i); j >= 0 {
			x.pair(i, j, following)
		}
	}
}

// like reports whether a node of the second network has no partner yet and is like one of the
// first.
func (x *aligner) like(i, j int) bool {
	return j >= 0 && x.b.partner[j] < 0 && x.a.nodes[i].role == x.b.nodes[j].role && x.sameClass(i, j)
}

// operand returns the node that makes the same operands of the partners of a node's consumers, -1
// if it is not one.
func (x *aligner) operand(i int) int {
	at := -1
	outs := x.a.nodes[i].outs
	for _, u := range outs[:min(len(outs), maxNear)] {
		q := x.a.partner[u.by]
		if q < 0 {
			continue
		}
		mine, theirs := x.a.nodes[u.by].ins, x.b.nodes[q].ins
		j := -1
		if len(mine) == len(theirs) {
			j = theirs[u.operand].from
		} else if len(mine) <= maxNear && len(theirs) <= maxNear {
			for _, e := range mine {
				if e.from != i && e.from >= 0 && x.a.partner[e.from] < 0 && x.a.nodes[e.from].class == x.a.nodes[i].class {
					return -1
				}
			}
			for _, e := range theirs {
				if e.from != j && x.like(i, e.from) {
					if j >= 0 {
						return -1
					}
					j = e.from
				}
			}
		}
		if !x.like(i, j) || at >= 0 && at != j {
			return -1
		}
		at = j
	}
	return at
}

// reader returns the only node of a node's class that reads from the partner of what makes its
// operand, -1 if there are several.
func (x *aligner) reader(i int) int {
	m := x.a.nodes[i].principal
	if m < 0 || x.a.partner[m] < 0 {
		return -1
	}
	mine, theirs := x.a.nodes[m].outs, x.b.nodes[x.a.partner[m]].outs
	if len(mine) > maxNear || len(theirs) > maxNear {
		return -1
	}
	for _, u := range mine {
		if u.by != i && x.a.partner[u.by] < 0 && x.a.nodes[u.by].class == x.a.nodes[i].class {
			return -1
		}
	}
	at := -1
	for _, u := range theirs {
		if u.by != at && x.like(i, u.by) {
			if at >= 0 {
				return -1
			}
			at = u.by
		}
	}
	return at
}

// followers pairs the other nodes: those that belong to partners in their order, then what belongs
// to no core.
func (x *aligner) followers() {
	mine, theirs := x.a.owned(), x.b.owned()
	for i, j := range x.a.partner {
		if j >= 0 && x.a.nodes[i].role == core {
			x.inTurn(mine[i], theirs[j])
		}
	}
	x.inTurn(mine[-1], theirs[-1])
}

// inTurn pairs nodes of equal classes, keeping their order. Formats have other operators about
// shapes, so that those of equal size come first there.
func (x *aligner) inTurn(as, bs []int) {
	if x.a.lite() != x.b.lite() {
		x.ordered(as, bs, func(n *node) string { return n.class + n.shape.extent })
	}
	x.ordered(as, bs, func(n *node) string { return n.class })
	// What is left may stand in another order: operands of one consumer, for one.
	left := map[string][]int{}
	for _, j := range bs {
		if x.b.partner[j] < 0 {
			left[x.b.nodes[j].class] = append(left[x.b.nodes[j].class], j)
		}
	}
	for _, i := range as {
		class := x.a.nodes[i].class
		if x.a.partner[i] < 0 && len(left[class]) > 0 {
			x.pair(i, left[class][0], following)
			left[class] = left[class][1:]
		}
	}
}

// ordered pairs nodes with equal keys behind the partners of those before them.
func (x *aligner) ordered(as, bs []int, key func(n *node) string) {
	next := map[string][]int{}
	at := map[int]int{}
	for k, j := range bs {
		at[j] = k
		if x.b.partner[j] < 0 {
			n := key(&x.b.nodes[j])
			next[n] = append(next[n], j)
		}
	}
	from := 0
	for _, i := range as {
		n := key(&x.a.nodes[i])
		if j := x.a.partner[i]; j >= 0 {
			if k, ok := at[j]; ok {
				from = max(from, k+1)
			}
			continue
		}
		for len(next[n]) > 0 && at[next[n][0]] < from {
			next[n] = next[n][1:]
		}
		if len(next[n]) == 0 {
			continue
		}
		j := next[n][0]
		next[n] = next[n][1:]
		x.pair(i, j, following)
		from = at[j] + 1
	}
}

// owned counts the nodes of a class and role that belong to a node.
type owned struct {
	owner int
	class string
	role  role
}

func (g *network) countOwned() map[owned]int {
	out := map[owned]int{}
	for i := range g.nodes {
		out[g.nodes[i].owned()]++
	}
	return out
}

func (n *node) owned() owned { return owned{n.owner, n.class, n.role} }

// certain reports whether nothing speaks for another partner.
func (x *aligner) certain(unique [2]map[uint64]int, counts [2]map[owned]int) func(i int) bool {
	with := [2]map[int][]string{x.a.satellites(), x.b.satellites()}
	var of func(i int) bool
	of = func(i int) bool {
		j := x.a.partner[i]
		if j < 0 {
			return false
		}
		p, q := &x.a.nodes[i], &x.b.nodes[j]
		switch x.a.how[i] {
		case isomorph:
			return true
		case alike, unpaired:
			return false
		}
		if p.role != core && q.role != core {
			return p.owner >= 0 && q.owner >= 0 && x.a.partner[p.owner] == q.owner && counts[0][p.owned()] == 1 && counts[1][q.owned()] == 1 && of(p.owner)
		}
		if p.role != core || q.role != core {
			return false
		}
		if x.a.how[i] != similar && x.oneSide(i, j) && !x.otherwise(i, j) && slices.Equal(with[0][i], with[1][j]) {
			return true
		}
		here, there := x.local[0][i], x.local[1][j]
		return here == there && unique[0][here] == 1 && unique[1][there] == 1 && x.surrounded(i, j) && !x.otherwise(i, j)
	}
	return of
}

// sided finds the core nodes by their hashes of all before and of all after them, as [aligner.run]
// computed them.
type sided struct {
	h  hashes
	at [2]map[uint64]int // -1 for several
}

func newSided(v *view, h hashes) *sided {
	s := &sided{h: h}
	for k, hs := range [][]uint64{h.up, h.down} {
		s.at[k] = map[uint64]int{}
		for i, h := range hs {
			if !v.keep[i] {
				continue
			}
			if _, ok := s.at[k][h]; ok {
				s.at[k][h] = -1
			} else {
				s.at[k][h] = i
			}
		}
	}
	return s
}

// otherwise reports whether one of two nodes agrees with another node than its partner in all
// before, or all after it: of equal blocks one is more in one of the networks.
func (x *aligner) otherwise(i, j int) bool {
	a, b := x.sides[0], x.sides[1]
	differs := func(at map[uint64]int, h uint64, partner int) bool {
		k, ok := at[h]
		return ok && k != partner
	}
	return differs(b.at[0], a.h.up[i], j) || differs(b.at[1], a.h.down[i], j) || differs(a.at[0], b.h.up[j], i) || differs(a.at[1], b.h.down[j], i)
}

// satellites lists the classes of the satellites of each core node, in order.
func (g *network) satellites() map[int][]string {
	out := map[int][]string{}
	for _, i := range g.order {
		if n := &g.nodes[i]; n.role == satellite && n.owner >= 0 {
			out[n.owner] = append(out[n.owner], n.class)
		}
	}
	return out
}

// oneSide reports whether two nodes are the only ones with their hash of all before them, or of all
// after them.
func (x *aligner) oneSide(i, j int) bool {
	a, b := x.sides[0], x.sides[1]
	only := func(k int, h, with uint64) bool { return h == with && a.at[k][h] == i && b.at[k][h] == j }
	return only(0, a.h.up[i], b.h.up[j]) || only(1, a.h.down[i], b.h.down[j])
}

// counts counts the core nodes by the hash of what is around them.
func (x *aligner) counts() (out [2]map[uint64]int) {
	for side, v := range x.cores {
		out[side] = map[uint64]int{}
		for i := range v.keep {
			if v.keep[i] {
				out[side][x.local[side][i]]++
			}
		}
	}
	return out
}
