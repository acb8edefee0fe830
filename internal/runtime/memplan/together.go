package memplan

import (
	"cmp"
	"slices"
)

// Copy says that bytes of a buffer, in the step in which it begins, become those
// of another one, as parts that are joined or cut off do. Where both can lie so
// that they are the same bytes of memory, they do, and nobody has to copy them.
type Copy struct {
	To, At     int // the buffer that is written, and its first byte
	From, Read int // the buffer that is read in that step, and its first byte
	Bytes      int
}

// mostTogether bounds the buffers that lie together: each is compared with those that join it.
const mostTogether = 256

// mostTries bounds how often what is joined is laid out anew because one part does not fit.
const mostTries = 16

// place is where a buffer lies in its group, in bytes.
type place struct{ group, at int }

// span says who has written the bytes of a buffer up to an end: the buffer itself, or another one that lies there too.
type span struct{ end, by int }

// gathering finds the buffers that can lie together.
type gathering struct {
	buffers []Buffer
	align   int
	groups  [][]int // members
	places  []place
	spans   [][]span // by buffer, once it has its place
}

// together joins buffers that share memory into groups, each with the lifetime of
// all and the size that they take together, rounded up to the alignment.
func together(buffers []Buffer, copies []Copy, align int) (groups []Buffer, places []place) {
	g := gathering{
		buffers: buffers, align: align,
		groups: make([][]int, len(buffers)), places: make([]place, len(buffers)), spans: make([][]span, len(buffers)),
	}
	// Those that are read have their places when those that are written get theirs.
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
			g.copied(i, sorted[lo:hi])
		}
		g.inPlace(i)
	}
	return g.finish()
}

// finish makes one buffer of each group, in the order of the first of their members. Places are counted from its begin.
func (g *gathering) finish() (groups []Buffer, places []place) {
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

// holds are the spans of a buffer that lies with others; one that has written all of its bytes needs none.
func (g *gathering) holds(i int) []span {
	if g.spans[i] == nil {
		g.spans[i] = []span{{g.buffers[i].Bytes, i}}
	}
	return g.spans[i]
}

// copied lays buffer i where those lie that are copied to it, as many of them as can be.
func (g *gathering) copied(i int, copies []Copy) {
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
	parts = parts[:min(len(parts), mostTogether)]
	for range mostTries {
		bad := g.tryParts(i, parts)
		if bad < 0 {
			return
		}
		// What was to lie there is written anew, so that others may not fit any more.
		parts = slices.Delete(parts, bad, bad+1)
	}
	g.spans[i] = nil
}

// tryParts lays buffer i together with all parts, or returns one that does not fit.
func (g *gathering) tryParts(i int, parts []Copy) (bad int) {
	g.spans[i] = g.fill(i, parts)
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
		if size += len(g.groups[j.group]); size > mostTogether {
			return k
		}
		for _, m := range g.groups[j.group] {
			if g.differ(i, 0, m, g.places[m].at+j.shift) {
				return k
			}
			for _, o := range with {
				for _, q := range g.groups[o.group] {
					if g.differ(q, g.places[q].at+o.shift, m, g.places[m].at+j.shift) {
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

// fill is who writes the bytes of buffer i when the parts, in their order, lie in it.
func (g *gathering) fill(i int, parts []Copy) []span {
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
		for _, p := range g.holds(c.From) {
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

// inPlace lays buffer i over the one whose memory it may take.
func (g *gathering) inPlace(i int) {
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
	if len(g.groups[mine])+len(g.groups[theirs]) > mostTogether {
		return
	}
	for _, m := range g.groups[mine] {
		for _, q := range g.groups[theirs] {
			// In the step of both, the one becomes the other.
			if (m != i || q != j) && g.differ(m, g.places[m].at, q, g.places[q].at+shift) {
				return
			}
		}
	}
	g.join(i, theirs, shift)
}

// join lays the members of a group, moved by shift, beside those of the group of buffer i.
func (g *gathering) join(i, group, shift int) {
	to := g.places[i].group
	for _, m := range g.groups[group] {
		g.places[m] = place{to, g.places[m].at + shift}
	}
	g.groups[to] = append(g.groups[to], g.groups[group]...)
	g.groups[group] = nil
}

// differ tells whether two buffers at these places, which live at one step, have bytes there that are not the same.
func (g *gathering) differ(a, atA, b, atB int) bool {
	x, y := &g.buffers[a], &g.buffers[b]
	lo, hi := max(atA, atB), min(atA+x.Bytes, atB+y.Bytes)
	if lo >= hi || x.First > y.Last || y.First > x.Last {
		return false
	}
	s, t := g.holds(a), g.holds(b)
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
