package move

import (
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// parallelBytes is the minimum number of contiguous bytes per work item: a thread copies about 13
// bytes per nanosecond.
const parallelBytes = 1 << 16

// parallelElements is parallelBytes in elements of a type.
func parallelElements[T any]() int {
	var v T
	return parallelBytes / int(max(1, unsafe.Sizeof(v)))
}

// linesOf returns the number of lines of n elements per work item: locating a line takes about 5
// ns, and a non-contiguous element one nanosecond.
func linesOf[T any](n int, apart bool) int {
	var v T
	bytes := n * int(max(1, unsafe.Sizeof(v)))
	if apart {
		return max(1, workers.Piece/(5+n))
	}
	return max(1, workers.Piece/(5+bytes*workers.Piece/parallelBytes))
}

// Plan is a copy between two strided views with the same dimensions. The zero value copies
// nothing. A Plan reuses its memory from one Set to the next.
type Plan struct {
	To, From       int // first element on either side; may be changed between runs
	dims, dst, src []int
	len            int
	together       bool // a single line on both sides
	kept           any  // a transposition or copying of the last element type
	wide           *wideElements
}

// wideElements is a plan that copies several elements as one wide element.
type wideElements struct {
	Plan
	width, of int // bytes of a wide element (0 for none) and of an original element
}

// wideLineMax is the line length in bytes up to which lines are copied as wide elements: longer
// ones are copied in a single call.
const wideLineMax = 64

// widened returns p with wider elements, for elements of w bytes in short lines; nil if they do
// not fit.
func (p *Plan) widened(w int) *Plan {
	if p.wide == nil {
		p.wide = new(wideElements)
	}
	if p.wide.of != w {
		p.wide.of, p.wide.width = w, 0
		p.wide.widen(p)
	}
	q := p.wide
	if q.width == 0 || p.To*w%q.width != 0 || p.From*w%q.width != 0 {
		return nil
	}
	q.To, q.From = p.To*w/q.width, p.From*w/q.width
	return &q.Plan
}

// widen finds the widest elements that divide all sizes and strides.
func (q *wideElements) widen(p *Plan) {
	last := len(p.dims) - 1
	if p.dst[last] != 1 || p.src[last] != 1 || p.dims[last]*q.of > wideLineMax || last == 0 {
		return
	}
	width := 16
	for _, n := range slices.Concat(p.dims[last:], p.dst[:last], p.src[:last]) {
		for n*q.of%width != 0 {
			width /= 2
		}
	}
	if width <= q.of {
		return
	}
	q.width = width
	each := width / q.of
	parts := func(v []int) []int {
		out := slices.Clone(v)
		for i := range out[:last] {
			out[i] /= each
		}
		return out
	}
	dims := slices.Clone(p.dims)
	dims[last] /= each
	q.Set(dims, parts(p.dst), parts(p.src), 0, 0)
}

// Set describes the copy: dims, the strides of both sides in elements (they may be zero on the
// source and negative on either), and the first element of both. Dimensions of one are dropped,
// and neighbours are merged if they are contiguous on both sides.
func (p *Plan) Set(dims, dst, src []int, to, from int) {
	p.dims, p.dst, p.src = p.dims[:0], p.dst[:0], p.src[:0]
	p.To, p.From, p.len = to, from, 1
	if p.wide != nil {
		p.wide.of = 0
	}
	for i, d := range dims {
		p.len *= d
		if d == 1 {
			continue
		}
		if k := len(p.dims) - 1; k >= 0 && p.dst[k] == dst[i]*d && p.src[k] == src[i]*d {
			p.dims[k] *= d
			p.dst[k], p.src[k] = dst[i], src[i]
			continue
		}
		p.dims = append(p.dims, d)
		p.dst = append(p.dst, dst[i])
		p.src = append(p.src, src[i])
	}
	if len(p.dims) == 0 {
		p.dims, p.dst, p.src = append(p.dims, 1), append(p.dst, 1), append(p.src, 1)
	}
	p.together = len(p.dims) == 1 && p.dst[0] == 1 && p.src[0] == 1
}

// New returns a Plan set by [Plan.Set].
func New(dims, dst, src []int, to, from int) *Plan {
	p := new(Plan)
	p.Set(dims, dst, src, to, from)
	return p
}

// View fills a dense destination of dims from a strided view of the source that begins at element
// from.
func View(dims, src []int, from int) *Plan {
	return New(dims, strides(dims), src, 0, from)
}

// strides returns the row-major strides of a shape.
func strides(shape []int) []int {
	s, n := make([]int, len(shape)), 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// Pieces describes consecutive parts along an axis of a whole; part i has size sizes[i] there.
// The plans copy parts to the whole if join is set, and the whole to parts otherwise.
func Pieces(whole []int, axis int, sizes []int, join bool) []Plan {
	outer, inner := 1, 1
	for i, d := range whole {
		if i < axis {
			outer *= d
		} else if i > axis {
			inner *= d
		}
	}
	plans := make([]Plan, len(sizes))
	at, row := 0, whole[axis]*inner
	for i, n := range sizes {
		n *= inner
		if join {
			plans[i].Set([]int{outer, n}, []int{row, 1}, []int{n, 1}, at, 0)
		} else {
			plans[i].Set([]int{outer, n}, []int{n, 1}, []int{row, 1}, 0, at)
		}
		at += n
	}
	return plans
}

// Len returns the number of elements that the plan copies.
func (p *Plan) Len() int { return p.len }

// Together returns the byte range that the plan copies if it is contiguous on both sides, for
// elements of width bytes: the first byte on either side and the length.
func (p *Plan) Together(width int) (to, from, n int, ok bool) {
	return p.To * width, p.From * width, p.len * width, p.together
}

// Run copies. The two views must not overlap, unless they are the same bytes in the same order,
// which are left unchanged.
func (p *Plan) Run(pool *workers.Pool, dst, src Slice) {
	switch w := dst.Width; {
	case p.len == 0:
	case p.together && w > 0 && &dst.Bytes[p.To*w] == &src.Bytes[p.From*w]:
	case p.together && w > 0 && p.len <= parallelBytes/w:
		copy(dst.Bytes[p.To*w:(p.To+p.len)*w], src.Bytes[p.From*w:(p.From+p.len)*w])
	default:
		if w > 0 && w < 16 {
			if q := p.widened(w); q != nil {
				p, dst.Width, src.Width = q, p.wide.width, p.wide.width
			}
		}
		dst.mover().plan(p, pool, dst, src)
	}
}

func run[T any](p *Plan, pool *workers.Pool, dst, src []T) {
	r := len(p.dims)
	last := r - 1
	ds, ss := p.dst[last], p.src[last]
	if ds == 1 && ss != 1 && ss != 0 {
		// A dimension in which the source is contiguous makes a transposition.
		for k := last - 1; k >= 0; k-- {
			if p.src[k] == 1 && p.dims[k] > 1 {
				transpose(p, pool, dst, src, k)
				return
			}
		}
	}
	if p.repeats() {
		r := copyOf(p, dst, src)
		pool.For(p.dims[0], max(1, parallelElements[T]()/p.dst[0]), r.repeated)
		return
	}
	n := p.dims[last]
	outer := 1
	for _, d := range p.dims[:last] {
		outer *= d
	}
	if outer == 1 {
		grain := parallelElements[T]()
		if ds != 1 || ss != 1 {
			grain = workers.Grain(1)
		}
		if n <= grain {
			line(dst, src, p.To, p.From, n, ds, ss)
			return
		}
		c := copyOf(p, dst, src)
		pool.For(n, grain, c.along)
		return
	}
	// Combine short lines with neighbouring ones.
	if beside, rows := rowDim[T](p); n <= shortLine && p.dims[last-1] >= n || usesRepeat[T](p) || rows {
		m, dm, sm := p.dims[beside], p.dst[beside], p.src[beside]
		grain := workers.Grain(1) / n // a line takes one nanosecond per element
		switch {
		case rows:
			grain = linesOf[T](n, false)
		case n > shortLine:
			grain = workers.Grain(2)
		}
		switch rest := outer / m; {
		case outer <= grain:
			p.lines(last, beside, 0, rest, func(do, so int) { shortLines(dst, src, do, so, m, dm, sm, n, ds, ss) })
		case rest >= 4*pool.Threads():
			c := copyOf(p, dst, src)
			pool.For(rest, max(1, grain/m), c.short)
		default:
			p.lines(last, beside, 0, rest, func(do, so int) {
				workers.Each(pool, m, grain, shortPiece[T]{dst, src, do, so, dm, sm, n, ds, ss})
			})
		}
		return
	}
	grain := linesOf[T](n, ds != 1 || ss != 1)
	if outer <= grain {
		if r == 2 {
			do, so := p.To, p.From
			for range outer {
				line(dst, src, do, so, n, ds, ss)
				do, so = do+p.dst[0], so+p.src[0]
			}
			return
		}
		p.lines(last, -1, 0, outer, func(do, so int) { line(dst, src, do, so, n, ds, ss) })
		return
	}
	c := copyOf(p, dst, src)
	pool.For(outer, grain, c.lines)
}

// repeats reports whether lines or larger parts are repeated consecutively in a dense
// destination.
func (p *Plan) repeats() bool {
	n, again, last := 1, false, len(p.dims)-1
	for i := last; i >= 0; i-- {
		if p.dst[i] != n {
			return false
		}
		again = again || i < last && p.src[i] == 0 && n > shortLine
		n *= p.dims[i]
	}
	return again
}

// repeat fills m parts of dimension level from offset do. Repeated parts are copied from the
// output.
func repeat[T any](p *Plan, dst, src []T, level, m, do, so int) {
	if level == len(p.dims)-1 {
		line(dst, src, do, so, m, 1, p.src[level])
		return
	}
	n, step := p.dst[level], p.src[level]
	if step == 0 {
		repeat(p, dst, src, level+1, p.dims[level+1], do, so)
		all := dst[do : do+m*n]
		for ; n < len(all); n *= 2 {
			copy(all[n:], all[:n])
		}
		return
	}
	if short := len(p.dims) - 2; level == short && p.dims[short+1] <= shortLine {
		shortLines(dst, src, do, so, m, n, step, p.dims[short+1], 1, p.src[short+1])
		return
	}
	for range m {
		repeat(p, dst, src, level+1, p.dims[level+1], do, so)
		do, so = do+n, so+step
	}
}

// copying holds the state of a run over lines. The plan keeps it: runs must not allocate.
type copying[T any] struct {
	dst, src []T
	// Work item functions for the single line, all lines, all rows of short lines, and repeated
	// parts.
	along, lines, short, repeated func(lo, hi int)
}

// copyOf returns the copying state of the plan.
func copyOf[T any](p *Plan, dst, src []T) *copying[T] {
	c, ok := p.kept.(*copying[T])
	if !ok {
		c = new(copying[T])
		last := len(p.dims) - 1
		n, ds, ss := p.dims[last], p.dst[last], p.src[last]
		c.along = func(lo, hi int) { line(c.dst, c.src, p.To+lo*ds, p.From+lo*ss, hi-lo, ds, ss) }
		c.lines = func(lo, hi int) {
			p.lines(last, -1, lo, hi, func(do, so int) { line(c.dst, c.src, do, so, n, ds, ss) })
		}
		c.repeated = func(lo, hi int) {
			repeat(p, c.dst, c.src, 0, hi-lo, p.To+lo*p.dst[0], p.From+lo*p.src[0])
		}
		if last > 0 {
			beside, _ := rowDim[T](p)
			m, dm, sm := p.dims[beside], p.dst[beside], p.src[beside]
			c.short = func(lo, hi int) {
				p.lines(last, beside, lo, hi, func(do, so int) { shortLines(c.dst, c.src, do, so, m, dm, sm, n, ds, ss) })
			}
		}
		p.kept = c
	}
	c.dst, c.src = dst, src
	return c
}

// lines iterates over positions lo to hi of the dimensions other than skip1 and skip2 in
// row-major order and passes the offset of each on both sides.
func (p *Plan) lines(skip1, skip2, lo, hi int, f func(dstOff, srcOff int)) {
	var buf [16]int
	at := buf[:0]
	do, so := p.To, p.From
	at = append(at, p.dims...)
	rest := lo
	for i := len(p.dims) - 1; i >= 0; i-- {
		at[i] = 0
		if i == skip1 || i == skip2 {
			continue
		}
		at[i] = rest % p.dims[i]
		rest /= p.dims[i]
		do += at[i] * p.dst[i]
		so += at[i] * p.src[i]
	}
	for n := lo; n < hi; n++ {
		f(do, so)
		for i := len(p.dims) - 1; i >= 0; i-- {
			if i == skip1 || i == skip2 {
				continue
			}
			at[i]++
			do += p.dst[i]
			so += p.src[i]
			if at[i] < p.dims[i] {
				break
			}
			do -= at[i] * p.dst[i]
			so -= at[i] * p.src[i]
			at[i] = 0
		}
	}
}

// shortLine is the length up to which a line costs less than locating it.
const shortLine = 4

// shortPiece holds the arguments of a work item of shortLines.
type shortPiece[T any] struct {
	dst, src                  []T
	do, so, dm, sm, n, ds, ss int
}

// Piece copies lines lo to hi.
func (p shortPiece[T]) Piece(lo, hi int) {
	shortLines(p.dst, p.src, p.do+lo*p.dm, p.so+lo*p.sm, hi-lo, p.dm, p.sm, p.n, p.ds, p.ss)
}

// shortLines copies m lines of n elements, dm and sm apart.
func shortLines[T any](dst, src []T, do, so, m, dm, sm, n, ds, ss int) {
	if words := n * wordsOf[T](); words >= rowMinWords && ds == 1 && ss == 1 && (n <= shortLine || dm != n || words > simd.MaxShortRow) && copyRows(dst, src, do, so, m, dm, sm, n) {
		return
	}
	if n > shortLine {
		k := 0
		if dm == n {
			k = repeatLines(dst, src, do, so, m, sm, n, ss)
		}
		for ; k < m; k++ {
			line(dst, src, do+k*dm, so+k*sm, n, ds, ss)
		}
		return
	}
	if ds == 1 && ss == 0 && n <= shortLine {
		for range m {
			v := src[so]
			for i := range dst[do : do+n] {
				dst[do+i] = v
			}
			do, so = do+dm, so+sm
		}
		return
	}
	if ds != 1 || ss != 1 {
		for range m {
			line(dst, src, do, so, n, ds, ss)
			do, so = do+dm, so+sm
		}
		return
	}
	switch n {
	case 1:
		for range m {
			dst[do] = src[so]
			do, so = do+dm, so+sm
		}
	case 2:
		for range m {
			*(*[2]T)(dst[do:]) = *(*[2]T)(src[so:])
			do, so = do+dm, so+sm
		}
	case 3:
		for range m {
			*(*[3]T)(dst[do:]) = *(*[3]T)(src[so:])
			do, so = do+dm, so+sm
		}
	case 4:
		for range m {
			*(*[4]T)(dst[do:]) = *(*[4]T)(src[so:])
			do, so = do+dm, so+sm
		}
	}
}

// line copies n elements along one dimension.
func line[T any](dst, src []T, do, so, n, ds, ss int) {
	switch {
	case ds == 1 && ss == 1 && n <= 4:
		// Pixels with a few channels: a copy call costs more than they do.
		d, s := dst[do:do+n], src[so:so+n]
		for i := range d {
			d[i] = s[i]
		}
	case ds == 1 && ss == 1:
		copy(dst[do:do+n], src[so:so+n])
	case ds == 1 && ss == 0:
		set(dst[do:do+n], src[so])
	case ds == 1:
		d := dst[do : do+n]
		for i := range d {
			d[i] = src[so]
			so += ss
		}
	case ss == 1:
		for _, v := range src[so : so+n] {
			dst[do] = v
			do += ds
		}
	default:
		for range n {
			dst[do] = src[so]
			do += ds
			so += ss
		}
	}
}
