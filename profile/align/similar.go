package align

import (
	"slices"
	"sort"
)

// What nodes have in common beside their contexts adds so much to their similarity. Below
// leastSimilar they are not partners.
const (
	sameWindow    = 1.0
	sameExtent    = 0.8
	sameName      = 1.0
	sameNeighbour = 0.8
	leastSimilar  = 1.7
)

// similarity rates two core nodes as partners, 0 if they cannot be.
func (x *aligner) similarity(i, j int) float64 {
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
	for k := range contextOf {
		add(x.contexts[0][k][i] == x.contexts[1][k][j], contextOf[k].value)
	}
	add(p.shape.window == q.shape.window, sameWindow)
	add(p.shape.extent == q.shape.extent, sameExtent)
	add(x.trusted && slices.ContainsFunc(p.names, func(n name) bool { return slices.Contains(q.names, n) }), sameName)
	add(x.shareBefore(i, j), sameNeighbour)
	add(x.shareAfter(i, j), sameNeighbour)
	if s < leastSimilar {
		return 0
	}
	return s
}

// shareBefore reports whether two nodes read from partners.
func (x *aligner) shareBefore(i, j int) bool {
	ins, with := x.cores[0].ins[i], x.cores[1].ins[j]
	for _, m := range ins[:min(len(ins), maxNear)] {
		if m >= 0 && x.a.partner[m] >= 0 && slices.Contains(with[:min(len(with), maxNear)], x.a.partner[m]) {
			return true
		}
	}
	return false
}

// shareAfter reports whether two nodes are read by partners.
func (x *aligner) shareAfter(i, j int) bool {
	outs, with := x.cores[0].outs[i], x.cores[1].outs[j]
	for _, u := range outs[:min(len(outs), maxNear)] {
		q := x.a.partner[u.by]
		if q >= 0 && slices.ContainsFunc(with[:min(len(with), maxNear)], func(v use) bool { return v.by == q }) {
			return true
		}
	}
	return false
}

// similar pairs the core nodes that are left, keeping the order of the networks between partners
// that keep it.
func (x *aligner) similar() {
	as, bs := x.a.coreNodes(), x.b.coreNodes()
	place := make([]int, len(x.b.nodes))
	for k, j := range bs {
		place[j] = k
	}
	// The longest sequence of partners in the order of both.
	var at, to []int
	for k, i := range as {
		if j := x.a.partner[i]; j >= 0 && x.b.nodes[j].role == core {
			at, to = append(at, k), append(to, place[j])
		}
	}
	fromA, fromB := 0, 0
	segment := func(untilA, untilB int) {
		x.sequence(x.open(x.a, as[fromA:untilA]), x.open(x.b, bs[fromB:untilB]))
	}
	for _, k := range ascending(to) {
		segment(at[k], to[k])
		fromA, fromB = at[k]+1, to[k]+1
	}
	segment(len(as), len(bs))
}

// coreNodes lists the core nodes in order.
func (g *network) coreNodes() (out []int) {
	for _, i := range g.order {
		if g.nodes[i].role == core {
			out = append(out, i)
		}
	}
	return out
}

// open returns the nodes without a partner.
func (x *aligner) open(g *network, ns []int) (out []int) {
	for _, i := range ns {
		if g.partner[i] < 0 {
			out = append(out, i)
		}
	}
	return out
}

// ascending returns the positions of a longest ascending subsequence of different numbers.
func ascending(v []int) []int {
	var last []int // by length, the position of the smallest last number
	before := make([]int, len(v))
	for k, n := range v {
		l := sort.Search(len(last), func(l int) bool { return v[last[l]] >= n })
		before[k] = -1
		if l > 0 {
			before[k] = last[l-1]
		}
		if l == len(last) {
			last = append(last, k)
		} else {
			last[l] = k
		}
	}
	out := make([]int, len(last))
	if len(last) == 0 {
		return nil
	}
	for k, l := last[len(last)-1], len(last)-1; l >= 0; l-- {
		out[l] = k
		k = before[k]
	}
	return out
}

// maxCells bounds the table of an alignment. Of longer sequences only nodes near the diagonal are
// compared.
const maxCells = 1 << 20

// sequence aligns two sequences of nodes so that the sum of the similarities is the largest,
// keeping the order.
func (x *aligner) sequence(as, bs []int) {
	n, m := len(as), len(bs)
	if n == 0 || m == 0 {
		return
	}
	// Row i has the cells from low(i) to low(i)+width-1.
	width := min(m+1, max(maxCells/(n+1), 1))
	low := func(i int) int { return max(0, min(m+1-width, i*m/n-width/2)) }
	best := make([]float32, (n+1)*width)
	get := func(i, j int) float32 {
		if k := j - low(i); k >= 0 && k < width {
			return best[i*width+k]
		}
		return 0
	}
	const paired, skipA, skipB = 1, 2, 3
	step := make([]uint8, (n+1)*width)
	for i := n - 1; i >= 0; i-- {
		for k := width - 1; k >= 0; k-- {
			j := low(i) + k
			if j >= m {
				continue
			}
			v, how := get(i+1, j), uint8(skipA)
			if w := get(i, j+1); w > v {
				v, how = w, skipB
			}
			if s := x.similarity(as[i], bs[j]); s > 0 {
				if w := float32(s) + get(i+1, j+1); w >= v {
					v, how = w, paired
				}
			}
			best[i*width+k], step[i*width+k] = v, how
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		k := j - low(i)
		if k < 0 {
			j = low(i)
			continue
		}
		if k >= width {
			i++
			continue
		}
		switch step[i*width+k] {
		case paired:
			x.pair(as[i], bs[j], similar)
			i, j = i+1, j+1
		case skipB:
			j++
		default:
			i++
		}
	}
}
