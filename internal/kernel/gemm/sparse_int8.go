package gemm

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// GEMM with sparse 8-bit weights. 4-way groups with nonzero weights are listed row by row, one
// row per column of the result; see [simd.SparseKind]. The other operand is packed in panels of
// unsigned values: one row per step, or per group of four neighbouring steps, and one column per
// position. Sums equal those of the dense kernels.

const (
	// SparseSteps bounds the steps of a panel, so that it stays in the L1 cache; a multiple of 4.
	SparseSteps = 384
	// SparsePositions is the number of positions whose input is copied together.
	SparsePositions = 1024
	// sparseRows is the number of weight rows that are listed together and whose sums are stored
	// together. It is sparseRowsMany with several K blocks, so that each panel that is loaded
	// serves more of them.
	sparseRows = 32
	// sparseTransposeInt and sparseStoreInt are the extra cost over the dense kernels of
	// transposing a value and of storing a sum, in multiplications, measured by bench/sparse.
	sparseTransposeInt, sparseStoreInt = 26, 8
	sparseRowsMany                     = 128
)

// SparseInt8 is a sparse matrix of 8-bit weights, rows × k.
type SparseInt8 struct {
	F       *simd.SparseInts
	Kind    simd.SparseKind
	rows, k int
	Blocks  int // number of K blocks of SparseSteps steps
	// Unit u, one row or SparseRows rows, has counts[b*units+u] groups in block b; its list
	// begins at starts[b*units+u], as an index of offs and of vals.
	units  int
	counts []uint32
	starts []sparseStart
	offs   []uint16
	vals   []uint8
	Sums   []int32 // of the weights of each row
}

// NewSparseInt8 lists weights minus their zero point; step i of row r is w[r*row+i*step]. It
// returns nil if skipping zeros is not faster or a weight needs more than 8 bits. positions is
// their number per run, 0 if many. gain is the speed-up over dense kernels of the alternative
// that has to be beaten.
func NewSparseInt8[W quantise.Weight](rows, k, positions int, w []W, zero int32, row, step int, gain float64) *SparseInt8 {
	f := simd.SparseIntKernels()
	if f == nil || rows == 0 || k == 0 {
		return nil
	}
	src := Source[W]{w[:(rows-1)*row+(k-1)*step+1], zero, rows, row, step}
	if !sampleSparseInts(src, k) || !FitsInt8(src.V, zero) {
		return nil
	}
	s := &SparseInt8{F: f, rows: rows, k: k, Blocks: (k + SparseSteps - 1) / SparseSteps}
	near := make([]int8, sparseRows*SparseSteps)
	var fours [simd.SparseKinds]int // of each row
	rest := 0                       // groups of kind SparseRow in rows beyond the last whole unit
	for r := 0; r < rows; r += sparseRows {
		for k0 := 0; k0 < k; k0 += SparseSteps {
			n, steps := min(sparseRows, rows-r), min(SparseSteps, k-k0)
			stageRows(near, src, r, n, k0, steps)
			for i := 0; i < n; i += simd.SparseRows {
				countFours(near[i*SparseSteps:], min(simd.SparseRows, n-i), steps, &fours, &rest)
			}
		}
	}
	if s.Kind = s.choose(positions, fours, rest, gain); s.Kind == simd.SparseKinds {
		return nil
	}
	s.list(near, fours, rest, func(r, n, k0, steps int) { stageRows(near, src, r, n, k0, steps) })
	return s
}

// choose returns the cheapest kind, or SparseKinds if none is faster.
func (s *SparseInt8) choose(positions int, fours [simd.SparseKinds]int, rest int, gain float64) simd.SparseKind {
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
		if s.rows < kind.Rows() || cost(&s.F.Costs, kind) >= least {
			continue
		}
		measured := s.F.MeasuredCosts() // measured only if it may be faster
		if c := cost(&measured, kind); c < least {
			best, least = kind, c
		}
	}
	return best
}

// list lists all weights; stage copies steps of n rows, from step k0 of row r, to near.
func (s *SparseInt8) list(near []int8, fours [simd.SparseKinds]int, rest int, stage func(r, n, k0, steps int)) {
	all, places := fours[s.Kind], 4
	switch s.Kind {
	case simd.SparseRowsTogether:
		all += rest
		places = 1 // per row: four of them share four places
	case simd.SparseFours:
		places = 1
	}
	// Lists are never empty, because the code takes the address of their first element.
	s.offs, s.vals = make([]uint16, 0, all*places+4*rest+1), make([]uint8, 0, (all+2)*s.F.Size())
	s.Sums, s.units = make([]int32, s.rows), s.unitIndex(s.rows-1)+1
	s.counts, s.starts = make([]uint32, 0, s.units*s.Blocks), make([]sparseStart, 0, s.units*s.Blocks)
	for k0 := 0; k0 < s.k; k0 += SparseSteps {
		steps := min(SparseSteps, s.k-k0)
		for r := 0; r < s.rows; r += sparseRows {
			n := min(sparseRows, s.rows-r)
			stage(r, n, k0, steps)
			for i := range n {
				s.Sums[r+i] += sumBytes(near[i*SparseSteps:], steps)
			}
			for i := 0; i < n; i += s.unitRows(r + i) {
				s.starts = append(s.starts, sparseStart{len(s.offs), len(s.vals)})
				s.counts = append(s.counts, s.unitList(near[i*SparseSteps:], s.unitRows(r+i), steps))
			}
		}
	}
	s.offs, s.vals = append(s.offs, 0), append(s.vals, 0)
}

// unitList lists some steps of high rows and returns the number of groups.
func (s *SparseInt8) unitList(near []int8, high, steps int) (fours uint32) {
	line := s.F.Cols
	if s.Kind == simd.SparseFours {
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
				w[i] = near[r*SparseSteps+k]
			}
			s.put(w)
		}
	}
	for i := 0; i < steps; i += 8 {
		any := uint64(0)
		for r := range high {
			any |= loadEight(near[r*SparseSteps:], i, steps)
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
func (s *SparseInt8) put(w [4]int8) {
	n := len(s.vals)
	s.vals = s.vals[:n+s.F.Size()]
	s.F.Put(s.vals[n:], w)
}

// unitRows returns the number of rows of the unit that begins with row r.
func (s *SparseInt8) unitRows(r int) int {
	return min(s.Kind.Rows(), max(1, (s.rows-r)/s.Kind.Rows()*s.Kind.Rows()))
}

// unitIndex returns the index of the unit that begins with row r.
func (s *SparseInt8) unitIndex(r int) int {
	high := s.Kind.Rows()
	whole := s.rows / high * high
	return min(r, whole)/high + max(0, r-whole)
}

// Name returns the kernel name.
func (s *SparseInt8) Name() string { return "sparse/" + s.F.Set.String() }

// lanes returns the number of columns that are computed for the given number of positions.
func (s *SparseInt8) lanes(positions int) int {
	cols := s.F.Cols
	if rest := positions % cols; rest > 0 && s.F.Half(rest) {
		return positions/cols*cols + cols/2
	}
	return scratch.RoundUp(positions, cols)
}

// SparseScratch is the scratch memory of a worker: the panels of all blocks, positions before
// their transpose, sums of rows by columns, and their transpose.
type SparseScratch struct {
	sc           [4]*[]float32
	panels, Near []uint8
	Sums, Turned []int32
	t            *simd.SparseIntTile
}

// Scratch returns scratch memory from the pool.
func (s *SparseInt8) Scratch() (r SparseScratch) {
	cols := s.F.Cols
	var f [4][]float32
	for i, n := range [4]int{cols * scratch.RoundUp(s.k, 4) / 4, cols * SparseSteps / 4, s.chunk() * cols, s.chunk() * cols} {
		r.sc[i], f[i] = scratch.Borrow(n)
	}
	r.panels, r.Near, r.Sums, r.Turned = scratch.AsBytes(f[0]), scratch.AsBytes(f[1]), scratch.AsInt32(f[2]), scratch.AsInt32(f[3])
	r.t = sparseIntTiles.Get().(*simd.SparseIntTile)
	return r
}

// chunk returns the number of weight rows whose sums are stored together.
func (s *SparseInt8) chunk() int {
	if s.Blocks > 1 {
		return sparseRowsMany
	}
	return sparseRows
}

// Panel returns the panel of block b and its number of steps.
func (r *SparseScratch) Panel(s *SparseInt8, b int) (panel []uint8, steps int) {
	return r.panels[b*SparseSteps*s.F.Cols:], min(SparseSteps, s.k-b*SparseSteps)
}

var sparseIntTiles = sync.Pool{New: func() any { return new(simd.SparseIntTile) }}

// Give returns the buffers.
func (r *SparseScratch) Give() {
	*r.t = simd.SparseIntTile{}
	sparseIntTiles.Put(r.t)
	for _, sc := range r.sc {
		scratch.Float32s.Put(sc)
	}
}

// Transpose makes a panel of steps values of np signed or unsigned positions that are line apart.
func (s *SparseInt8) Transpose(panel, src []uint8, line, steps, np int, signed bool) {
	cols := s.F.Cols
	if s.words() {
		steps = scratch.RoundUp(steps, 4)
		if move.Transpose(move.Words(panel), cols, move.Words(src), line/4, steps/4, np); s.Kind != simd.SparseFours {
			s.F.Split(panel, steps/4)
		}
	} else {
		move.TransposeBytes(panel, cols, src, line, steps, np)
	}
	if signed {
		panel = panel[:steps*cols]
		simd.IntKernels().QuadInput(panel, panel, true)
	}
}

// words reports whether panels are made by transposing words of four values of a position.
func (s *SparseInt8) words() bool { return s.Kind == simd.SparseFours || s.F.Splits() }

// Whole reports whether positions can be transposed in place: if words are transposed, positions
// must be whole words.
func (s *SparseInt8) Whole(src []uint8, line, steps int) bool {
	return !s.words() || (uintptr(unsafe.Pointer(unsafe.SliceData(src)))|uintptr(line)|uintptr(steps))%4 == 0
}

// Each computes rows r0 to r1 for the np positions of the panels and passes them to put in
// pieces: row r begins at sums[(r-at)*Cols].
func (s *SparseInt8) Each(m *SparseScratch, np, r0, r1 int, start []int32, put func(at, n int)) {
	for at := r0; at < r1; at += s.chunk() {
		end := min(r1, at+s.chunk())
		for b := range s.Blocks {
			s.block(m, b, np, at, end, start)
		}
		put(at, end-at)
	}
}

// block computes rows r0 to r1 of K block b.
func (s *SparseInt8) block(m *SparseScratch, b, np, r0, r1 int, start []int32) {
	t := m.t
	panel, _ := m.Panel(s, b)
	t.RowY = 4 * s.F.Cols
	t.SetContinue(b > 0)
	high := s.Kind.Rows()
	for r, kind := r0, s.Kind; r < r1; kind, high = simd.SparseRow, 1 {
		// Whole units, then the remaining rows.
		units := (r1 - r) / high
		if units == 0 {
			continue
		}
		u := b*s.units + s.unitIndex(r)
		t.X, t.Offs, t.Vals = &panel[0], &s.offs[s.starts[u].off], unsafe.Pointer(&s.vals[s.starts[u].val])
		t.Counts, t.Units, t.Y, t.Start = &s.counts[u], units, &m.Sums[(r-r0)*s.F.Cols], &start[r]
		s.F.Run(t, kind, np)
		r += units * high
	}
}

// sparseGemm holds the arguments of a work item of gemm.
type sparseGemm struct {
	s        *SparseInt8
	x        []uint8
	y, start []int32
	signed   bool
	m        int
	parts    int // of the rows of weights
	cut      int // rows per part
}

// gemm implements [MultiplyInt8].
func (s *SparseInt8) gemm(p *workers.Pool, m int, x []uint8, tables []ByteTable, y []int32) {
	f, signed, zero := simd.IntKernels(), tables[0].signed, int32(0)
	if len(tables) == 1 {
		zero = f.QuadInputZero(signed, tables[0].zero) // the zero point of each row is applied below
	}
	sc, workspace := scratch.Borrow(s.rows)
	start := scratch.AsInt32(workspace)
	ZeroPointSums(start, s.Sums, zero)
	s.product(p, m, x, signed, start, y)
	scratch.Float32s.Put(sc)
	if len(tables) == 1 {
		return
	}
	for r := range m {
		z, row := f.QuadInputZero(signed, tables[r].zero), y[r*s.rows:][:s.rows]
		for i := range row {
			row[i] -= z * s.Sums[i]
		}
	}
}

// product multiplies the m rows x by all weight rows; sums begin with start.
func (s *SparseInt8) product(p *workers.Pool, m int, x []uint8, signed bool, start, y []int32) {
	panels, parts := (m+s.F.Cols-1)/s.F.Cols, 1
	if t := p.Threads(); t > 1 {
		parts = max(1, min(2*t/panels, s.rows/sparseRows))
	}
	cut := scratch.RoundUp((s.rows+parts-1)/parts, simd.SparseRows)
	workers.Do(p, panels*parts, 1, sparseGemm{s, x, y, start, signed, m, parts, cut}, func(q sparseGemm, lo, hi int) {
		workspaces := q.s.Scratch()
		for i := lo; i < hi; i++ {
			if r0 := i % q.parts * q.cut; r0 < q.s.rows {
				q.part(&workspaces, i/q.parts*q.s.F.Cols, r0, min(r0+q.cut, q.s.rows))
			}
		}
		workspaces.Give()
	})
}

// part computes results r0 to r1 of the rows from p0.
func (q *sparseGemm) part(m *SparseScratch, p0, r0, r1 int) {
	s, cols := q.s, q.s.F.Cols
	np := min(cols, q.m-p0)
	for b := range s.Blocks {
		panel, steps := m.Panel(s, b)
		if src := q.x[p0*s.k+b*SparseSteps:]; np >= TransposeMin && s.Whole(src, s.k, steps) {
			s.Transpose(panel, src, s.k, steps, np, q.signed)
			continue
		}
		for i := range np {
			copy(m.Near[i*SparseSteps:][:steps], q.x[(p0+i)*s.k+b*SparseSteps:])
		}
		s.Transpose(panel, m.Near, SparseSteps, steps, scratch.RoundUp(np, TransposeMin), q.signed)
	}
	s.Each(m, np, r0, r1, q.start, func(at, n int) {
		move.Transpose(q.y[p0*s.rows+at:], s.rows, m.Sums, cols, np, n)
	})
}

// TransposeMin is the minimum number of positions for the SIMD transpose of bytes.
const TransposeMin = 16
