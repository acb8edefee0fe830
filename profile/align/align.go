// Package align pairs the layers of two profiles that do the same work. It compares the graphs of
// the models, so that renamed, quantised, pruned and otherwise exported models can be compared.
package align

import (
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// Kind says how the layers of a pair differ. Where several apply, the first of the list counts.
type Kind string

// Kinds of pairs.
const (
	Inserted  Kind = "inserted"  // only in the second profile
	Removed   Kind = "removed"   // only in the first profile
	Replaced  Kind = "replaced"  // other operators at the same place
	Quantised Kind = "quantised" // another element type, of the operands or the weights
	Pruned    Kind = "pruned"    // fewer channels, or more zeros among the weights
	Fused     Kind = "fused"     // fewer layers in the second profile do the same work
	Split     Kind = "split"     // more layers in the second profile do the same work
	Resized   Kind = "resized"   // the same operator on another batch or shape
	Same      Kind = "same"      // operators, options, element types and shapes are equal
)

// ByStructure is the confidence of pairs that were found by their place in the graph. It is above
// [profile.ByName].
const ByStructure profile.Confidence = "by structure"

// Pair is layers of two profiles that do the same work.
type Pair struct {
	// A and B are the indices of the layers, ascending; one of them is empty for inserted and
	// removed layers.
	A, B []int64
	Kind Kind
	// Confidence says how the layers were found, [profile.Unknown] for inserted and removed ones.
	Confidence profile.Confidence
	// Certain says that nothing speaks for another pair: the model's own nodes are the same, or
	// the layers and their neighbours on both sides agree in operator and structure.
	Certain bool
}

// Layers pairs the layers of two profiles. Pairs come in the order of a; layers that only b has
// follow the pair of the layer before them. Every layer is in one pair.
func Layers(a, b *profile.Profile) []Pair {
	x := &aligner{a: newGraph(a), b: newGraph(b)}
	x.a.other, x.b.other = x.b, x.a
	x.cores()
	x.rest()
	return x.pairs()
}

// aligner pairs the nodes of two graphs.
type aligner struct{ a, b *network }

// pair makes two nodes partners.
func (x *aligner) pair(i, j int) { x.a.partner[i], x.b.partner[j] = j, i }

// cores aligns the core operators: in the order of the graphs first, then those whose neighbours
// are partners.
func (x *aligner) cores() {
	x.sequence(x.a.inOrder(core), x.b.inOrder(core))
	for x.byNeighbours() {
	}
}

// Scores of a pair of nodes of one class; below least it is none.
const (
	nearby  = 1.0 // the nodes within three steps on one side are of the same classes
	further = 0.5 // those within six
	window  = 1.0 // kernel size and stride
	widths  = 0.7 // channels
	extent  = 0.3 // height, width or length of the result
	named   = 1.0
	least   = 1.3
)

// score rates two nodes as partners, 0 if they cannot be.
func (x *aligner) score(i, j int) float64 {
	p, q := &x.a.nodes[i], &x.b.nodes[j]
	if p.class != q.class {
		return 0
	}
	s := 0.0
	add := func(equal bool, value float64) {
		if equal {
			s += value
		}
	}
	for side := range sides {
		add(p.context[side][0] == q.context[side][0], nearby)
		add(p.context[side][1] == q.context[side][1], further)
	}
	add(p.window == q.window, window)
	add(p.width == q.width, widths)
	add(p.extent == q.extent, extent)
	add(p.name != "" && p.name == q.name, named)
	if s < least {
		return 0
	}
	return s
}

// maxCells bounds the table of an alignment. Longer sequences are cut at pairs whose context is
// unique in both.
const maxCells = 16 << 20

// sequence aligns two sequences of nodes so that the sum of the scores is the largest, keeping the
// order.
func (x *aligner) sequence(as, bs []int) {
	// Nodes at both ends that agree in everything need no table.
	for len(as) > 0 && len(bs) > 0 && x.identical(as[0], bs[0]) {
		x.pair(as[0], bs[0])
		as, bs = as[1:], bs[1:]
	}
	for len(as) > 0 && len(bs) > 0 && x.identical(as[len(as)-1], bs[len(bs)-1]) {
		x.pair(as[len(as)-1], bs[len(bs)-1])
		as, bs = as[:len(as)-1], bs[:len(bs)-1]
	}
	if len(as) == 0 || len(bs) == 0 {
		return
	}
	if len(as)*len(bs) > maxCells {
		i, j, ok := x.anchor(as, bs)
		if !ok {
			return
		}
		x.pair(as[i], bs[j])
		x.sequence(as[:i], bs[:j])
		x.sequence(as[i+1:], bs[j+1:])
		return
	}
	n, m := len(as), len(bs)
	best := make([]float32, (n+1)*(m+1))
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			v := max(best[(i+1)*(m+1)+j], best[i*(m+1)+j+1])
			if s := x.score(as[i], bs[j]); s > 0 {
				v = max(v, float32(s)+best[(i+1)*(m+1)+j+1])
			}
			best[i*(m+1)+j] = v
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		v := best[i*(m+1)+j]
		s := x.score(as[i], bs[j])
		switch {
		case s > 0 && v == float32(s)+best[(i+1)*(m+1)+j+1]:
			x.pair(as[i], bs[j])
			i, j = i+1, j+1
		case v == best[(i+1)*(m+1)+j]:
			i++
		default:
			j++
		}
	}
}

// identical reports whether nodes agree in all that is compared.
func (x *aligner) identical(i, j int) bool {
	p, q := &x.a.nodes[i], &x.b.nodes[j]
	return p.class == q.class && p.context == q.context && p.window == q.window && p.width == q.width && p.extent == q.extent
}

// anchor returns the positions of a pair near the middle whose context is unique on both sides.
func (x *aligner) anchor(as, bs []int) (i, j int, ok bool) {
	type key struct {
		class   string
		context [sides][2]uint64
		width   string
	}
	count := func(g *network, ns []int) map[key][]int {
		out := map[key][]int{}
		for at, n := range ns {
			p := &g.nodes[n]
			k := key{p.class, p.context, p.width}
			out[k] = append(out[k], at)
		}
		return out
	}
	ca, cb := count(x.a, as), count(x.b, bs)
	for d := range len(as) {
		at := len(as)/2 + (1-2*(d%2))*((d+1)/2)
		if at < 0 || at >= len(as) {
			continue
		}
		p := &x.a.nodes[as[at]]
		k := key{p.class, p.context, p.width}
		if len(ca[k]) == 1 && len(cb[k]) == 1 {
			return at, cb[k][0], true
		}
	}
	return 0, 0, false
}

// byNeighbours pairs nodes of one class that are the only ones left between partners, and reports
// whether it found any.
func (x *aligner) byNeighbours() (found bool) {
	for i := range x.a.nodes {
		p := &x.a.nodes[i]
		if p.role != core || x.a.partner[i] >= 0 {
			continue
		}
		j := x.between(p)
		if j >= 0 && x.a.nodes[i].class == x.b.nodes[j].class {
			x.pair(i, j)
			found = true
		}
	}
	return found
}

// between returns the one core node without a partner that reads from the partners of a node's
// producers and is read by those of its consumers, -1 if there is none.
func (x *aligner) between(p *node) int {
	at := -1
	for _, before := range p.before {
		q := x.a.partner[before]
		if q < 0 {
			return -1
		}
		for _, c := range x.b.nodes[q].after {
			if x.b.partner[c] >= 0 || x.b.nodes[c].class != p.class || len(x.b.nodes[c].before) != len(p.before) || len(x.b.nodes[c].after) != len(p.after) {
				continue
			}
			if !x.follows(p, &x.b.nodes[c]) {
				continue
			}
			if at >= 0 && at != c {
				return -1
			}
			at = c
		}
	}
	return at
}

// follows reports whether the consumers of two nodes are partners.
func (x *aligner) follows(p, q *node) bool {
	for _, c := range p.after {
		if k := x.a.partner[c]; k < 0 || !slices.Contains(q.after, k) {
			return false
		}
	}
	return true
}

// rest pairs the other nodes: those that belong to partners in their order, then what belongs to
// no core.
func (x *aligner) rest() {
	mine, theirs := x.a.owned(), x.b.owned()
	for i, j := range x.a.partner {
		if j >= 0 && x.a.nodes[i].role == core {
			x.inTurn(mine[i], theirs[j])
		}
	}
	x.inTurn(mine[-1], theirs[-1])
}

// inTurn pairs nodes of equal classes, keeping their order.
func (x *aligner) inTurn(as, bs []int) {
	from := 0
	for _, i := range as {
		for k := from; k < len(bs); k++ {
			if x.b.partner[bs[k]] < 0 && x.a.nodes[i].class == x.b.nodes[bs[k]].class {
				x.pair(i, bs[k])
				from = k + 1
				break
			}
		}
	}
}
