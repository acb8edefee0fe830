package simd

import (
	"slices"
	"sync"
	"unsafe"
)

// This file computes int8 GEMM with AMX tiles: registers of up to 16 rows of 64 bytes.
//
// A tile of activations, or of weights in place of activations, holds 16 rows of 16 groups of
// four int8 values. A tile of a panel holds 16 groups of four for 16 columns. A tile of sums
// holds 16 rows of 16 int32. Panels have the layout of [VNNI]; a tile takes every other 64 bytes
// of a panel.

const (
	tileBytes    = 64  // bytes of a tile row
	amxPanelCols = 32  // columns of a panel: two tiles
	amxBlockRows = 32  // rows of two tiles
	amxMaxRows   = 192 // rows of a call: a tile setup costs as much as two blocks of one step
	amxMinRows   = 4   // 7 of 16 rows take two thirds of the time of the VNNI kernels
)

// tileProgram holds the arguments of one call of an AMX kernel. All steps have the same number of
// groups of four. The assembly accesses the fields by their offsets.
type tileProgram struct {
	config *[64]byte // tile sizes
	a      unsafe.Pointer
	// Bytes to the next row, to the next step, and from the end of a segment to the next segment.
	rowA, stepA, endA int
	b                 unsafe.Pointer
	stepB, endB       int
	steps, segs       int
	c                 *int32
	rowC              int
	// start holds the initial sums: one for each column or, transposed, one for each row. If it
	// is nil, sums start from the values in c or from zero; see fresh.
	start *int32
	rows  int // of a block
	n     int // remaining blocks; if there are several, all have the same number of rows
	// Bytes from block to block, and the bytes that the previous blocks advanced.
	moveA, moveC, moveStart int
	doneA, doneC, doneStart int
	doneB                   int
	panels, each            int // remaining panels, and blocks of each panel
	// Bytes from the last block of a panel to the first block of the next panel.
	nextA, nextB, nextC, nextStart int
	fresh                          int // 1: without start, sums start from zero, not from c
	ahead                          unsafe.Pointer
	// Cache lines that each step prefetches, and bytes that have been prefetched.
	aheadLines, doneAhead int

	sizes [64]byte
	block int // rows of a full block
	// Bytes from the first block of a panel, or of a line, to the first block of the next.
	overA, overC, overStart int
}

// amxKernelSet holds the AMX kernels for blocks of up to 16 rows and of up to 32 rows.
type amxKernelSet struct {
	quads, few, transposed, half [2]func(p *tileProgram)
	// near is the largest size in bytes of a panel that stays in the L1 cache next to the rows
	// and sums of a block. Such panels are read once for each 16 rows, with four tiles in use.
	// Larger panels are read once for each 32 rows, with six tiles in use.
	//
	// A core has a limited number of physical registers behind the eight tile names, shared by
	// both of its threads. While another virtual machine runs AMX code on the same core, four
	// tiles run 1.4 times as fast as six.
	near int
}

var amxKernels = amxKernelSet{
	quads:      [2]func(p *tileProgram){quads16AMX, quads32AMX},
	few:        [2]func(p *tileProgram){few16AMX, few32AMX},
	transposed: [2]func(p *tileProgram){turned16AMX, turned32AMX},
	half:       [2]func(p *tileProgram){half16AMX, half32AMX},
	near:       24 << 10,
}

var tileProgramPool = sync.Pool{New: func() any { return new(tileProgram) }}

// run computes what [Ints.RunQuads] computes, or [Ints.RunTransposed] if transposed is set.
func (l *amxKernelSet) run(t *IntTile, rows, cols int, transposed bool) {
	kernels := l.kernelsFor(cols, transposed)
	p := tileProgramPool.Get().(*tileProgram)
	p.rowA, p.segs = t.RowA, t.Segs
	l.runRows(p, t, kernels, rows, 1, transposed)
	p.release()
}

// kernelsFor returns the kernels for a number of columns.
func (l *amxKernelSet) kernelsFor(cols int, transposed bool) *[2]func(p *tileProgram) {
	few := cols <= amxPanelCols/2
	switch {
	case transposed && few:
		return &l.half
	case transposed:
		return &l.transposed
	case few:
		return &l.few
	}
	return &l.quads
}

// lines computes what [Ints.RunLines] computes.
func (l *amxKernelSet) lines(t *IntTile, rows, cols int, at Lines) {
	p := tileProgramPool.Get().(*tileProgram)
	p.rowA, p.segs = t.RowA, t.Segs
	p.overA, p.overC = at.A, rows*t.RowC
	l.runRows(p, t, l.kernelsFor(cols, false), rows, at.N, false)
	p.release()
}

// panels computes what [Ints.RunPanels] computes.
func (l *amxKernelSet) panels(t *IntTile, rows, panels int) {
	p := tileProgramPool.Get().(*tileProgram)
	p.rowA, p.segs = t.RowA, 1
	if rows%amxBlockRows == 0 || rows < amxBlockRows || t.Ahead == nil {
		p.nextB, p.overC, p.overStart = t.PanelB, 4*amxPanelCols, 4*amxPanelCols
		l.runRows(p, t, &l.quads, rows, panels, false)
	} else {
		// A panel-wise call would read distant weights once more for the rows of the last block.
		was := *t
		for i := range panels {
			t.B = unsafe.Add(was.B, i*t.PanelB)
			t.C = (*int32)(unsafe.Add(unsafe.Pointer(was.C), i*4*amxPanelCols))
			if was.Start != nil {
				t.Start = (*int32)(unsafe.Add(unsafe.Pointer(was.Start), i*4*amxPanelCols))
			}
			if t.Ahead = nil; i+1 < panels {
				t.Ahead = unsafe.Add(was.Ahead, i*t.PanelB)
			}
			l.runRows(p, t, &l.quads, rows, 1, false)
		}
		*t = was
	}
	p.release()
}

// release clears the program and returns it to the pool.
func (p *tileProgram) release() {
	*p = tileProgram{}
	tileProgramPool.Put(p)
}

// runRows runs program p for all rows of panels panels, or of as many lines.
func (l *amxKernelSet) runRows(p *tileProgram, t *IntTile, kernels *[2]func(p *tileProgram), rows, panels int, transposed bool) {
	p.c, p.rowC = t.C, t.RowC
	p.block = amxBlockRows
	// In half a panel, two tiles of rows share each load.
	if kernels != &l.half && kernels != &l.few && 4*amxPanelCols*t.K*p.segs <= l.near {
		p.block = tileRows
	}
	whole := rows / p.block
	if steps, _, rest := tileSteps(t.K); t.Ahead != nil && rest == 0 {
		const lines = 4 * amxPanelCols / cacheLine // of a group of four
		all := (rows + p.block - 1) / p.block * steps
		p.ahead, p.aheadLines = t.Ahead, (lines*t.K+all-1)/all
	} else {
		p.ahead, p.aheadLines = nil, 0
	}
	if n, size, stride := overlappingBlocks(rows, p.block, t); n > 0 {
		p.runBlocks(t, kernels, 0, size, stride, n, panels, transposed)
		return
	}
	p.runBlocks(t, kernels, 0, p.block, p.block, whole, panels, transposed)
	// A block uses one tile of activations for each 16 rows, so both tiles have the same number
	// of rows.
	first, rest := whole*p.block, rows%p.block
	if rest > tileRows {
		p.runBlocks(t, kernels, first, tileRows, 0, 1, panels, transposed)
		first, rest = first+tileRows, rest-tileRows
	}
	p.runBlocks(t, kernels, first, rest, 0, 1, panels, transposed)
}

// overlappingBlocks splits rows that do not fill complete blocks into n blocks of equal size,
// stride rows apart. Some rows are computed twice, which takes less time than a separate call for
// the last rows. n is 0 if such a split does not exist, or if sums continue from earlier values.
func overlappingBlocks(rows, block int, t *IntTile) (n, size, stride int) {
	if _, _, rest := tileSteps(t.K); rest > 0 || t.more != 0 || rows <= block || rows%block == 0 {
		return 0, 0, 0
	}
	n = (rows + block - 1) / block
	stride = (rows - block + n - 2) / (n - 1)
	// Both tiles of a two-tile block are full.
	if size = rows - (n-1)*stride; size < stride || size < block && block > tileRows {
		return 0, 0, 0
	}
	return n, size, stride
}

// runBlocks computes n blocks of rows rows (at most 16 or 32) for each panel. The first block
// starts at row first; blocks are stride rows apart.
func (p *tileProgram) runBlocks(t *IntTile, kernels *[2]func(p *tileProgram), first, rows, stride, n, panels int, transposed bool) {
	if rows == 0 || n == 0 {
		return
	}
	kernel, start := kernels[(rows-1)/tileRows], first*t.RowA
	p.rows, p.moveA, p.moveC, p.moveStart = rows, stride*t.RowA, stride*t.RowC, 0
	p.nextA, p.nextC, p.nextStart = p.overA-n*p.moveA, p.overC-n*p.moveC, p.overStart
	p.fresh = 0
	if p.start = t.Start; t.more != 0 {
		p.start = nil
	} else if p.start == nil {
		p.fresh = 1
	}
	run := func(four, fours, steps int) {
		p.setSteps(t, four, fours, steps)
		p.doneA, p.doneB, p.doneC, p.doneStart = start, 0, first*t.RowC, 0
		p.n, p.each, p.panels = n, n, panels
		if transposed {
			p.moveStart, p.doneStart = 4*stride, 4*first
		}
		kernel(p)
	}
	steps, fours, rest := tileSteps(t.K)
	p.doneAhead = first / p.block * steps * t.Segs * p.aheadLines * cacheLine
	run(0, fours, steps)
	if rest > 0 {
		p.start, p.fresh = nil, 0
		run(steps*fours, rest, 1)
	}
}

// tileSteps splits k groups of four into equal steps. If that is impossible, it returns full
// steps and one step with the rest. The order of the terms does not change an integer sum.
func tileSteps(k int) (steps, fours, rest int) {
	if steps = (k + tileRows - 1) / tileRows; k%steps == 0 {
		return steps, k / steps, 0
	}
	return k / tileRows, tileRows, k % tileRows
}

// faster reports whether tiles take less time than the kernels of the next lower instruction set.
// It compares cycles of a processor that has both: those kernels compute one group of four for 32
// rows and 32 columns in 32 cycles. Tiles take 64 cycles for a step, and about 300 for sums and
// calls.
func (*amxKernelSet) faster(k, segs int) bool {
	steps, _, rest := tileSteps(k)
	if rest > 0 {
		steps += 3
	}
	return 32*k*segs > 64*steps*segs+300
}

// peak multiplies the same tile by the same two tiles n times. It loads them each time.
func (l *amxKernelSet) peak(n int) {
	if n <= 0 {
		return
	}
	const line = 4 * amxPanelCols
	b, c := make([]uint8, tileRows*line), make([]int32, tileRows*amxPanelCols)
	p := &tileProgram{rows: tileRows, n: 1, each: 1, panels: 1, rowA: tileBytes, segs: 1, c: &c[0], rowC: 4 * amxPanelCols}
	p.setSteps(&IntTile{A: unsafe.Pointer(&b[0]), B: unsafe.Pointer(&b[0]), K: tileRows}, 0, tileRows, 1)
	p.steps, p.stepA, p.stepB = n, 0, 0
	l.quads[0](p)
}

// setSteps sets up steps steps of fours groups of four. The steps start at group first of each
// segment.
func (p *tileProgram) setSteps(t *IntTile, first, fours, steps int) {
	const line = 4 * amxPanelCols // bytes of a group of four of a panel
	p.a, p.stepA, p.endA = unsafe.Add(t.A, 4*first), 4*fours, t.SegA-4*fours*steps
	p.b, p.stepB, p.endB = unsafe.Add(t.B, line*first), line*fours, line*(t.K-fours*steps)
	p.steps = steps
	p.sizes = [64]byte{0: 1} // the palette
	size := func(tile, rows, bytes int) {
		if rows > 0 {
			p.sizes[16+2*tile], p.sizes[48+tile] = byte(bytes), byte(rows)
		}
	}
	rows := min(p.rows, tileRows)
	for i := range 4 {
		size(i, rows, tileBytes) // sums
	}
	size(4, rows, 4*fours)
	size(5, fours, tileBytes)
	p.config = &p.sizes
}

// withAMX adds AMX to a table. AMX uses the VNNI kernels except for the 4-way dot products.
func withAMX(table family[Ints], l *amxKernelSet) family[Ints] {
	f := *table[VNNI]
	f.Set, f.Rows, f.matrixTiles, f.minTileRows, f.tileBlockRows = AMX, amxMaxRows, l, amxMinRows, amxBlockRows
	table[AMX] = &f
	return table
}

// amxAvailable reports whether the AMX kernels can run. The processor must have tiles of the
// expected sizes, and the system must allow their use. The results must equal those of the next
// lower instruction set, which must be available.
var amxAvailable = sync.OnceValue(func() bool {
	// CPUID leaf 0x1D lists palettes. For palette 1 it gives the bytes of all tiles, of one tile
	// and of a row, the number of tiles, and the number of rows.
	if most, _, _, _ := cpuid(0, 0); most < 0x1D {
		return false
	}
	if palettes, _, _, _ := cpuid(0x1D, 0); palettes < 1 {
		return false
	}
	ax, bx, cx, _ := cpuid(0x1D, 1)
	if ax != 8<<10|1<<26 || bx != tileBytes|8<<16 || cx&0xFFFF != tileRows {
		return false
	}
	below := intKernels[AMX.below()]
	return amxAllowed() && amxKernels.check(func(t *IntTile, rows, cols int, transposed bool) {
		if transposed {
			below.RunTransposed(t, rows, cols)
		} else {
			below.RunQuads(t, rows, cols)
		}
	})
})

// check compares the AMX kernels with plain, which computes what run computes. It uses values of
// the full range, full and partial tiles, and panels on both sides of near. Each process runs it
// once at its start: it takes about 0.2 ms with SIMD kernels as the reference and 25 ms with
// plain Go.
func (l *amxKernelSet) check(plain func(t *IntTile, rows, cols int, transposed bool)) bool {
	far := *l
	far.near = 0
	const rows, segs, most = 128, 2, 40 // the most rows and groups of four of the cases below
	a, b := make([]uint8, rows*segs*4*tileRows), make([]uint8, segs*4*most*amxPanelCols)
	seed := uint32(1)
	for _, v := range [][]uint8{a, b} {
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = uint8(seed >> 24)
		}
	}
	start, none := make([]int32, rows), make([]int32, amxPanelCols)
	for i := range start {
		start[i] = int32(i * i * 1000003)
	}
	got, want := make([]int32, rows*amxPanelCols), make([]int32, rows*amxPanelCols)
	equal := func(rows, cols int) bool {
		for r := range rows {
			if at := r * amxPanelCols; !slices.Equal(got[at:at+cols], want[at:at+cols]) {
				return false
			}
		}
		return true
	}
	for _, s := range [][3]int{{32, 40, 32}, {128, 16, 16}, {83, 17, 32}, {19, 21, 32}, {16, 32, 32}, {40, 21, 12}, {9, 5, 9}, {1, 1, 1}} {
		rows, k, cols := s[0], s[1], s[2]
		t := IntTile{A: unsafe.Pointer(&a[0]), RowA: segs * 4 * k, SegA: 4 * k, K: k, Segs: segs, B: unsafe.Pointer(&b[0]), RowC: 4 * amxPanelCols, Start: &start[0]}
		both := func(t IntTile, cols int, transposed bool) bool {
			for _, kernels := range []*amxKernelSet{l, &far} {
				for i := range rows * amxPanelCols {
					got[i], want[i] = int32(i), int32(i)
				}
				x := t
				x.C = &got[0]
				kernels.run(&x, rows, cols, transposed)
				if x.C = &want[0]; x.Start == nil {
					x.Start = &none[0]
				}
				plain(&x, rows, cols, transposed)
				if !equal(rows, cols) {
					return false
				}
			}
			return true
		}
		for _, more := range []bool{false, true} {
			t.SetContinue(more)
			if !both(t, cols, false) || !both(t, cols, true) {
				return false
			}
		}
		t.SetContinue(false)
		t.SegA, t.K, t.Segs, t.Start = 0, segs*k, 1, nil
		if !both(t, amxPanelCols, false) {
			return false
		}
	}
	return true
}
