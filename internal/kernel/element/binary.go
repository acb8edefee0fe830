package element

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Loops holds the kernels of an operation on two operands. All slices of a call have the same
// length; dst may be an operand.
type Loops[T, R any] struct {
	Vec          func(dst []R, a, b []T)
	VectorScalar func(dst []R, a []T, b T) // may be nil
	ScalarVector func(dst []R, a T, b []T) // may be nil
	// Rows computes rows of n elements with contiguous results. The rows of the operands are
	// stepA and stepB elements apart. The operand named by single (1 for a, 2 for b, 0 for
	// neither) has one element per row. May be nil.
	Rows func(dst []R, a, b []T, n, stepA, stepB, single int)
}

// Block is the number of elements per step of kernels with intermediate buffers.
const Block = 256

// blockWorkspace is a block plus the overrun of rows of [simd.ShortRows]: the rest of a row and
// of a register.
const blockWorkspace = Block + 2*simd.MaxShortRow

// Grain is the minimum number of elements per thread.
const Grain = 8 << 10

// Binary runs kernels over broadcast operands. It is not safe for concurrent use.
type Binary[T, R any] struct {
	Loops[T, R]
	walk *broadcast.Walk
	span *broadcast.Spans // for short runs
	rows *broadcast.Walk  // for runs that are computed together
	a, b []T
	out  []R
	fill []T // two buffers per worker, to expand repeated operands that Vec needs as slices
	body func(worker, lo, hi int)
}

// NewBinary prepares kernels for the threads of a pool.
func NewBinary[T, R any](p *workers.Pool, walk *broadcast.Walk, l Loops[T, R]) *Binary[T, R] {
	r := &Binary[T, R]{Loops: l, walk: walk}
	if walk.Inner == walk.Len && walk.Step[0] == 1 && walk.Step[1] == 1 {
		r.body = r.alike
		return r
	}
	r.fill = make([]T, 2*blockWorkspace*p.Threads())
	if r.body = r.work; walk.Inner < walk.Len && (walk.Inner < short || walk.Inner < Block/2 && walk.Repeats()) {
		r.span, r.body = walk.Spans(Block), r.short
	}
	if rows := walk.Rows(); l.Rows != nil && rows != nil && walk.Inner >= shortRow && walk.Inner <= longRow && walk.Step[0]|walk.Step[1] == 1 {
		r.rows, r.body = rows, r.together
	}
	return r
}

// shortRow is the row length that fills a register; from longRow a call per row is negligible.
const (
	shortRow = 16
	longRow  = 1 << 10
)

// Run computes out from a and b.
func (r *Binary[T, R]) Run(p *workers.Pool, out []R, a, b []T) {
	r.out, r.a, r.b = out, a, b
	if r.rows != nil {
		p.ForWorker(r.rows.Len, max(1, Grain/r.walk.Inner), r.body)
	} else {
		p.ForWorker(r.walk.Len, Grain, r.body)
	}
	r.out, r.a, r.b = nil, nil, nil
}

// short is the length below which runs are combined: a kernel call costs as much as several
// elements.
const short = 32

// alike computes operands with the same layout as the result.
func (r *Binary[T, R]) alike(_, lo, hi int) { r.Vec(r.out[lo:hi], r.a[lo:hi], r.b[lo:hi]) }

func (r *Binary[T, R]) work(worker, lo, hi int) {
	sa, sb := r.walk.Step[0], r.walk.Step[1]
	for it := r.walk.Runs(lo, hi); it.Next(); {
		dst := r.out[it.Dst : it.Dst+it.N]
		switch {
		case sa == 1 && sb == 1:
			r.Vec(dst, r.a[it.Off[0]:it.Off[0]+it.N], r.b[it.Off[1]:it.Off[1]+it.N])
		case sa == 1 && r.VectorScalar != nil:
			r.VectorScalar(dst, r.a[it.Off[0]:it.Off[0]+it.N], r.b[it.Off[1]])
		case sb == 1 && r.ScalarVector != nil:
			r.ScalarVector(dst, r.a[it.Off[0]], r.b[it.Off[1]:it.Off[1]+it.N])
		default:
			r.spread(dst, it.Off[0], it.Off[1], r.fill[worker*2*blockWorkspace:][:2*Block])
		}
	}
}

// together calls Rows for runs lo to hi.
func (r *Binary[T, R]) together(_, lo, hi int) {
	n, single := r.walk.Inner, 0
	switch {
	case r.walk.Step[0] == 0:
		single = 1
	case r.walk.Step[1] == 0:
		single = 2
	}
	for it := r.rows.Runs(lo, hi); it.Next(); {
		r.Rows(r.out[it.Dst*n:][:it.N*n], r.a[it.Off[0]:], r.b[it.Off[1]:], n, r.rows.Step[0], r.rows.Step[1], single)
	}
}

// short calls Vec for blocks of short runs with contiguous results.
func (r *Binary[T, R]) short(worker, lo, hi int) {
	fill := r.fill[worker*2*blockWorkspace:][:2*blockWorkspace]
	a, b := r.gathering(0, r.a, fill[:blockWorkspace]), r.gathering(1, r.b, fill[blockWorkspace:])
	for it := r.span.Pieces(lo, hi); it.Next(); {
		r.Vec(r.out[it.Dst:it.Dst+it.N], a.piece(it.Off[0], it.Place, it.N), b.piece(it.Off[1], it.Place, it.N))
	}
}

// gathering returns the gathering of operand k.
func (r *Binary[T, R]) gathering(k int, src, workspace []T) gathering[T] {
	g := gathering[T]{src: src, workspace: workspace, table: r.span.Table[k], run: r.walk.Inner, stands: r.walk.Step[k] == 0, step: r.span.RowStep[k]}
	if r.span.Rows[k] && g.run <= simd.MaxShortRow {
		g.rows = simd.ShortRowKernels()
	}
	return g
}

// gathering collects pieces of an operand in a buffer.
type gathering[T any] struct {
	src, workspace []T
	table          []int
	off, place, n  int // of the piece in the buffer

	rows      *simd.ShortRows // nil if pieces are not rows or no kernels exist for them
	run, step int             // row length and distance
	stands    bool            // a row is one repeated element
}

// piece returns n elements from where a table says, or in place without a table. Repeated pieces
// are collected once.
func (g *gathering[T]) piece(off, place, n int) []T {
	if g.table == nil {
		return g.src[off:][:n]
	}
	if g.off == off && g.place == place && n <= g.n {
		return g.workspace[:n]
	}
	src := g.src[off:]
	if !g.spread(src, place, n) {
		for i, at := range g.table[place:][:n] {
			g.workspace[i] = src[at]
		}
	}
	g.off, g.place, g.n = off, place, n
	return g.workspace[:n]
}

// spread collects a piece row by row, if it begins at the start of a row.
func (g *gathering[T]) spread(src []T, place, n int) bool {
	if g.rows == nil || place%g.run != 0 {
		return false
	}
	from, ok := any(src).([]float32)
	if !ok {
		return false
	}
	from = from[place/g.run*g.step:]
	to, _ := any(g.workspace).([]float32)
	if n = (n + g.run - 1) / g.run; g.stands {
		g.rows.Fill(to, from, n, g.run, g.step)
	} else {
		g.rows.Copy(to, from, n, g.run, g.step)
	}
	return true
}

// spread calls Vec with repeated operands copied into blocks.
func (r *Binary[T, R]) spread(dst []R, oa, ob int, fill []T) {
	sa, sb := r.walk.Step[0], r.walk.Step[1]
	n := min(Block, len(dst))
	fa, fb := fill[:n], fill[Block:Block+n]
	if sa == 0 {
		Fill(fa, r.a[oa])
	}
	if sb == 0 {
		Fill(fb, r.b[ob])
	}
	for lo := 0; lo < len(dst); lo += n {
		n := min(n, len(dst)-lo)
		a, b := fa[:n], fb[:n]
		if sa == 1 {
			a = r.a[oa+lo : oa+lo+n]
		}
		if sb == 1 {
			b = r.b[ob+lo : ob+lo+n]
		}
		r.Vec(dst[lo:lo+n], a, b)
	}
}

// Fill sets every element to v.
func Fill[T any](dst []T, v T) {
	n := min(len(dst), 16)
	for i := range n {
		dst[i] = v
	}
	for ; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// FromFunc builds kernels from a function, for operations whose cost makes the call negligible.
func FromFunc[T, R any](f func(a, b T) R) Loops[T, R] {
	return Loops[T, R]{Vec: func(dst []R, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}}
}
