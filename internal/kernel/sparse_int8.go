package kernel

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// GEMM with sparse 8-bit weights. 4-way groups with nonzero weights are listed row by row, one
// row per column of the result; see [simd.SparseKind]. The other operand is packed in panels of
// unsigned values: one row per step, or per group of four neighbouring steps, and one column per
// position. Sums equal those of the dense kernels.

const (
	// sparseSteps bounds the steps of a panel, so that it stays in the L1 cache; a multiple of 4.
	sparseSteps = 384
	// sparsePositions is the number of positions whose input is copied together.
	sparsePositions = 1024
	// sparseRows is the number of weight rows that are listed together and whose sums are stored
	// together. It is sparseRowsMany with several K blocks, so that each panel that is loaded
	// serves more of them.
	sparseRows = 32
	// sparseTransposeInt and sparseStoreInt are the extra cost over the dense kernels of
	// transposing a value and of storing a sum, in multiplications, measured by bench/sparse.
	sparseTransposeInt, sparseStoreInt = 26, 8
	sparseRowsMany                     = 128
)

// sparseInts is a sparse matrix of 8-bit weights, rows × k.
type sparseInts struct {
	f       *simd.SparseInts
	kind    simd.SparseKind
	rows, k int
	blocks  int // number of K blocks of sparseSteps steps
	// Unit u, one row or SparseRows rows, has counts[b*units+u] groups in block b; its list
	// begins at starts[b*units+u], as an index of offs and of vals.
	units  int
	counts []uint32
	starts []sparseStart
	offs   []uint16
	vals   []uint8
	sums   []int32 // of the weights of each row
}

// newSparseInts lists weights minus their zero point; step i of row r is w[r*row+i*step]. It
// returns nil if skipping zeros is not faster or a weight needs more than 8 bits. positions is
// their number per run, 0 if many. gain is the speed-up over dense kernels of the alternative
// that has to be beaten.
func newSparseInts[W Weight](rows, k, positions int, w []W, zero int32, row, step int, gain float64) *sparseInts {
	f := simd.SparseIntKernels()
	if f == nil || rows == 0 || k == 0 {
		return nil
	}
	src := source[W]{w[:(rows-1)*row+(k-1)*step+1], zero, rows, row, step}
	if !sampleSparseInts(src, k) || !fitsInt8(src.v, zero) {
		return nil
	}
	s := &sparseInts{f: f, rows: rows, k: k, blocks: (k + sparseSteps - 1) / sparseSteps}
	near := make([]int8, sparseRows*sparseSteps)
	var fours [simd.SparseKinds]int // of each row
	rest := 0                       // groups of kind SparseRow in rows beyond the last whole unit
	for r := 0; r < rows; r += sparseRows {
		for k0 := 0; k0 < k; k0 += sparseSteps {
			n, steps := min(sparseRows, rows-r), min(sparseSteps, k-k0)
			stageRows(near, src, r, n, k0, steps)
			for i := 0; i < n; i += simd.SparseRows {
				countFours(near[i*sparseSteps:], min(simd.SparseRows, n-i), steps, &fours, &rest)
			}
		}
	}
	if s.kind = s.choose(positions, fours, rest, gain); s.kind == simd.SparseKinds {
		return nil
	}
	s.list(near, fours, rest, func(r, n, k0, steps int) { stageRows(near, src, r, n, k0, steps) })
	return s
}

// choose returns the cheapest kind, or SparseKinds if none is faster.
func (s *sparseInts) choose(positions int, fours [simd.SparseKinds]int, rest int, gain float64) simd.SparseKind {
	least, best := float64(s.rows*((s.k+3)/4))/gain, simd.SparseKinds
	lanes := 1.0 // per position
	if positions > 0 {
		lanes = float64(s.lanes(positions)) / float64(positions)
	}
	around := (sparseTransposeInt*float64(s.k) + sparseStoreInt*float64(s.rows)) / 4
	cost := func(costs *[simd.SparseKinds]float64, kind simd.SparseKind) float64 {
		c := costs[kind] * float64(fours[kind])
		if kind.Rows() > 1 {
			c += costs[simd.SparseRow] * float64(rest)
		}
		return c*lanes + around
	}
	for kind := range simd.SparseKinds {
		if s.rows < kind.Rows() || cost(&s.f.Costs, kind) >= least {
			continue
		}
		measured := s.f.MeasuredCosts() // measured only if it may be faster
		if c := cost(&measured, kind); c < least {
			best, least = kind, c
		}
	}
	return best
}

// list lists all weights; stage copies steps of n rows, from step k0 of row r, to near.
func (s *sparseInts) list(near []int8, fours [simd.SparseKinds]int, rest int, stage func(r, n, k0, steps int)) {
	all, places := fours[s.kind], 4
	switch s.kind {
	case simd.SparseRowsTogether:
		all += rest
		places = 1 // per row: four of them share four places
	case simd.SparseFours:
		places = 1
	}
	// Lists are never empty, because the code takes the address of their first element.
	s.offs, s.vals = make([]uint16, 0, all*places+4*rest+1), make([]uint8, 0, (all+2)*s.f.Size())
	s.sums, s.units = make([]int32, s.rows), s.unitIndex(s.rows-1)+1
	s.counts, s.starts = make([]uint32, 0, s.units*s.blocks), make([]sparseStart, 0, s.units*s.blocks)
	for k0 := 0; k0 < s.k; k0 += sparseSteps {
		steps := min(sparseSteps, s.k-k0)
		for r := 0; r < s.rows; r += sparseRows {
			n := min(sparseRows, s.rows-r)
			stage(r, n, k0, steps)
			for i := range n {
				s.sums[r+i] += sumBytes(near[i*sparseSteps:], steps)
			}
			for i := 0; i < n; i += s.unitRows(r + i) {
				s.starts = append(s.starts, sparseStart{len(s.offs), len(s.vals)})
				s.counts = append(s.counts, s.unitList(near[i*sparseSteps:], s.unitRows(r+i), steps))
			}
		}
	}
	s.offs, s.vals = append(s.offs, 0), append(s.vals, 0)
}

// unitList lists some steps of high rows and returns the number of groups.
func (s *sparseInts) unitList(near []int8, high, steps int) (fours uint32) {
	line := s.f.Cols
	if s.kind == simd.SparseFours {
		for i := 0; i < steps; i += 4 {
			var w [4]int8
			copy(w[:], near[i:min(i+4, steps)])
			if w != [4]int8{} {
				s.offs = append(s.offs, uint16(i*line))
				s.put(w)
				fours++
			}
		}
		return fours
	}
	var at [4]int // steps
	n := 0
	put := func() {
		fours++
		for r := range high {
			var w [4]int8
			for i, k := range at[:n] {
				w[i] = near[r*sparseSteps+k]
			}
			s.put(w)
		}
	}
	for i := 0; i < steps; i += 8 {
		any := uint64(0)
		for r := range high {
			any |= loadEight(near[r*sparseSteps:], i, steps)
		}
		for left := nonZeroBytes(any); left != 0; left &= left - 1 {
			at[n] = i + bits.TrailingZeros64(left)/8
			s.offs = append(s.offs, uint16(at[n]*line))
			if n++; n == 4 {
				put()
				n = 0
			}
		}
	}
	if n > 0 {
		s.offs = append(s.offs, make([]uint16, 4-n)...)
		put()
	}
	return fours
}

// put lists a group of four weights of a row.
func (s *sparseInts) put(w [4]int8) {
	n := len(s.vals)
	s.vals = s.vals[:n+s.f.Size()]
	s.f.Put(s.vals[n:], w)
}

// unitRows returns the number of rows of the unit that begins with row r.
func (s *sparseInts) unitRows(r int) int {
	return min(s.kind.Rows(), max(1, (s.rows-r)/s.kind.Rows()*s.kind.Rows()))
}

// unitIndex returns the index of the unit that begins with row r.
func (s *sparseInts) unitIndex(r int) int {
	high := s.kind.Rows()
	whole := s.rows / high * high
	return min(r, whole)/high + max(0, r-whole)
}

// name returns the kernel name.
func (s *sparseInts) name() string { return "sparse/" + s.f.Set.String() }

// lanes returns the number of columns that are computed for the given number of positions.
func (s *sparseInts) lanes(positions int) int {
	cols := s.f.Cols
	if rest := positions % cols; rest > 0 && s.f.Half(rest) {
		return positions/cols*cols + cols/2
	}
	return roundUp(positions, cols)
}

// sparseScratch is the scratch memory of a worker: the panels of all blocks, positions before
// their transpose, sums of rows by columns, and their transpose.
type sparseScratch struct {
	sc           [4]*[]float32
	panels, near []uint8
	sums, turned []int32
	t            *simd.SparseIntTile
}

// scratch returns scratch memory from the pool.
func (s *sparseInts) scratch() (r sparseScratch) {
	cols := s.f.Cols
	var f [4][]float32
	for i, n := range [4]int{cols * roundUp(s.k, 4) / 4, cols * sparseSteps / 4, s.chunk() * cols, s.chunk() * cols} {
		r.sc[i], f[i] = borrow(n)
	}
	r.panels, r.near, r.sums, r.turned = asBytes(f[0]), asBytes(f[1]), asInt32(f[2]), asInt32(f[3])
	r.t = sparseIntTiles.Get().(*simd.SparseIntTile)
	return r
}

// chunk returns the number of weight rows whose sums are stored together.
func (s *sparseInts) chunk() int {
	if s.blocks > 1 {
		return sparseRowsMany
	}
	return sparseRows
}

// panel returns the panel of block b and its number of steps.
func (r *sparseScratch) panel(s *sparseInts, b int) (panel []uint8, steps int) {
	return r.panels[b*sparseSteps*s.f.Cols:], min(sparseSteps, s.k-b*sparseSteps)
}

var sparseIntTiles = sync.Pool{New: func() any { return new(simd.SparseIntTile) }}

func (r *sparseScratch) give() {
	*r.t = simd.SparseIntTile{}
	sparseIntTiles.Put(r.t)
	for _, sc := range r.sc {
		scratch.Put(sc)
	}
}

// transpose makes a panel of steps values of np signed or unsigned positions that are line apart.
func (s *sparseInts) transpose(panel, src []uint8, line, steps, np int, signed bool) {
	cols := s.f.Cols
	if s.words() {
		steps = roundUp(steps, 4)
		if move.Transpose(move.Words(panel), cols, move.Words(src), line/4, steps/4, np); s.kind != simd.SparseFours {
			s.f.Split(panel, steps/4)
		}
	} else {
		move.TransposeBytes(panel, cols, src, line, steps, np)
	}
	if signed {
		panel = panel[:steps*cols]
		simd.IntKernels().Fours(panel, panel, true)
	}
}

// words reports whether panels are made by transposing words of four values of a position.
func (s *sparseInts) words() bool { return s.kind == simd.SparseFours || s.f.Splits() }

// whole reports whether positions can be transposed in place: if words are transposed, positions
// must be whole words.
func (s *sparseInts) whole(src []uint8, line, steps int) bool {
	return !s.words() || (uintptr(unsafe.Pointer(unsafe.SliceData(src)))|uintptr(line)|uintptr(steps))%4 == 0
}

// each computes rows r0 to r1 for the np positions of the panels and passes them to put in
// pieces: row r begins at sums[(r-at)*Cols].
func (s *sparseInts) each(m *sparseScratch, np, r0, r1 int, start []int32, put func(at, n int)) {
	for at := r0; at < r1; at += s.chunk() {
		end := min(r1, at+s.chunk())
		for b := range s.blocks {
			s.block(m, b, np, at, end, start)
		}
		put(at, end-at)
	}
}

// block computes rows r0 to r1 of K block b.
func (s *sparseInts) block(m *sparseScratch, b, np, r0, r1 int, start []int32) {
	t := m.t
	panel, _ := m.panel(s, b)
	t.RowY = 4 * s.f.Cols
	t.SetContinue(b > 0)
	high := s.kind.Rows()
	for r, kind := r0, s.kind; r < r1; kind, high = simd.SparseRow, 1 {
		// Whole units, then the remaining rows.
		units := (r1 - r) / high
		if units == 0 {
			continue
		}
		u := b*s.units + s.unitIndex(r)
		t.X, t.Offs, t.Vals = &panel[0], &s.offs[s.starts[u].off], unsafe.Pointer(&s.vals[s.starts[u].val])
		t.Counts, t.Units, t.Y, t.Start = &s.counts[u], units, &m.sums[(r-r0)*s.f.Cols], &start[r]
		s.f.Run(t, kind, np)
		r += units * high
	}
}

// sparseGemm holds the arguments of a work item of gemm.
type sparseGemm struct {
	s        *sparseInts
	x        []uint8
	y, start []int32
	signed   bool
	m        int
	parts    int // of the rows of weights
	cut      int // rows per part
}

// gemm implements [GemmQ].
func (s *sparseInts) gemm(p *workers.Pool, m int, x []uint8, tables []ByteTable, y []int32) {
	f, signed, zero := simd.IntKernels(), tables[0].signed, int32(0)
	if len(tables) == 1 {
		zero = f.FoursZero(signed, tables[0].zero) // the zero point of each row is applied below
	}
	sc, workspace := borrow(s.rows)
	start := asInt32(workspace)
	zeroPointSums(start, s.sums, zero)
	s.product(p, m, x, signed, start, y)
	scratch.Put(sc)
	if len(tables) == 1 {
		return
	}
	for r := range m {
		z, row := f.FoursZero(signed, tables[r].zero), y[r*s.rows:][:s.rows]
		for i := range row {
			row[i] -= z * s.sums[i]
		}
	}
}

// product multiplies the m rows x by all weight rows; sums begin with start.
func (s *sparseInts) product(p *workers.Pool, m int, x []uint8, signed bool, start, y []int32) {
	panels, parts := (m+s.f.Cols-1)/s.f.Cols, 1
	if t := p.Threads(); t > 1 {
		parts = max(1, min(2*t/panels, s.rows/sparseRows))
	}
	cut := roundUp((s.rows+parts-1)/parts, simd.SparseRows)
	workers.Do(p, panels*parts, 1, sparseGemm{s, x, y, start, signed, m, parts, cut}, func(q sparseGemm, lo, hi int) {
		workspaces := q.s.scratch()
		for i := lo; i < hi; i++ {
			if r0 := i % q.parts * q.cut; r0 < q.s.rows {
				q.part(&workspaces, i/q.parts*q.s.f.Cols, r0, min(r0+q.cut, q.s.rows))
			}
		}
		workspaces.give()
	})
}

// part computes results r0 to r1 of the rows from p0.
func (q *sparseGemm) part(m *sparseScratch, p0, r0, r1 int) {
	s, cols := q.s, q.s.f.Cols
	np := min(cols, q.m-p0)
	for b := range s.blocks {
		panel, steps := m.panel(s, b)
		if src := q.x[p0*s.k+b*sparseSteps:]; np >= transposeMin && s.whole(src, s.k, steps) {
			s.transpose(panel, src, s.k, steps, np, q.signed)
			continue
		}
		for i := range np {
			copy(m.near[i*sparseSteps:][:steps], q.x[(p0+i)*s.k+b*sparseSteps:])
		}
		s.transpose(panel, m.near, sparseSteps, steps, roundUp(np, transposeMin), q.signed)
	}
	s.each(m, np, r0, r1, q.start, func(at, n int) {
		move.Transpose(q.y[p0*s.rows+at:], s.rows, m.sums, cols, np, n)
	})
}

// transposeMin is the minimum number of positions for the SIMD transpose of bytes.
const transposeMin = 16
