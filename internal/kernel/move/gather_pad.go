package move

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Blocks selects blocks of Len elements: for each of Rows rows the output is the blocks with the
// indices At of that source row.
type Blocks struct {
	Rows   int
	SrcRow int   // elements between rows of the source
	At     []int // block indices within a row, all in range
	Len    int
	Unit   int // elements between consecutive indices; 0 for Len
}

// Join merges blocks that are adjacent in source and output, if all blocks can be merged equally.
func (b *Blocks) Join() {
	n := len(b.At)
	for i := 1; i < len(b.At) && n > 1; i++ {
		if b.At[i] != b.At[i-1]+1 {
			n = gcd(n, i)
		}
	}
	if n < 2 || b.Unit != 0 {
		return
	}
	var at []int
	for i := 0; i < len(b.At); i += n {
		at = append(at, b.At[i])
	}
	b.At, b.Len, b.Unit = at, b.Len*n, b.Len
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Gather copies the blocks from src to dst, which must not overlap.
func (b *Blocks) Gather(pool *workers.Pool, dst, src Slice) {
	if b.Rows*len(b.At)*b.Len > 0 {
		dst.mover().blocks(b, pool, dst, src)
	}
}

func gather[T any](b *Blocks, pool *workers.Pool, dst, src []T) {
	total := b.Rows * len(b.At)
	grain := linesOf[T](b.Len, false)
	if b.Len == 1 {
		grain = workers.Grain(1)
	}
	workers.Each(pool, total, grain, gathered[T]{b, dst, src})
}

// gathered holds the arguments of a work item of Gather.
type gathered[T any] struct {
	b        *Blocks
	dst, src []T
}

// Piece copies blocks lo to hi of the output.
func (g gathered[T]) Piece(lo, hi int) { gatherSpan(g.b, g.dst, g.src, lo, hi) }

// gatherSpan copies blocks lo to hi of the output.
func gatherSpan[T any](b *Blocks, dst, src []T, lo, hi int) {
	unit := b.Unit
	if unit == 0 {
		unit = b.Len
	}
	if len(b.At) == 1 && b.Len == 1 {
		for at := lo*b.SrcRow + b.At[0]*unit; lo < hi; lo++ {
			dst[lo] = src[at]
			at += b.SrcRow
		}
		return
	}
	for row, first := lo/len(b.At), lo%len(b.At); lo < hi; row, first = row+1, 0 {
		n := min(hi-lo, len(b.At)-first)
		at, s := b.At[first:first+n], src[row*b.SrcRow:]
		if b.Len == 1 {
			d := dst[lo : lo+n]
			for i, a := range at {
				d[i] = s[a]
			}
		} else if !simd.CopyBlocks(dst[lo*b.Len:], s, at, b.Len, unit) {
			for i, a := range at {
				copy(dst[(lo+i)*b.Len:(lo+i+1)*b.Len], s[a*unit:])
			}
		}
		lo += n
	}
}

// Maps fills a dense output from a dense source, axis by axis: element (i, j, …) of the output is
// element (Axes[0][i], Axes[1][j], …) of the source, or a constant if one of these is negative.
// This covers all padding modes, dilation and cropping.
type Maps struct {
	Axes  [][]int // source index of each element, for each axis of the output
	Shape []int   // of the source, with as many axes
	inner int     // elements of trailing axes that are copied unchanged
	last  int     // the axis before those
	runs  []span  // of that axis
	kept  any     // a mapping of the last element type: runs must not allocate
}

// mapping holds the arguments of a work item of a run.
type mapping[T any] struct {
	m        *Maps
	dst, src []T
	value    T
	work     func(lo, hi int)
}

// span is a part of a row: n elements from a source offset, which is negative for the constant.
type span struct{ from, n int }

// NewMaps finds the unchanged trailing axes and keeps the slices.
func NewMaps(shape []int, axes [][]int) *Maps {
	m := &Maps{Axes: axes, Shape: shape, inner: 1, last: len(shape) - 1}
	for m.last > 0 && whole(axes[m.last], shape[m.last]) {
		m.inner *= shape[m.last]
		m.last--
	}
	if m.last < 0 {
		return m
	}
	row := axes[m.last]
	for o := 0; o < len(row); {
		r := span{-1, 1}
		if row[o] >= 0 {
			r.from = row[o]
		}
		for o+r.n < len(row) && (r.from < 0 && row[o+r.n] < 0 || r.from >= 0 && row[o+r.n] == r.from+r.n) {
			r.n++
		}
		m.runs = append(m.runs, span{r.from * m.inner, r.n * m.inner})
		o += r.n
	}
	return m
}

func whole(axis []int, n int) bool {
	for i, a := range axis {
		if i != a {
			return false
		}
	}
	return len(axis) == n
}

// Run fills dst from src and the first element of value.
func (m *Maps) Run(pool *workers.Pool, dst, src, value Slice) {
	switch {
	case dst.Len() == 0:
	case len(m.Axes) == 0:
		Fill(pool, dst, src)
	default:
		dst.mover().maps(m, pool, dst, src, value)
	}
}

// mapped fills the output row by row along the last axis that changes.
func mapped[T any](m *Maps, pool *workers.Pool, dst, src []T, value T) {
	rows, width := 1, len(m.Axes[m.last])*m.inner
	for _, a := range m.Axes[:m.last] {
		rows *= len(a)
	}
	p, ok := m.kept.(*mapping[T])
	if !ok {
		p = &mapping[T]{m: m}
		p.work = p.rows
		m.kept = p
	}
	p.dst, p.src, p.value = dst, src, value
	// A row takes one nanosecond per 32 bytes plus 4 ns per span.
	if each := width*int(unsafe.Sizeof(value))/32 + 4*len(m.runs) + 1; rows <= workers.Piece/each {
		p.work(0, rows)
	} else {
		pool.For(rows, max(1, workers.Piece/each), p.work)
	}
}

// rows fills rows lo to hi, all of the axis before the last one together.
func (p *mapping[T]) rows(lo, hi int) {
	m := p.m
	n, width := m.Shape[m.last], len(m.Axes[m.last])*m.inner
	near, size := only, 1
	if m.last > 0 {
		near, size = m.Axes[m.last-1], m.Shape[m.last-1]
	}
	for r := lo; r < hi; {
		first := r % len(near)
		base, rest, stride := 0, r/len(near), n*size
		for i := m.last - 2; i >= 0 && base >= 0; i-- {
			a := m.Axes[i]
			if s := a[rest%len(a)]; s < 0 {
				base = -1
			} else {
				base += s * stride
			}
			rest /= len(a)
			stride *= m.Shape[i]
		}
		for at := near[first:min(len(near), first+hi-r)]; len(at) > 0; {
			if base < 0 || at[0] < 0 {
				set(p.dst[r*width:(r+1)*width], p.value)
				r, at = r+1, at[1:]
				continue
			}
			// Rows that are consecutive on both sides are combined, and copied at once if they
			// are whole.
			k := 1
			for k < len(at) && at[k] == at[0]+k {
				k++
			}
			if do, so := r*width, (base+at[0]*n)*m.inner; len(m.runs) == 1 && m.runs[0].from == 0 && width == n*m.inner {
				copy(p.dst[do:do+k*width], p.src[so:])
			} else {
				p.together(do, so, k, width, n*m.inner)
			}
			r, at = r+k, at[k:]
		}
	}
}

// together fills k rows of width elements from offset do, from rows of n elements from offset so.
func (p *mapping[T]) together(do, so, k, width, n int) {
	for _, s := range p.m.runs {
		switch {
		case s.from < 0:
			setRows(p.dst[do:], k, width, s.n, p.value)
		case s.n <= shortLine || s.n*wordsOf[T]() <= rowMaxWords && wordsOf[T]() > 0:
			shortLines(p.dst, p.src, do, so+s.from, k, width, n, s.n, 1, 1)
		default:
			for i := range k {
				copy(p.dst[do+i*width:][:s.n], p.src[so+s.from+i*n:])
			}
		}
		do += s.n
	}
}

// only is an axis of one element.
var only = []int{0}
