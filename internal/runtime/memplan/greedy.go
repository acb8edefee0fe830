package memplan

import (
	"cmp"
	"slices"
)

// Buffer is a piece of memory that is needed from one step to another.
type Buffer struct {
	Bytes int
	// First and Last are the steps that write it first and use it last, both
	// inclusive. Steps may be any integers; small ranges plan faster.
	First, Last int
	// InPlace is one plus the index of a buffer whose memory this one may take
	// over, 0 for none. The hint is followed when the other buffer ends in the step
	// in which this one begins and is at least as large.
	InPlace int
}

// Greedy gives every buffer an offset that is a multiple of align (at least 1),
// such that buffers that live at the same step do not overlap, except where
// InPlace was followed or where a copy makes both hold the same bytes, and returns
// the size of the whole. Buffers of no bytes get offset 0. The result depends on
// the arguments only.
//
// Larger buffers are placed first, each in the smallest gap that takes it. That
// is within a few per cent of the lower bound (the largest sum of live bytes) on
// real models; no polynomial method is exact.
func Greedy(buffers []Buffer, align int, copies ...Copy) (offsets []int, total int) {
	align = max(align, 1)
	offsets = make([]int, len(buffers))
	groups, places := together(buffers, copies, align)
	order := make([]int, 0, len(groups))
	for i, g := range groups {
		if g.Bytes > 0 {
			order = append(order, i)
		}
	}
	// Among equals the longer-lived goes first: it is the harder one to place.
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
	if len(order) <= mostScanned {
		total = scanned(groups, order, at)
	} else {
		total = searched(groups, order, at, align)
	}
	for i := range buffers {
		if buffers[i].Bytes > 0 {
			offsets[i] = at[places[i].group] + places[i].at
		}
	}
	return offsets, total
}

// mostScanned is up to how many buffers all are looked at for each: that takes less time than to find those that live at the same time and to sort them.
const mostScanned = 2048

// scanned places buffers in their order and returns the size of the whole.
func scanned(groups []Buffer, order, at []int) (total int) {
	// Of the placed ones, in order of their places: when they live, and what they take.
	lives, takes := make([][2]int, 0, len(order)), make([][2]int, 0, len(order))
	for _, i := range order {
		b := &groups[i]
		first, last := b.First, max(b.First, b.Last)
		g := gap{size: b.Bytes, best: -1}
		for k, l := range lives {
			if l[0] <= last && first <= l[1] {
				g.behind(takes[k][0], takes[k][1])
			}
		}
		at[i] = g.start()
		total = max(total, at[i]+b.Bytes)
		k, _ := slices.BinarySearchFunc(takes, at[i], func(t [2]int, at int) int { return cmp.Compare(t[0], at) })
		lives, takes = slices.Insert(lives, k, [2]int{first, last}), slices.Insert(takes, k, [2]int{at[i], at[i] + b.Bytes})
	}
	return total
}

// searched is scanned for many buffers.
func searched(groups []Buffer, order, at []int, align int) (total int) {
	live := newLifetimes(groups, order)
	var near []int
	for _, i := range order {
		near = live.overlapping(near[:0], groups[i])
		// By place, then by number: as single numbers, which sort faster than what needs a comparison of two.
		for k, j := range near {
			near[k] = at[j]/align*len(groups) + j
		}
		slices.Sort(near)
		g := gap{size: groups[i].Bytes, best: -1}
		for _, v := range near {
			j := v % len(groups)
			g.behind(at[j], at[j]+groups[j].Bytes)
		}
		at[i] = g.start()
		total = max(total, at[i]+groups[i].Bytes)
		live.add(i, groups[i])
	}
	return total
}

// gap looks for the smallest gap of at least size bytes between buffers that come in order of their places.
type gap struct{ size, end, best, least int }

// behind looks at the gap before a buffer.
func (g *gap) behind(from, to int) {
	if n := from - g.end; n >= g.size && (g.best < 0 || n < g.least) {
		g.best, g.least = g.end, n
	}
	g.end = max(g.end, to)
}

// start is where the gap begins, or the end of the last buffer.
func (g *gap) start() int {
	if g.best >= 0 {
		return g.best
	}
	return g.end
}

// lifetimes finds the placed buffers that live at the same time as another: a
// segment tree over steps answers which live at a step, lists by first step the
// rest. Both together cost O(log n + found), where a scan would cost O(n).
type lifetimes struct {
	steps  []int // distinct first steps, ascending
	tree   lists // node k covers a range of steps; the buffers that fill it
	starts lists // by index in steps
}

// lists are many short lists of buffers. Each begins at an entry that heads names, and each entry names the next; 0 stands for none.
type lists struct {
	heads   []int32
	entries []entry
}

type entry struct{ buffer, next int32 }

func newLists(n, entries int) lists {
	return lists{make([]int32, n), make([]entry, 1, entries+1)}
}

func (l *lists) add(list, buffer int) {
	l.entries = append(l.entries, entry{int32(buffer), l.heads[list]})
	l.heads[list] = int32(len(l.entries) - 1)
}

func (l *lists) appendTo(dst []int, list int) []int {
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

// span is the half-open range of first steps at which b lives.
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

// LiveBytes is the largest sum of sizes, each rounded up to align, of buffers
// that live at one step: no plan without sharing in place is smaller.
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
