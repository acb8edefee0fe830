package conv

import (
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Int8 convolutions over [N,H,W,C] with sparse weights: their rows are those of the dense
// convolution, whose positions are transposed into panels piece by piece.

// newSparsePlanes prepares a 1×1 convolution over [N,C,H,W], whose input needs no transpose. It
// returns nil if skipping zeros is not faster.
func newSparsePlanes[W quantise.Weight](s *Shape, w []W, zero int32) *int8NHWC {
	if s.KH*s.KW > 1 || s.Groups > 1 || simd.SparseIntKernels() == nil {
		return nil
	}
	c := newInt8NHWC(s, s.C, s.OC, true)
	if c == nil {
		return nil
	}
	if setSparseLines(c, s.OC, s.C, w[:s.OC*s.C], zero, 1); c.sparse == nil {
		return nil
	}
	return c
}

// sparse computes a work item; the output of the image begins at position y.
func (q *int8NHWCArgs) sparse(v lineView, y int, part linePart) {
	l, s := q.c.plan, q.c.sparse[part.g]
	cols, width := s.F.Cols, q.c.panels[part.g].F.Cols
	count := part.p1 - part.p0
	all := (part.l1 - part.l0) * count
	r0, r1 := part.n0*width, min(part.n1*width, q.og)
	start := q.c.start[part.g*len(q.c.panels[part.g].Sums):]
	// sums are passed on as they are, one channel per row
	byRow := !l.turned && (q.sink.r != nil || q.sink.area > 0)
	m := s.Scratch()
	for p0 := 0; p0 < all; p0 += cols {
		np := min(cols, all-p0)
		for b := range s.Blocks {
			q.sparsePanel(s, &m, v, part, b, p0, np)
		}
		s.Each(&m, np, r0, r1, start, func(at, n int) {
			if !byRow {
				move.Transpose(m.Turned, n, m.Sums, cols, np, n)
			}
			eachLine(part, p0, np, func(from, line, pos, here int) {
				ch, place := part.g*q.og+at, y+line*l.lineC+pos*l.stepC
				if byRow {
					q.sparseRows(m.Sums[from:], cols, place/q.s.OC, here, ch, n)
				} else {
					q.sink.put(m.Turned[from*n:], n, here, place+ch, l.stepC, ch, n)
				}
			})
		})
	}
	m.Give()
}

// sparseRows passes on sums of n channels from channel ch, line apart, of positions of all
// images.
func (q *int8NHWCArgs) sparseRows(sums []int32, line, pos, positions, ch, n int) {
	for out := q.sink.out; positions > 0; {
		img, at := pos/out, pos%out
		here := min(positions, out-at)
		q.sink.rows(img*q.s.OC+ch, n, at, here, sums, line)
		sums, pos, positions = sums[here:], pos+here, positions-here
	}
}

// sparsePanel makes the panel of a K block for np positions of a work item from its position p0.
func (q *int8NHWCArgs) sparsePanel(s *gemm.SparseInt8, m *gemm.SparseScratch, v lineView, part linePart, b, p0, np int) {
	l := q.c.plan
	panel, steps := m.Panel(s, b)
	k0 := b * gemm.SparseSteps
	first := func(line, at int) int { return line*l.lineA + at*l.stepA + part.g*q.s.C/q.s.Groups - v.base }
	if q.across {
		eachLine(part, p0, np, func(from, _, at, n int) { q.planesPanel(panel[from:], s.F.Cols, k0, at, steps, n) })
		return
	}
	if o := &l.passes[0]; np >= gemm.TransposeMin && len(l.passes) == 1 && o.Segs == 1 && p0%(part.p1-part.p0)+np <= part.p1-part.p0 {
		count := part.p1 - part.p0
		if src := v.x[first(part.l0+p0/count, part.p0+p0%count)+o.A+k0:]; s.Whole(src, l.stepA, steps) {
			s.Transpose(panel, src, l.stepA, steps, np, q.flip)
			return
		}
	}
	eachLine(part, p0, np, func(from, line, at, n int) {
		base := first(line, at)
		for i := range l.passes {
			o := &l.passes[i]
			for seg := range o.Segs {
				// The segment holds steps begin to begin+k.
				begin := o.B + seg*o.K
				lo, hi := max(begin, k0), min(begin+o.K, k0+steps)
				for j := 0; lo < hi && j < n; j++ {
					copy(m.Near[(from+j)*gemm.SparseSteps+lo-k0:][:hi-lo], v.x[base+j*l.stepA+o.A+seg*o.Seg+lo-begin:])
				}
			}
		}
	})
	s.Transpose(panel, m.Near, gemm.SparseSteps, steps, scratch.RoundUp(np, gemm.TransposeMin), q.flip)
}

// planesPanel writes K steps from k0 of n positions of [N,C,H,W], of all images, into columns of
// a panel.
func (q *int8NHWCArgs) planesPanel(panel []uint8, cols, k0, at, steps, n int) {
	f, c, area := q.c.panels[0].F, q.s.C, q.s.H*q.s.W
	for n > 0 {
		img, p := at/area, at%area
		here := min(n, area-p)
		src := q.x[(img*c+k0)*area+p:]
		if !f.CopyBytes(panel, cols, src, area, 1, here, steps, q.flip) {
			for i := range steps {
				f.QuadInput(panel[i*cols:][:here], src[i*area:][:here], q.flip)
			}
		}
		panel, at, n = panel[here:], at+here, n-here
	}
}

// eachLine calls f for each contiguous range of the n positions from p0: the number of positions
// before it, its row, its start in the row and its length.
func eachLine(part linePart, p0, n int, f func(from, line, at, n int)) {
	count := part.p1 - part.p0
	line, at := part.l0+p0/count, p0%count
	for from := 0; from < n; line, at = line+1, 0 {
		here := min(n-from, count-at)
		f(from, line, part.p0+at, here)
		from += here
	}
}
