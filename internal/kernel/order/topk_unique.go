// Package order ranks and groups elements: top k along an axis, and unique rows. It works on
// keys, unsigned integers that sort like the elements, so that one loop serves every element
// type.
package order

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// FloatKey returns the key of a floating-point number. NaN sorts after all other values and equals
// itself, as in NumPy; both zeros are equal.
func FloatKey(f float64) uint64 {
	if f != f {
		return math.MaxUint64
	}
	b := math.Float64bits(f)
	if b<<1 == 0 {
		b = 0
	}
	return b ^ (uint64(int64(b)>>63) | 1<<63) // branch-free: signs are unpredictable
}

// SignedKey returns the key of an integer.
func SignedKey(i int64) uint64 { return uint64(i) ^ 1<<63 }

// StringKeys sets the keys of strings, which are comparable only with each other.
func StringKeys(keys []uint64, v []string) {
	sorted := slices.Sorted(slices.Values(v))
	for i, s := range v {
		keys[i] = uint64(sort.SearchStrings(sorted, s))
	}
}

// Lines describes the lines of a row-major block along one axis: N elements each, Inner adjacent
// lines, Outer groups of them.
type Lines struct{ Outer, N, Inner int }

// entry is an element with its index in its line.
type entry struct {
	key uint64
	i   int
}

// TopK writes the indices of the k least elements of each line to at (Outer × k × Inner), in
// order; the greatest with largest. Equal elements keep their order. k is at most N.
func (l Lines) TopK(pool *workers.Pool, at []int, keys []uint64, k int, largest bool) {
	if len(at) == 0 {
		return
	}
	q := topArgs{l: l, at: at, keys: keys, k: k}
	if largest {
		q.flip = math.MaxUint64
	}
	workers.Do(pool, l.Outer*l.Inner, max(1, 1<<13/l.N), q, topArgs.lines)
}

// topArgs holds the arguments of a work item of [Lines.TopK]; XOR with flip reverses the order of
// keys.
type topArgs struct {
	l    Lines
	at   []int
	keys []uint64
	k    int
	flip uint64
}

// topScratch is scratch memory to sort a line.
type topScratch struct {
	words, spare []uint64
	entries      []entry
}

var topPool = sync.Pool{New: func() any { return new(topScratch) }}

// lines writes the results of lines lo to hi.
func (q topArgs) lines(lo, hi int) {
	l, k := q.l, q.k
	r := topPool.Get().(*topScratch)
	for line := lo; line < hi; line++ {
		o, in := line/l.Inner, line%l.Inner
		own := q.keys[o*l.N*l.Inner+in:]
		put := func(j, i int) { q.at[(o*k+j)*l.Inner+in] = (o*l.N+i)*l.Inner + in }
		if k > l.N/4 {
			if words := l.words(r.words, own, q.flip); len(words) > 0 {
				r.words, r.spare = words, slices.Grow(r.spare[:0], l.N)[:l.N]
				low := bits.Len(uint(l.N - 1))
				for j, w := range bestWords(words, r.spare, k, low) {
					put(j, int(w&(1<<low-1)))
				}
				continue
			}
		}
		r.entries = l.best(r.entries[:0], own, q.flip, k)
		for j, e := range r.entries {
			put(j, e.i)
		}
	}
	topPool.Put(r)
}

// words returns the keys of a line without their common bits, with the indices in the lower bits:
// these sort faster. It returns nil if they do not fit 64 bits.
func (l Lines) words(buf, keys []uint64, flip uint64) []uint64 {
	differ := uint64(0)
	for i := range l.N {
		differ |= keys[i*l.Inner] ^ keys[0]
	}
	down, place := bits.TrailingZeros64(differ), bits.Len(uint(l.N-1))
	if bits.Len64(differ)-down+place > 64 {
		return buf[:0]
	}
	buf = slices.Grow(buf[:0], l.N)[:l.N]
	for i := range buf {
		buf[i] = ((keys[i*l.Inner]^flip)&differ>>down)<<place | uint64(i)
	}
	return buf
}

func before(a, b entry) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.i, b.i)) }

// best returns the first k elements of a line in order. A small k uses a heap with the worst of
// the best on top; an equal later element is worse.
func (l Lines) best(all []entry, keys []uint64, flip uint64, k int) []entry {
	few := k <= l.N/4
	n := l.N
	if few {
		n = k
	}
	for i := range n {
		all = append(all, entry{keys[i*l.Inner] ^ flip, i})
	}
	if few && k > 0 {
		for j := k/2 - 1; j >= 0; j-- {
			sink(all, j)
		}
		worst := all[0].key
		for i := k; i < l.N; i++ {
			if key := keys[i*l.Inner] ^ flip; key < worst {
				all[0] = entry{key, i}
				sink(all, 0)
				worst = all[0].key
			}
		}
	}
	slices.SortFunc(all, before)
	return all[:k]
}

// sink restores the heap after element j was replaced.
func sink(heap []entry, j int) {
	for {
		w := j
		for s := 2*j + 1; s <= 2*j+2 && s < len(heap); s++ {
			if before(heap[w], heap[s]) < 0 {
				w = s
			}
		}
		if w == j {
			return
		}
		heap[w], heap[j] = heap[j], heap[w]
		j = w
	}
}

// Groups describes equal rows: the first row and the count of each distinct row, and the group of
// each row.
type Groups struct{ First, Count, Of []int }

// Unique groups equal rows: row i is every element of the lines with index i, compared from first
// to last. Groups are in order of their rows if sorted is set, else of their first rows.
func (l Lines) Unique(keys []uint64, sorted bool) Groups {
	g := Groups{Of: make([]int, l.N)}
	compare := func(a, b int) int {
		for o := range l.Outer {
			at := o * l.N
			if c := slices.Compare(keys[(at+a)*l.Inner:][:l.Inner], keys[(at+b)*l.Inner:][:l.Inner]); c != 0 {
				return c
			}
		}
		return 0
	}
	if l.Outer*l.Inner == 1 {
		place := make(map[uint64]int, min(l.N, 1<<10))
		for i, k := range keys {
			p, ok := place[k]
			if !ok {
				p = len(g.First)
				place[k] = p
			}
			g.add(i, p)
		}
	} else {
		at := make([]int, l.N)
		for i := range at {
			at[i] = i
		}
		slices.SortStableFunc(at, compare)
		for i, a := range at {
			p := len(g.First)
			if i > 0 && compare(at[i-1], a) == 0 {
				p--
			}
			g.add(a, p)
		}
	}
	if !sorted {
		compare = cmp.Compare[int]
	}
	return g.by(compare)
}

// add puts row i into group p, which may be a new one.
func (g *Groups) add(i, p int) {
	if p == len(g.First) {
		g.First, g.Count = append(g.First, i), append(g.Count, 0)
	}
	g.Count[p]++
	g.Of[i] = p
}

// by renumbers the groups in the order of their first rows.
func (g *Groups) by(compare func(a, b int) int) Groups {
	old := make([]int, len(g.First))
	for i := range old {
		old[i] = i
	}
	slices.SortFunc(old, func(a, b int) int { return compare(g.First[a], g.First[b]) })
	n := Groups{First: make([]int, len(old)), Count: make([]int, len(old)), Of: make([]int, len(g.Of))}
	to := make([]int, len(old))
	for i, k := range old {
		to[k], n.First[i], n.Count[i] = i, g.First[k], g.Count[k]
	}
	for i, k := range g.Of {
		n.Of[i] = to[k]
	}
	return n
}
