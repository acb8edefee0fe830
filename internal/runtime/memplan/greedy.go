package memplan

import (
	"cmp"
	"slices"
)

// Buffer is a block of memory that is needed from one step to another.
type Buffer struct {
	Bytes int
	// First and Last are the first step that writes it and the last that uses it, both inclusive.
	// Steps may be any integers; small ranges plan faster.
	First, Last int
	// InPlace is one plus the index of a buffer whose memory this one may reuse, 0 for none. The
	// hint is followed when the other buffer ends in the step in which this one begins and is at
	// least as large.
	InPlace int
}

// Greedy gives every buffer an offset that is a multiple of align (at least 1) and returns the
// total size. Buffers that are live at the same step do not overlap, except where InPlace was
// followed or where a copy makes both hold the same bytes. Buffers of zero bytes get offset 0.
// The result depends on the arguments only.
//
// Larger buffers are placed first, each in the smallest gap that fits. On real models the result
// is within a few per cent of the lower bound (the largest sum of live bytes); no exact
// polynomial method is known.
func Greedy(buffers []Buffer, align int, copies ...Copy) (offsets []int, total int) {
	align = max(align, 1)
	offsets = make([]int, len(buffers))
	groups, places := group(buffers, copies, align)
	order := make([]int, 0, len(groups))
	for i, g := range groups {
		if g.Bytes > 0 {
			order = append(order, i)
		}
	}
	// Among equals the longer-lived goes first, because it is harder to place.
	slices.SortFunc(order, func(a, b int) int {
		x, y := &groups[a], &groups[b]
		if x.Bytes != y.Bytes {
			return cmp.Compare(y.Bytes, x.Bytes)
		}
		if p, q := x.Last-x.First, y.Last-y.First; p != q {
			return cmp.Compare(q, p)
		}
		return cmp.Compare(a, b)
	})
	at := make([]int, len(groups))
	if len(order) <= maxScanned {
		total = placeByScan(groups, order, at)
	} else {
		total = placeBySearch(groups, order, at, align)
	}
	for i := range buffers {
		if buffers[i].Bytes > 0 {
			offsets[i] = at[places[i].group] + places[i].at
		}
	}
	return offsets, total
}

// maxScanned is the number of buffers up to which all placed ones are scanned for each: that is
// faster than finding those with overlapping lifetimes and sorting them.
const maxScanned = 2048

// placeByScan places buffers in the given order and returns the total size.
func placeByScan(groups []Buffer, order, at []int) (total int) {
	// Lifetimes and address ranges of the placed buffers, sorted by offset.
	lives, takes := make([][2]int, 0, len(order)), make([][2]int, 0, len(order))
	for _, i := range order {
		b := &groups[i]
		first, last := b.First, max(b.First, b.Last)
		g := gap{size: b.Bytes, best: -1}
		for k, l := range lives {
			if l[0] <= last && first <= l[1] {
				g.consider(takes[k][0], takes[k][1])
			}
		}
		at[i] = g.start()
		total = max(total, at[i]+b.Bytes)
		k, _ := slices.BinarySearchFunc(takes, at[i], func(t [2]int, at int) int { return cmp.Compare(t[0], at) })
		lives, takes = slices.Insert(lives, k, [2]int{first, last}), slices.Insert(takes, k, [2]int{at[i], at[i] + b.Bytes})
	}
	return total
}

// placeBySearch is placeByScan for many buffers.
func placeBySearch(groups []Buffer, order, at []int, align int) (total int) {
	live := newLifetimes(groups, order)
	var near []int
	for _, i := range order {
		near = live.overlapping(near[:0], groups[i])
		// Sort by offset, then by number, encoded as single integers, which sort faster than with
		// a comparison function.
		for k, j := range near {
			near[k] = at[j]/align*len(groups) + j
		}
		slices.Sort(near)
		g := gap{size: groups[i].Bytes, best: -1}
		for _, v := range near {
			j := v % len(groups)
			g.consider(at[j], at[j]+groups[j].Bytes)
		}
		at[i] = g.start()
		total = max(total, at[i]+groups[i].Bytes)
		live.add(i, groups[i])
	}
	return total
}

// gap finds the smallest gap of at least size bytes between buffers that are visited by ascending
// offset.
type gap struct{ size, end, best, least int }

// consider visits a buffer and evaluates the gap before it.
func (g *gap) consider(from, to int) {
	if n := from - g.end; n >= g.size && (g.best < 0 || n < g.least) {
		g.best, g.least = g.end, n
	}
	g.end = max(g.end, to)
}

// start returns the start of the best gap, or the end of the last buffer.
func (g *gap) start() int {
	if g.best >= 0 {
		return g.best
	}
	return g.end
}

// lifetimes finds the placed buffers whose lifetime overlaps that of another. A segment tree over
// steps finds those that are live at a step, lists by first step find the rest. Both together
// cost O(log n + found), where a scan would cost O(n).
type lifetimes struct {
	steps  []int       // distinct first steps, ascending
	tree   bucketLists // buffers that cover the whole range of steps of node k
	starts bucketLists // by index in steps
}

// bucketLists is a set of many short linked lists of buffers. heads holds the first entry of each
// list, and each entry holds the next; 0 ends a list.
type bucketLists struct {
	heads   []int32
	entries []entry
}

type entry struct{ buffer, next int32 }

func newLists(n, entries int) bucketLists {
	return bucketLists{make([]int32, n), make([]entry, 1, entries+1)}
}

func (l *bucketLists) add(list, buffer int) {
	l.entries = append(l.entries, entry{int32(buffer), l.heads[list]})
	l.heads[list] = int32(len(l.entries) - 1)
}

func (l *bucketLists) appendTo(dst []int, list int) []int {
	for e := l.heads[list]; e != 0; e = l.entries[e].next {
		dst = append(dst, int(l.entries[e].buffer))
	}
	return dst
}

func newLifetimes(groups []Buffer, order []int) *lifetimes {
	l := &lifetimes{steps: make([]int, 0, len(order))}
	for _, i := range order {
		l.steps = append(l.steps, groups[i].First)
	}
	slices.Sort(l.steps)
	l.steps = slices.Compact(l.steps)
	l.starts = newLists(len(l.steps), len(order))
	l.tree = newLists(2*len(l.steps), 2*len(order))
	return l
}

// span returns the half-open range of first steps at which b is live.
func (l *lifetimes) span(b Buffer) (lo, hi int) {
	lo, _ = slices.BinarySearch(l.steps, b.First)
	hi, found := slices.BinarySearch(l.steps, b.Last)
	if found {
		hi++
	}
	return lo, max(hi, lo+1)
}

func (l *lifetimes) add(i int, b Buffer) {
	lo, hi := l.span(b)
	l.starts.add(lo, i)
	n := len(l.steps)
	for lo, hi = lo+n, hi+n; lo < hi; lo, hi = lo/2, hi/2 {
		if lo%2 == 1 {
			l.tree.add(lo, i)
			lo++
		}
		if hi%2 == 1 {
			hi--
			l.tree.add(hi, i)
		}
	}
}

func (l *lifetimes) overlapping(dst []int, b Buffer) []int {
	lo, hi := l.span(b)
	for k := lo + len(l.steps); k >= 1; k /= 2 {
		dst = l.tree.appendTo(dst, k)
	}
	for s := lo + 1; s < hi; s++ {
		dst = l.starts.appendTo(dst, s)
	}
	return dst
}

// LiveBytes returns the largest sum of sizes, each rounded up to align, of buffers that are live
// at one step. No plan without in-place sharing is smaller.
func LiveBytes(buffers []Buffer, align int) int {
	align = max(align, 1)
	type event struct{ step, bytes int }
	events := make([]event, 0, 2*len(buffers))
	for _, b := range buffers {
		n := (b.Bytes + align - 1) / align * align
		events = append(events, event{b.First, n}, event{b.Last + 1, -n})
	}
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.bytes, b.bytes))
	})
	sum, peak := 0, 0
	for _, e := range events {
		sum += e.bytes
		peak = max(peak, sum)
	}
	return peak
}
