package reduce

import (
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// axes is a list of dimensions with their strides in elements.
type axes struct{ n, stride []int }

// offset returns the offset of the i-th index tuple in row-major order.
func (a *axes) offset(i int) int {
	off := 0
	for d := len(a.n) - 1; d >= 0; d-- {
		off += i % a.n[d] * a.stride[d]
		i /= a.n[d]
	}
	return off
}

func (a *axes) len() int {
	n := 1
	for _, d := range a.n {
		n *= d
	}
	return n
}

// Plan splits a tensor into kept and reduced dimensions, after merging neighbours. The innermost
// dimension is separate because it is contiguous.
type Plan struct {
	kept, gone axes // without the innermost dimension
	inner      int  // its length
	rows       bool // the innermost dimension is reduced
	count      int  // elements per result
}

// NewPlan plans the reduction of the marked dimensions of a row-major tensor.
func NewPlan(shape []int, mask []bool) Plan {
	p := Plan{inner: 1, rows: true, count: 1}
	var n []int
	var red []bool
	for i, d := range shape {
		if mask[i] {
			p.count *= d
		}
		switch last := len(n) - 1; {
		case d == 1:
		case last >= 0 && red[last] == mask[i]:
			n[last] *= d
		default:
			n, red = append(n, d), append(red, mask[i])
		}
	}
	stride := 1
	for i := len(n) - 1; i >= 0; i-- {
		switch {
		case i == len(n)-1:
			p.inner, p.rows = n[i], red[i]
		case red[i]:
			p.gone.n, p.gone.stride = append(p.gone.n, n[i]), append(p.gone.stride, stride)
		default:
			p.kept.n, p.kept.stride = append(p.kept.n, n[i]), append(p.kept.stride, stride)
		}
		stride *= n[i]
	}
	for _, s := range [][]int{p.kept.n, p.kept.stride, p.gone.n, p.gone.stride} {
		slices.Reverse(s)
	}
	return p
}

// Columns reports whether the innermost dimension is kept, and the number of elements per result.
func (p *Plan) Columns() (bool, int) { return !p.rows, p.count }

// Reducer reduces elements of type T with an accumulator of type A. Without Merge each result is
// reduced in the order of its elements.
type Reducer[T, A any] struct {
	Start A
	Row   func(acc A, src []T) A // many elements into one accumulator
	// results of Row from Start for adjacent rows of n elements; may be nil
	Rows func(acc []A, src []T, n int)
	// reduces adjacent rows of n elements into their accumulators; may be nil
	More func(acc []A, src []T, n int)
	Cols func(acc []A, src []T) // each element into its own accumulator
	// results of Cols from Start for n lines of src, step apart; may be nil
	Lines func(acc []A, src []T, step, n int)
	// joins parts of a long row that threads share; may be nil
	Merge func(a, b A) A
	// merges each part into its own accumulator; may be nil
	Join func(acc, parts []A)
	Done func(acc A, count int) T          // the result
	All  func(dst []T, acc []A, count int) // Done for many; may be nil
}

// colTile is the number of accumulators of a column-wise reduction at a time; smaller tiles are
// multiples of tileStep.
const colTile, tileStep = 1024, 64

// rowTile is the number of rows that are reduced together.
const rowTile = 32

// Short rows are reduced across rows, narrowTile rows at a time, because a call per row costs as
// much as some tens of elements. The limit is narrowExtreme elements if kernels take many rows
// per call, else narrowRow.
const narrowExtreme, narrowRow, narrowTile = 16, 24, 128

// rowPart is the size of the parts of a whole-tensor reduction. It is fixed, so that the result
// does not depend on the number of threads.
const rowPart = 32 << 10

// Run is a prepared reduction. It is not safe for concurrent use.
type Run[T, A any] struct {
	Reducer[T, A]
	p       Plan
	in, out []T
	acc     []A // two times colTile, or rowTile, per worker
	parts   []A
	// transposed rows, narrowTile per worker, for reductions across rows; nil for others
	apart []uint32
	tile  int // columns computed together
	tiles int
	body  func(worker, lo, hi int)
}

// NewRun prepares a reduction for the threads of a pool.
func NewRun[T, A any](pool *workers.Pool, p Plan, r Reducer[T, A]) *Run[T, A] {
	run := &Run[T, A]{Reducer: r, p: p}
	switch {
	case r.Merge != nil && p.rows && p.kept.len() == 1 && p.gone.len() == 1 && p.inner > 2*rowPart:
		run.parts = make([]A, (p.inner+rowPart-1)/rowPart)
		run.body = func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				part := run.in[i*rowPart : min((i+1)*rowPart, p.inner)]
				if run.Rows != nil {
					run.Rows(run.parts[i:i+1], part, len(part))
				} else {
					run.parts[i] = run.Row(run.Start, part)
				}
			}
		}
	case run.narrow():
		run.acc = make([]A, 2*narrowTile*pool.Threads())
		run.apart = make([]uint32, narrowTile*max(8, p.inner)*pool.Threads())
		run.body = run.narrowWork
	case p.rows:
		run.acc = make([]A, rowTile*pool.Threads())
		run.body = run.rowWork
	default:
		t := pool.Threads()
		run.acc = make([]A, 2*colTile*t)
		if run.tile = colTile; p.kept.len() < t {
			// Multiples of the columns that kernels process at once.
			run.tile = min(colTile, max(1, (p.inner+t*tileStep-1)/(t*tileStep))*tileStep)
		}
		run.tiles = (p.inner + run.tile - 1) / run.tile
		run.body = run.colWork
	}
	return run
}

// Do reduces in to out.
func (r *Run[T, A]) Do(pool *workers.Pool, out, in []T) {
	r.out, r.in = out, in
	switch {
	case r.parts != nil:
		pool.ForWorker(len(r.parts), 1, r.body)
		acc := r.Start
		for _, a := range r.parts {
			acc = r.Merge(acc, a)
		}
		out[0] = r.Done(acc, r.p.count)
	case r.p.rows:
		pool.ForWorker(len(out), max(1, element.Grain/max(1, r.p.count)), r.body)
	default:
		work := max(1, r.p.gone.len()*min(r.tile, r.p.inner))
		pool.ForWorker(r.p.kept.len()*r.tiles, max(1, element.Grain/work), r.body)
	}
	r.out, r.in = nil, nil
}

// narrow reports whether rows are reduced across rows: if the order is unspecified and SIMD
// kernels exist to reduce lines and to transpose rows.
func (r *Run[T, A]) narrow() bool {
	p, most := &r.p, narrowExtreme
	if unsafe.Sizeof(*new(A)) > unsafe.Sizeof(*new(T)) {
		most = narrowRow
	}
	last := len(p.kept.n) - 1
	return p.rows && (len(p.gone.n) == 0 || last >= 0 && p.kept.stride[last] == p.inner) && p.inner > 1 && p.inner <= most && r.Lines != nil && r.Rows != nil &&
		r.Merge != nil && unsafe.Sizeof(*new(T)) == 4 && simd.ElementKernels() != nil
}

// narrowWork reduces neighbouring rows across rows.
func (r *Run[T, A]) narrowWork(worker, lo, hi int) {
	p := &r.p
	n, gone := p.inner, p.gone.len()
	acc := r.acc[2*worker*narrowTile:][:2*narrowTile]
	size := narrowTile * max(8, n)
	workspace := r.apart[worker*size:][:size]
	for lo < hi {
		rows, base := min(narrowTile, hi-lo), lo*n
		if last := len(p.kept.n) - 1; len(p.gone.n) > 0 {
			rows, base = min(rows, p.kept.n[last]-lo%p.kept.n[last]), p.kept.offset(lo)
		}
		sums, part := acc[:rows], acc[narrowTile:][:rows]
		if gone == 0 {
			element.Fill(sums, r.Start)
		}
		for k := range gone {
			to := part
			if k == 0 {
				to = sums
			}
			if r.rowsApart(to, r.in[base+p.gone.offset(k):], workspace); k > 0 {
				r.join(sums, part)
			}
		}
		r.finish(r.out[lo:], sums)
		lo += rows
	}
}

// rowsApart reduces adjacent rows across rows.
func (r *Run[T, A]) rowsApart(acc []A, in []T, workspace []uint32) {
	n, rows := r.p.inner, len(acc)
	done := move.Deinterleave(workspace, move.Words(in), rows, n)
	if done > 0 {
		r.Lines(acc[:done], unsafe.Slice((*T)(unsafe.Pointer(&workspace[0])), len(workspace)), rows, n)
	}
	if done < rows {
		r.Rows(acc[done:], in[done*n:], n)
	}
}

func (r *Run[T, A]) rowWork(worker, lo, hi int) {
	p := &r.p
	gone := p.gone.len()
	if r.Rows != nil && len(p.gone.n) == 0 {
		// The kept dimensions are contiguous; otherwise they would have been merged with the
		// reduced ones.
		acc := r.acc[worker*rowTile:][:rowTile]
		for ; lo < hi; lo += rowTile {
			some := acc[:min(rowTile, hi-lo)]
			r.Rows(some, r.in[lo*p.inner:], p.inner)
			r.finish(r.out[lo:], some)
		}
		return
	}
	if last := len(p.kept.n) - 1; r.More != nil && last >= 0 && p.kept.stride[last] == p.inner {
		// Neighbours read neighbouring rows, so that their sums overlap.
		workspace := r.acc[worker*rowTile:][:rowTile]
		for lo < hi {
			base, acc := p.kept.offset(lo), workspace[:min(rowTile, hi-lo, p.kept.n[last]-lo%p.kept.n[last])]
			element.Fill(acc, r.Start)
			for k := range gone {
				r.More(acc, r.in[base+p.gone.offset(k):], p.inner)
			}
			r.finish(r.out[lo:], acc)
			lo += len(acc)
		}
		return
	}
	part := r.acc[worker*rowTile:][:1]
	for i := lo; i < hi; i++ {
		base, acc := p.kept.offset(i), r.Start
		for k := range gone {
			at := base + p.gone.offset(k)
			if r.Rows != nil && r.Merge != nil {
				r.Rows(part, r.in[at:], p.inner)
				acc = r.Merge(acc, part[0])
				continue
			}
			acc = r.Row(acc, r.in[at:at+p.inner])
		}
		r.out[i] = r.Done(acc, p.count)
	}
}

func (r *Run[T, A]) colWork(worker, lo, hi int) {
	p := &r.p
	gone := p.gone.len()
	for u := lo; u < hi; u++ {
		row, col := u/r.tiles, u%r.tiles*r.tile
		n := min(r.tile, p.inner-col)
		workspace := r.acc[2*worker*colTile:][:2*colTile]
		acc := workspace[:n]
		base := p.kept.offset(row) + col
		if k := p.together(); r.Merge != nil && k > 1 {
			r.short(workspace[:k*p.inner], r.in[base:], gone, k)
			r.finish(r.out[row*p.inner:], acc)
			continue
		}
		if last := len(p.gone.n) - 1; r.Lines != nil && gone > 0 && (last == 0 || last > 0 && r.Merge != nil) {
			lines := p.gone.n[last]
			r.Lines(acc, r.in[base:], p.gone.stride[last], lines)
			for k := lines; k < gone; k += lines {
				part := workspace[colTile:][:n]
				r.Lines(part, r.in[base+p.gone.offset(k):], p.gone.stride[last], lines)
				r.join(acc, part)
			}
		} else {
			element.Fill(acc, r.Start)
			for k := range gone {
				at := base + p.gone.offset(k)
				r.Cols(acc, r.in[at:at+n])
			}
		}
		r.finish(r.out[row*p.inner+col:], acc)
	}
}

// join merges parts into acc.
func (r *Run[T, A]) join(acc, parts []A) {
	if r.Join != nil {
		r.Join(acc, parts)
		return
	}
	for i, a := range parts {
		acc[i] = r.Merge(acc[i], a)
	}
}

// shortLine is the length from which lines are reduced one by one: a call costs as much as
// several elements.
const shortLine = 64

// together returns the number of consecutive short lines that are reduced as one long line.
func (p *Plan) together() int {
	if p.inner >= shortLine || p.inner == 0 || len(p.gone.n) != 1 || p.gone.stride[0] != p.inner {
		return 1
	}
	return min(p.gone.n[0], 4*shortLine/p.inner)
}

// short reduces lines, k at a time, and then the columns that belong together.
func (r *Run[T, A]) short(acc []A, in []T, lines, k int) {
	n := r.p.inner
	if wide := lines / k; r.Lines != nil {
		r.Lines(acc, in, len(acc), wide)
	} else {
		element.Fill(acc, r.Start)
		for i := range wide {
			r.Cols(acc, in[i*len(acc):][:len(acc)])
		}
	}
	if rest := lines % k * n; rest > 0 {
		r.Cols(acc[:rest], in[lines/k*len(acc):][:rest])
	}
	for i := n; i < len(acc); i++ {
		acc[i%n] = r.Merge(acc[i%n], acc[i])
	}
}

// finish writes results.
func (r *Run[T, A]) finish(dst []T, acc []A) {
	dst = dst[:len(acc)]
	if r.All != nil {
		r.All(dst, acc, r.p.count)
		return
	}
	for i, a := range acc {
		dst[i] = r.Done(a, r.p.count)
	}
}
