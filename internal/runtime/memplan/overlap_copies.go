package memplan

import (
	"cmp"
	"slices"
)

// Copy says that bytes of one buffer are copied to another in the step in which that one begins,
// as for concatenation and slicing. Where both can share the same memory, they do, and no copy is
// needed.
type Copy struct {
	To, At     int // destination buffer and offset
	From, Read int // source buffer and offset
	Bytes      int
}

// maxGroup bounds the buffers that share memory: each is compared with those that join its group.
const maxGroup = 256

// maxRetries bounds how often the parts of a buffer are laid out again because one of them does
// not fit.
const maxRetries = 16

// place is the offset of a buffer in its group, in bytes.
type place struct{ group, at int }

// span says which buffer has written the bytes up to an end: the buffer itself, or another one
// that overlaps it.
type span struct{ end, by int }

// grouping finds the buffers that can share memory.
type grouping struct {
	buffers []Buffer
	align   int
	groups  [][]int // members
	places  []place
	spans   [][]span // by buffer, once it has an offset
}

// group joins buffers that share memory into groups. Each group has the union of the lifetimes
// and the total size, rounded up to the alignment.
func group(buffers []Buffer, copies []Copy, align int) (groups []Buffer, places []place) {
	g := grouping{
		buffers: buffers, align: align,
		groups: make([][]int, len(buffers)), places: make([]place, len(buffers)), spans: make([][]span, len(buffers)),
	}
	// Sources of copies get their offsets before their destinations.
	order, own := make([]int, len(buffers)), make([]int, len(buffers))
	for i := range order {
		order[i], own[i] = i, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(buffers[a].First, buffers[b].First) })
	sorted := slices.Clone(copies)
	slices.SortStableFunc(sorted, func(a, b Copy) int { return cmp.Compare(a.To, b.To) })
	for _, i := range order {
		g.groups[i], g.places[i] = own[i:i+1:i+1], place{group: i}
		if buffers[i].Bytes <= 0 {
			continue
		}
		lo, _ := slices.BinarySearchFunc(sorted, i, func(c Copy, i int) int { return cmp.Compare(c.To, i) })
		hi := lo
		for hi < len(sorted) && sorted[hi].To == i {
			hi++
		}
		if lo < hi {
			g.overlapCopies(i, sorted[lo:hi])
		}
		g.overlapInPlace(i)
	}
	return g.finish()
}

// finish makes one buffer of each group, in the order of the first of their members. Offsets are
// relative to the start of the group.
func (g *grouping) finish() (groups []Buffer, places []place) {
	groups, places = make([]Buffer, 0, len(g.buffers)), make([]place, len(g.buffers))
	done := make([]bool, len(g.buffers))
	for i := range g.buffers {
		members := g.groups[g.places[i].group]
		if done[i] {
			continue
		}
		all := g.buffers[i]
		begin, end := 0, 0
		for k, m := range members {
			b, at := g.buffers[m], g.places[m].at
			if k == 0 {
				begin, end = at, at+b.Bytes
			}
			begin, end = min(begin, at), max(end, at+b.Bytes)
			all.First, all.Last = min(all.First, b.First), max(all.Last, b.Last)
		}
		for _, m := range members {
			done[m], places[m] = true, place{len(groups), g.places[m].at - begin}
		}
		all.Bytes = (end - begin + g.align - 1) / g.align * g.align
		groups = append(groups, all)
	}
	return groups, places
}

// spansOf returns the spans of a buffer in a group. A buffer that has written all of its bytes
// has one span.
func (g *grouping) spansOf(i int) []span {
	if g.spans[i] == nil {
		g.spans[i] = []span{{g.buffers[i].Bytes, i}}
	}
	return g.spans[i]
}

// overlapCopies places buffer i over the sources of its copies, as many of them as possible.
func (g *grouping) overlapCopies(i int, copies []Copy) {
	b := &g.buffers[i]
	var parts []Copy
	for _, c := range copies {
		if c.From < 0 || c.From >= len(g.buffers) || c.From == i || c.Bytes <= 0 || c.At < 0 || c.Read < 0 || c.At+c.Bytes > b.Bytes || (c.At-c.Read)%g.align != 0 {
			continue
		}
		if p := &g.buffers[c.From]; c.Read+c.Bytes > p.Bytes || p.First >= b.First || p.Last < b.First {
			continue
		}
		parts = append(parts, c)
	}
	slices.SortStableFunc(parts, func(a, b Copy) int { return cmp.Compare(a.At, b.At) })
	parts = slices.CompactFunc(parts, func(a, b Copy) bool { return a.At < b.At+b.Bytes && b.At < a.At+a.Bytes })
	parts = parts[:min(len(parts), maxGroup)]
	for range maxRetries {
		bad := g.tryParts(i, parts)
		if bad < 0 {
			return
		}
		// The bytes of this part are written by the buffer itself now, so that other parts may
		// not fit any more.
		parts = slices.Delete(parts, bad, bad+1)
	}
	g.spans[i] = nil
}

// tryParts places buffer i together with all parts, or returns one that does not fit.
func (g *grouping) tryParts(i int, parts []Copy) (bad int) {
	g.spans[i] = g.writers(i, parts)
	type joining struct{ group, shift int }
	var with []joining
	size := 1
	for k, c := range parts {
		from := g.places[c.From]
		j := joining{from.group, c.At - c.Read - from.at}
		if at := slices.IndexFunc(with, func(o joining) bool { return o.group == j.group }); at >= 0 {
			if with[at].shift != j.shift {
				return k
			}
			continue
		}
		if size += len(g.groups[j.group]); size > maxGroup {
			return k
		}
		for _, m := range g.groups[j.group] {
			if g.conflict(i, 0, m, g.places[m].at+j.shift) {
				return k
			}
			for _, o := range with {
				for _, q := range g.groups[o.group] {
					if g.conflict(q, g.places[q].at+o.shift, m, g.places[m].at+j.shift) {
						return k
					}
				}
			}
		}
		with = append(with, j)
	}
	for _, j := range with {
		g.join(i, j.group, j.shift)
	}
	return -1
}

// writers returns which buffers write the bytes of buffer i when the parts, in their order,
// overlap it.
func (g *grouping) writers(i int, parts []Copy) []span {
	var s []span
	put := func(end, by int) {
		if n := len(s); n > 0 && s[n-1].by == by {
			s[n-1].end = end
			return
		}
		s = append(s, span{end, by})
	}
	at := 0
	for _, c := range parts {
		if c.At > at {
			put(c.At, i)
		}
		lo := c.Read
		for _, p := range g.spansOf(c.From) {
			if p.end <= lo {
				continue
			}
			lo = min(p.end, c.Read+c.Bytes)
			put(c.At+lo-c.Read, p.by)
			if lo == c.Read+c.Bytes {
				break
			}
		}
		at = c.At + c.Bytes
	}
	if at < g.buffers[i].Bytes {
		put(g.buffers[i].Bytes, i)
	}
	return s
}

// overlapInPlace places buffer i over the one whose memory it may reuse.
func (g *grouping) overlapInPlace(i int) {
	b := &g.buffers[i]
	j := b.InPlace - 1
	if j < 0 || j >= len(g.buffers) || j == i {
		return
	}
	p := &g.buffers[j]
	if p.Last != b.First || p.First >= b.First || b.Bytes > p.Bytes || g.places[j].group == g.places[i].group {
		return
	}
	mine, theirs := g.places[i].group, g.places[j].group
	shift := g.places[i].at - g.places[j].at
	if len(g.groups[mine])+len(g.groups[theirs]) > maxGroup {
		return
	}
	for _, m := range g.groups[mine] {
		for _, q := range g.groups[theirs] {
			// In the step that both share, one becomes the other.
			if (m != i || q != j) && g.conflict(m, g.places[m].at, q, g.places[q].at+shift) {
				return
			}
		}
	}
	g.join(i, theirs, shift)
}

// join adds the members of a group, shifted by shift bytes, to the group of buffer i.
func (g *grouping) join(i, group, shift int) {
	to := g.places[i].group
	for _, m := range g.groups[group] {
		g.places[m] = place{to, g.places[m].at + shift}
	}
	g.groups[to] = append(g.groups[to], g.groups[group]...)
	g.groups[group] = nil
}

// conflict reports whether two buffers at these offsets are live at the same step and overlap in
// bytes that differ.
func (g *grouping) conflict(a, atA, b, atB int) bool {
	x, y := &g.buffers[a], &g.buffers[b]
	lo, hi := max(atA, atB), min(atA+x.Bytes, atB+y.Bytes)
	if lo >= hi || x.First > y.Last || y.First > x.Last {
		return false
	}
	s, t := g.spansOf(a), g.spansOf(b)
	for len(s) > 0 && len(t) > 0 && lo < hi {
		switch {
		case atA+s[0].end <= lo:
			s = s[1:]
		case atB+t[0].end <= lo:
			t = t[1:]
		case s[0].by != t[0].by:
			return true
		default:
			lo = min(atA+s[0].end, atB+t[0].end)
		}
	}
	return false
}
