package gemm

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// GEMM with sparse float32 weights. The nonzero weights are listed row by row. Each row is a
// column of the result, or four neighbouring rows are listed together if they have their zeros at
// the same steps. The other operand is packed in panels, one row per step and one column per
// position, so that a listed weight multiplies whole registers of positions.
//
// A skipped zero has no product: an infinite or NaN activation does not affect outputs whose
// weight is zero.

// Cost of a listed value relative to a value of a dense matrix, measured by bench/sparse: listed
// by itself, and for each of four rows that share their steps. They determine the minimum
// sparsity.
const (
	sparseCost     = 2.6
	sparseCostRows = 1.25
	// If panels have to be transposed, transposing an input or output value costs
	// sparseTransposeCost multiplications, and listed values cost sparseTransposedGain less.
	// Measured on layers of 8 to 384 channels, whose panels are short.
	sparseTransposeCost  = 7
	sparseTransposedGain = 0.7
)

// TileBlock is the number of panels that are gathered before the weights pass.
const TileBlock = 8

// Pass is a range of the K steps of a convolution: in a patch Segs segments of K values from
// offset A, Seg apart; in the weights the panel rows from B.
type Pass struct{ A, K, Segs, Seg, B int }

// SparseFloat32 is a sparse matrix of weights, rows × k.
type SparseFloat32 struct {
	f       *simd.Sparse
	rows, k int
	whole   [1]Pass // all steps, for contiguous rows
	grouped bool    // rows are listed four at a time, the remaining ones one by one
	Blocks  int     // number of K blocks of KBlock steps
	// The list of K block b of unit u (one row or four) begins at starts[u*Blocks+b]; offs are
	// the byte offsets of steps in a panel.
	starts []sparseStart
	offs   []int32
	vals   []float32
}

type sparseStart struct{ off, val int }

// NewSparseFloat32 lists the nonzero values of a matrix whose element k of row r is
// w[r*row+k*step]. It returns nil if skipping zeros is not faster. turned is the number of
// positions (0 if many) that have to be transposed into panels; -1 if the input already has the
// panel layout.
func NewSparseFloat32(rows, k int, w []float32, row, step, turned int) *SparseFloat32 {
	f := simd.SparseKernels()
	if f == nil || rows == 0 || k == 0 {
		return nil
	}
	if !sampleSparse(rows, k, w, row, step) {
		return nil
	}
	whole := rows / simd.SparseRows * simd.SparseRows
	single, shared, rest := 0, 0, 0 // rest: the part of single in rows beyond the last full four
	for r := 0; r < rows; r += simd.SparseRows {
		n := min(simd.SparseRows, rows-r)
		all, together := countValues(w[r*row:], n, k, row, step)
		single += all
		if r < whole {
			shared += together * simd.SparseRows
		} else {
			rest += all
		}
	}
	dense, one, four := float64(rows*k), sparseCost*float64(single), sparseCostRows*float64(shared)
	if rows > whole {
		four = one // all of them rather than the comparison of two lists
		if whole > 0 {
			four = sparseCostRows * float64(shared) * float64(rows) / float64(whole)
		}
	}
	if least := min(one, four); least >= dense || turned >= 0 && transposedCost(f, least, rows, k, turned) >= float64(k*scratch.RoundUp(rows, f.Cols/2)) {
		return nil
	}
	s := &SparseFloat32{f: f, rows: rows, k: k, whole: [1]Pass{{K: k, Segs: 1}}, grouped: whole > 0 && four < one}
	s.Blocks = (k + KBlock - 1) / KBlock
	offs, vals := single, single
	if s.grouped {
		offs, vals = shared/simd.SparseRows+rest, shared+rest
	}
	// Lists are never empty, because the code takes the address of their first element.
	s.offs, s.vals = hugepages.Make[int32](offs+1), hugepages.Make[float32](vals+simd.SparseRows)
	s.starts = make([]sparseStart, 0, (s.unitIndex(rows-1)+1)*s.Blocks+1)
	at := sparseStart{}
	for r := 0; r < rows; r += s.unitRows(r) {
		for k0 := 0; k0 < k; k0 += KBlock {
			s.starts = append(s.starts, at)
			at = s.list(at, w[r*row+k0*step:], min(KBlock, k-k0), s.unitRows(r), row, step)
		}
	}
	s.starts = append(s.starts, at)
	s.offs[at.off] = 0
	clear(s.vals[at.val:])
	return s
}

// Cost returns the cost of the listed values in multiplications of a dense matrix.
func (s *SparseFloat32) Cost() float64 {
	if s.grouped {
		return sparseCostRows * float64(len(s.vals))
	}
	return sparseCost * float64(len(s.vals))
}

// transposedCost returns the cost of listed values with transposed panels per position; whole
// panels are computed.
func transposedCost(f *simd.Sparse, values float64, rows, k, positions int) float64 {
	cost := sparseTransposedGain*values + sparseTransposeCost*float64(rows+k)
	if positions > 0 {
		cost *= float64(scratch.RoundUp(positions, f.Cols)) / float64(positions)
	}
	return cost
}

// list appends the values of some steps of high rows at a place and returns the place behind
// them. It writes each value before testing it for zero, so it needs space for one more.
func (s *SparseFloat32) list(at sparseStart, w []float32, steps, high, row, step int) sparseStart {
	offs, vals, width := s.offs, s.vals, int32(4*s.f.Cols)
	switch {
	case high == 1 && step == 1:
		for i, v := range w[:steps] {
			offs[at.off], vals[at.val] = int32(i)*width, v
			found := int(isValue(v))
			at.off, at.val = at.off+found, at.val+found
		}
	case high == simd.SparseRows && step == 1:
		b, c, d := w[row:][:steps], w[2*row:][:steps], w[3*row:][:steps]
		for i, v := range w[:steps] {
			offs[at.off] = int32(i) * width
			q := (*[simd.SparseRows]float32)(vals[at.val:])
			q[0], q[1], q[2], q[3] = v, b[i], c[i], d[i]
			found := int(isValue(v) | isValue(b[i]) | isValue(c[i]) | isValue(d[i]))
			at.off, at.val = at.off+found, at.val+found*simd.SparseRows
		}
	default:
		for i := range steps {
			found := int32(0)
			offs[at.off] = int32(i) * width
			for j := range high {
				v := w[i*step+j*row]
				vals[at.val+j] = v
				found |= isValue(v)
			}
			at.off, at.val = at.off+int(found), at.val+int(found)*high
		}
	}
	return at
}

// isValue returns 0 for zeros of both signs, else 1. It avoids a comparison, whose branch would
// be unpredictable.
func isValue(v float32) int32 {
	b := int32(math.Float32bits(v) << 1)
	return int32(uint32(b|-b) >> 31)
}

// countValues counts the nonzero values in n ≤ SparseRows rows of k steps, and the steps at which
// any row has one.
func countValues(w []float32, n, k, row, step int) (all, together int) {
	if n == simd.SparseRows && step == 1 {
		a, b, c, d := w[:k], w[row:][:k], w[2*row:][:k], w[3*row:][:k]
		for i, v := range a {
			va, vb, vc, vd := isValue(v), isValue(b[i]), isValue(c[i]), isValue(d[i])
			all += int(va + vb + vc + vd)
			together += int(va | vb | vc | vd)
		}
		return all, together
	}
	for i := range k {
		any := int32(0)
		for j := range n {
			v := isValue(w[j*row+i*step])
			all, any = all+int(v), any|v
		}
		together += int(any)
	}
	return all, together
}

// sampleSparse samples the matrix and reports whether counting its zeros is worth the time: most
// models have almost none.
func sampleSparse(rows, k int, w []float32, row, step int) bool {
	const sample = 4096
	n := rows * k
	every := max(1, n/sample) | 1
	zeros, seen := 0, 0
	for i := 0; i < n; i += every {
		seen++
		if w[i/k*row+i%k*step] == 0 {
			zeros++
		}
	}
	return 8*zeros >= seen
}

// unitRows returns the number of rows of the unit that begins with row r.
func (s *SparseFloat32) unitRows(r int) int {
	if s.grouped && r+simd.SparseRows <= s.rows {
		return simd.SparseRows
	}
	return 1
}

// unitIndex returns the index of the unit that begins with row r.
func (s *SparseFloat32) unitIndex(r int) int {
	if !s.grouped {
		return r
	}
	return min(r, s.rows/simd.SparseRows*simd.SparseRows)/simd.SparseRows + max(0, r-s.rows/simd.SparseRows*simd.SparseRows)
}

// Name returns the kernel name.
func (s *SparseFloat32) Name() string { return "sparse/" + s.f.Set.String() }

// SparseCut is a multiple of the rows of all units, so that work can be split there.
const SparseCut = 3 * simd.SparseRows

// Block computes rows r0 to r1 of K block b for the np positions of the panels in buf, which have
// steps rows. Row r begins at y[(r-r0)*step] and continues the sums of earlier blocks. The last
// Block adds bias[r], if there is a bias, and clamps.
func (s *SparseFloat32) Block(t *simd.SparseTile, buf []float32, steps, b int, y []float32, step, np, r0, r1 int, bias []float32, act activation.Clamp, exact bool) {
	f, last := s.f, b == s.Blocks-1
	t.Panel, t.RowY = 4*steps*f.Cols, 4*step
	t.SetStart(b > 0)
	t.SetClamp(act.On && last, act.Min, act.Max)
	t.Bias = nil
	for r := r0; r < r1; {
		high, u := s.unitRows(r), s.unitIndex(r)*s.Blocks+b
		start := s.starts[u]
		t.Offs, t.Vals, t.Count = &s.offs[start.off], &s.vals[start.val], s.starts[u+1].off-start.off
		if last && bias != nil {
			t.Bias = &bias[r]
		}
		several := f.Panels
		if high > 1 {
			several = f.PanelsOfRows
		}
		for p0 := 0; p0 < np; {
			t.X, t.Y = &buf[p0*steps], &y[(r-r0)*step+p0]
			width := min(several*f.Cols, np-p0)
			f.Run(t, high > 1, width, exact)
			p0 += width
		}
		r += high
	}
}

// SparseTiles lends sparse tiles; [ReleaseSparseTile] returns them.
var SparseTiles = sync.Pool{New: func() any { return new(simd.SparseTile) }}

// ReleaseSparseTile returns a tile without its pointers.
func ReleaseSparseTile(t *simd.SparseTile) {
	*t = simd.SparseTile{}
	SparseTiles.Put(t)
}

// SparseLines describes a multiplication whose positions are the rows of the input: count
// positions per row of positions. Neighbours are StepA and StepC values apart in input and
// output, rows LineA and LineC. The values of a position are those of Passes.
type SparseLines struct {
	Lines, Count               int
	StepA, LineA, StepC, LineC int
	Passes                     []Pass
	Bias                       []float32
	Act                        activation.Clamp
	Exact                      bool
}

// Run computes c from a.
func (s *SparseFloat32) Run(p *workers.Pool, l SparseLines, a, c []float32) {
	all, cols := l.Lines*l.Count, s.f.Cols
	panels := (all + cols - 1) / cols
	block, parts := min(TileBlock, panels), 1
	if t := p.Threads(); t > 1 {
		block = max(1, min(block, panels/(2*t)))
		parts = max(1, min(2*t/((panels+block-1)/block), (s.rows+SparseCut-1)/SparseCut))
	}
	blocks := (panels + block - 1) / block
	cut := scratch.RoundUp((s.rows+parts-1)/parts, SparseCut)
	workers.Do(p, blocks*parts, 1, sparseArgs{s, l, a, c, block, parts, cut}, func(q sparseArgs, lo, hi int) {
		s, l, all, cols := q.s, &q.l, q.l.Lines*q.l.Count, q.s.f.Cols
		t := SparseTiles.Get().(*simd.SparseTile)
		sc, buf := scratch.Borrow(q.block * min(KBlock, s.k) * cols)
		rc, workspace := scratch.Borrow(q.cut * q.block * cols)
		for i := lo; i < hi; i++ {
			p0 := i / q.parts * q.block * cols
			np := min(q.block*cols, all-p0)
			r0, r1 := i%q.parts*q.cut, min((i%q.parts+1)*q.cut, s.rows)
			if r0 >= r1 {
				continue
			}
			width := scratch.RoundUp(np, cols)
			for b := range s.Blocks {
				k0 := b * KBlock
				steps := min(KBlock, s.k-k0)
				l.panels(buf, cols, q.a, p0, np, k0, steps)
				s.Block(t, buf, steps, b, workspace, width, np, r0, r1, l.Bias, l.Act, l.Exact)
			}
			l.each(p0, np, func(from, line, at, n int) {
				move.Transpose(q.c[line*l.LineC+at*l.StepC+r0:], l.StepC, workspace[from:], width, n, r1-r0)
			})
		}
		scratch.Float32s.Put(rc)
		scratch.Float32s.Put(sc)
		ReleaseSparseTile(t)
	})
}

// sparseArgs holds the arguments of a work item.
type sparseArgs struct {
	s                 *SparseFloat32
	l                 SparseLines
	a, c              []float32
	block, parts, cut int
}

// panels writes K steps from k0 of the np positions from p0 into panels of cols columns.
func (l *SparseLines) panels(buf []float32, cols int, a []float32, p0, np, k0, steps int) {
	for q0 := 0; q0 < np; q0 += cols {
		panel := buf[q0*steps:][:steps*cols]
		l.each(p0+q0, min(cols, np-q0), func(from, line, at, n int) {
			src := a[line*l.LineA+at*l.StepA:]
			for i := range l.Passes {
				q := &l.Passes[i]
				for seg := range q.Segs {
					// The segment holds steps first to first+k.
					first := q.B + seg*q.K
					lo, hi := max(first, k0), min(first+q.K, k0+steps)
					if lo < hi {
						move.Transpose(panel[(lo-k0)*cols+from:], cols, src[q.A+seg*q.Seg+lo-first:], l.StepA, hi-lo, n)
					}
				}
			}
		})
	}
}

// each calls f for each contiguous range of the n positions from p0: the number of positions
// before it, its row, its start in the row and its length.
func (l *SparseLines) each(p0, n int, f func(from, line, at, n int)) {
	line, at := p0/l.Count, p0%l.Count
	for from := 0; from < n; line, at = line+1, 0 {
		m := min(n-from, l.Count-at)
		f(from, line, at, m)
		from += m
	}
}
