package simd

import (
	"slices"
	"sync"
	"unsafe"
)

// Products of fours of 8-bit numbers with the tiles of AMX: registers of up to 16 rows of 64 bytes. A tile of
// activations or weights has 16 rows of 16 fours, one of a panel 16 fours of 16 columns, one of sums
// 16 rows of 16. Panels are those of [VNNI]: a tile takes every other 64 bytes of one.

const (
	tileBytes  = 64  // of a row
	tilesCols  = 32  // of a panel, two tiles
	tilesRows  = 32  // of two tiles
	mostRows   = 192 // of a call: setting tiles up takes as long as two blocks of one step
	fewestRows = 4   // 7 of 16 rows take two thirds of the time of loops of vectors
)

// tileProgram is what one call computes: all steps have as many fours. The assembly knows the places of its fields.
type tileProgram struct {
	config            *[64]byte // sizes of the tiles
	a                 unsafe.Pointer
	rowA, stepA, endA int // bytes to the next row, to the next step, and from the end of a segment to the next one
	b                 unsafe.Pointer
	stepB, endB       int
	steps, segs       int
	c                 *int32
	rowC              int
	start             *int32 // what sums begin with, of each column, or turned of each row; nil for what c has, or nothing: see fresh
	rows              int    // of a block
	n                 int    // blocks left; of several all have as many rows
	// Bytes from block to block, and those that the blocks before have taken.
	moveA, moveC, moveStart int
	doneA, doneC, doneStart int
	doneB                   int
	panels, each            int // panels left, and blocks of each
	// Bytes from the last block of a panel to the first one of the next.
	nextA, nextB, nextC, nextStart int
	fresh                          int // without start sums begin with nothing, not with what c has
	ahead                          unsafe.Pointer
	aheadLines, doneAhead          int // lines of the cache that each step brings near, and bytes that have come

	sizes [64]byte
	block int // rows of a whole block
	// Bytes from the first block of a panel to that of the next, or from that of a line.
	overA, overC, overStart int
}

// tileLoops are the programs for blocks of up to 16 rows and of 32.
type tileLoops struct {
	quads, few, turned, half [2]func(p *tileProgram)
	// Panels of at most near bytes stay in the nearest cache beside the rows and sums of a block: they are read once for each 16 rows
	// with four tiles in use, larger ones for 32 with six. A core has some registers behind the eight names of tiles, for both of its
	// threads: while another guest computes with tiles on the same core, too, four run 1.4 times as fast as six.
	near int
}

var amxLoops = tileLoops{
	quads:  [2]func(p *tileProgram){quads16AMX, quads32AMX},
	few:    [2]func(p *tileProgram){few16AMX, few32AMX},
	turned: [2]func(p *tileProgram){turned16AMX, turned32AMX},
	half:   [2]func(p *tileProgram){half16AMX, half32AMX},
	near:   24 << 10,
}

var tilePrograms = sync.Pool{New: func() any { return new(tileProgram) }}

// run computes what [Ints.RunQuads] does, or [Ints.RunTurned] if turned.
func (l *tileLoops) run(t *IntTile, rows, cols int, turned bool) {
	loops := l.of(cols, turned)
	p := tilePrograms.Get().(*tileProgram)
	p.rowA, p.segs = t.RowA, t.Segs
	l.all(p, t, loops, rows, 1, turned)
	p.give()
}

// of are the programs for so many columns.
func (l *tileLoops) of(cols int, turned bool) *[2]func(p *tileProgram) {
	few := cols <= tilesCols/2
	switch {
	case turned && few:
		return &l.half
	case turned:
		return &l.turned
	case few:
		return &l.few
	}
	return &l.quads
}

// lines computes what [Ints.RunLines] does.
func (l *tileLoops) lines(t *IntTile, rows, cols int, at Lines) {
	p := tilePrograms.Get().(*tileProgram)
	p.rowA, p.segs = t.RowA, t.Segs
	p.overA, p.overC = at.A, rows*t.RowC
	l.all(p, t, l.of(cols, false), rows, at.N, false)
	p.give()
}

// panels computes what [Ints.RunPanels] does.
func (l *tileLoops) panels(t *IntTile, rows, panels int) {
	p := tilePrograms.Get().(*tileProgram)
	p.rowA, p.segs = t.RowA, 1
	if rows%tilesRows == 0 || rows < tilesRows || t.Ahead == nil {
		p.nextB, p.overC, p.overStart = t.PanelB, 4*tilesCols, 4*tilesCols
		l.all(p, t, &l.quads, rows, panels, false)
	} else {
		// The rows of the last block would come to weights that are far once more.
		was := *t
		for i := range panels {
			t.B = unsafe.Add(was.B, i*t.PanelB)
			t.C = (*int32)(unsafe.Add(unsafe.Pointer(was.C), i*4*tilesCols))
			if was.Start != nil {
				t.Start = (*int32)(unsafe.Add(unsafe.Pointer(was.Start), i*4*tilesCols))
			}
			if t.Ahead = nil; i+1 < panels {
				t.Ahead = unsafe.Add(was.Ahead, i*t.PanelB)
			}
			l.all(p, t, &l.quads, rows, 1, false)
		}
		*t = was
	}
	p.give()
}

// give gives the program back.
func (p *tileProgram) give() {
	*p = tileProgram{}
	tilePrograms.Put(p)
}

// all lets program p compute rows rows of panels panels, or of as many lines.
func (l *tileLoops) all(p *tileProgram, t *IntTile, loops *[2]func(p *tileProgram), rows, panels int, turned bool) {
	p.c, p.rowC = t.C, t.RowC
	p.block = tilesRows
	// Of a half of a panel two tiles of rows share each load.
	if loops != &l.half && loops != &l.few && 4*tilesCols*t.K*p.segs <= l.near {
		p.block = tileLines
	}
	whole := rows / p.block
	if steps, _, rest := tileSteps(t.K); t.Ahead != nil && rest == 0 {
		const lines = 4 * tilesCols / cacheLine // of a four
		all := (rows + p.block - 1) / p.block * steps
		p.ahead, p.aheadLines = t.Ahead, (lines*t.K+all-1)/all
	} else {
		p.ahead, p.aheadLines = nil, 0
	}
	if n, size, stride := overlapping(rows, p.block, t); n > 0 {
		p.blocks(t, loops, 0, size, stride, n, panels, turned)
		return
	}
	p.blocks(t, loops, 0, p.block, p.block, whole, panels, turned)
	// The rows of a block have one tile of activations, so that those of two are of one size.
	first, rest := whole*p.block, rows%p.block
	if rest > tileLines {
		p.blocks(t, loops, first, tileLines, 0, 1, panels, turned)
		first, rest = first+tileLines, rest-tileLines
	}
	p.blocks(t, loops, first, rest, 0, 1, panels, turned)
}

// overlapping cuts rows that do not fill whole blocks into n blocks of one size, stride rows apart, some of which are computed twice: that takes less
// time than a call for the last ones. n is 0 where there are no such blocks, or where sums go on from others.
func overlapping(rows, block int, t *IntTile) (n, size, stride int) {
	if _, _, rest := tileSteps(t.K); rest > 0 || t.more != 0 || rows <= block || rows%block == 0 {
		return 0, 0, 0
	}
	n = (rows + block - 1) / block
	stride = (rows - block + n - 2) / (n - 1)
	// Those of two tiles have all of their rows.
	if size = rows - (n-1)*stride; size < stride || size < block && block > tileLines {
		return 0, 0, 0
	}
	return n, size, stride
}

// blocks computes n blocks of rows rows, at most 16 or 32, stride rows apart from row first on, for each of the panels.
func (p *tileProgram) blocks(t *IntTile, loops *[2]func(p *tileProgram), first, rows, stride, n, panels int, turned bool) {
	if rows == 0 || n == 0 {
		return
	}
	loop, start := loops[(rows-1)/tileLines], first*t.RowA
	p.rows, p.moveA, p.moveC, p.moveStart = rows, stride*t.RowA, stride*t.RowC, 0
	p.nextA, p.nextC, p.nextStart = p.overA-n*p.moveA, p.overC-n*p.moveC, p.overStart
	p.fresh = 0
	if p.start = t.Start; t.more != 0 {
		p.start = nil
	} else if p.start == nil {
		p.fresh = 1
	}
	run := func(four, fours, steps int) {
		p.part(t, four, fours, steps)
		p.doneA, p.doneB, p.doneC, p.doneStart = start, 0, first*t.RowC, 0
		p.n, p.each, p.panels = n, n, panels
		if turned {
			p.moveStart, p.doneStart = 4*stride, 4*first
		}
		loop(p)
	}
	steps, fours, rest := tileSteps(t.K)
	p.doneAhead = first / p.block * steps * t.Segs * p.aheadLines * cacheLine
	run(0, fours, steps)
	if rest > 0 {
		p.start, p.fresh = nil, 0
		run(steps*fours, rest, 1)
	}
}

// tileSteps cuts k fours into equal steps, or else into whole ones and one of the rest: sums of integers have no order.
func tileSteps(k int) (steps, fours, rest int) {
	if steps = (k + tileLines - 1) / tileLines; k%steps == 0 {
		return steps, k / steps, 0
	}
	return k / tileLines, tileLines, k % tileLines
}

// worth tells whether tiles take less time than products of the set below, in cycles of a processor that has both: those multiply a
// four of 32 rows and columns in 32, tiles take 64 for a step, and some 300 for sums and calls.
func (*tileLoops) worth(k, segs int) bool {
	steps, _, rest := tileSteps(k)
	if rest > 0 {
		steps += 3
	}
	return 32*k*segs > 64*steps*segs+300
}

// peak multiplies the same tile by the same two n times, loading them each time.
func (l *tileLoops) peak(n int) {
	if n <= 0 {
		return
	}
	const line = 4 * tilesCols
	b, c := make([]uint8, tileLines*line), make([]int32, tileLines*tilesCols)
	p := &tileProgram{rows: tileLines, n: 1, each: 1, panels: 1, rowA: tileBytes, segs: 1, c: &c[0], rowC: 4 * tilesCols}
	p.part(&IntTile{A: unsafe.Pointer(&b[0]), B: unsafe.Pointer(&b[0]), K: tileLines}, 0, tileLines, 1)
	p.steps, p.stepA, p.stepB = n, 0, 0
	l.quads[0](p)
}

// part sets steps steps of fours fours, from four first of each segment on.
func (p *tileProgram) part(t *IntTile, first, fours, steps int) {
	const line = 4 * tilesCols // of fours of a panel
	p.a, p.stepA, p.endA = unsafe.Add(t.A, 4*first), 4*fours, t.SegA-4*fours*steps
	p.b, p.stepB, p.endB = unsafe.Add(t.B, line*first), line*fours, line*(t.K-fours*steps)
	p.steps = steps
	p.sizes = [64]byte{0: 1} // the palette
	size := func(tile, rows, bytes int) {
		if rows > 0 {
			p.sizes[16+2*tile], p.sizes[48+tile] = byte(bytes), byte(rows)
		}
	}
	rows := min(p.rows, tileLines)
	for i := range 4 {
		size(i, rows, tileBytes) // sums
	}
	size(4, rows, 4*fours)
	size(5, fours, tileBytes)
	p.config = &p.sizes
}

// withTiles adds the set with tiles to a table: all but products of fours is that of VNNI.
func withTiles(table family[Ints], l *tileLoops) family[Ints] {
	f := *table[VNNI]
	f.Set, f.Rows, f.tiles, f.fewest, f.block = AMX, mostRows, l, fewestRows, tilesRows
	table[AMX] = &f
	return table
}

// tilesWork tells whether the processor has the tiles that the loops know, the system lets the process use them,
// and they compute what the loops of the set below do, which must be there.
var tilesWork = sync.OnceValue(func() bool {
	// Leaf 0x1D: palettes; of the first one the bytes of all tiles, of one, of a row, the number of tiles, and of rows.
	if most, _, _, _ := cpuid(0, 0); most < 0x1D {
		return false
	}
	if palettes, _, _, _ := cpuid(0x1D, 0); palettes < 1 {
		return false
	}
	ax, bx, cx, _ := cpuid(0x1D, 1)
	if ax != 8<<10|1<<26 || bx != tileBytes|8<<16 || cx&0xFFFF != tileLines {
		return false
	}
	below := ints[AMX.below()]
	return tilesAllowed() && amxLoops.check(func(t *IntTile, rows, cols int, turned bool) {
		if turned {
			below.RunTurned(t, rows, cols)
		} else {
			below.RunQuads(t, rows, cols)
		}
	})
})

// check compares products with those of plain, which computes what run does: with numbers of all sizes, for whole tiles and for others, as panels
// that are near and that are not. Each process waits for it at its start: loops in vectors take some 0.2 ms, plain Go 25.
func (l *tileLoops) check(plain func(t *IntTile, rows, cols int, turned bool)) bool {
	far := *l
	far.near = 0
	const rows, segs, most = 128, 2, 40 // the most rows and fours of those below
	a, b := make([]uint8, rows*segs*4*tileLines), make([]uint8, segs*4*most*tilesCols)
	seed := uint32(1)
	for _, v := range [][]uint8{a, b} {
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = uint8(seed >> 24)
		}
	}
	start, none := make([]int32, rows), make([]int32, tilesCols)
	for i := range start {
		start[i] = int32(i * i * 1000003)
	}
	got, want := make([]int32, rows*tilesCols), make([]int32, rows*tilesCols)
	equal := func(rows, cols int) bool {
		for r := range rows {
			if at := r * tilesCols; !slices.Equal(got[at:at+cols], want[at:at+cols]) {
				return false
			}
		}
		return true
	}
	for _, s := range [][3]int{{32, 40, 32}, {128, 16, 16}, {83, 17, 32}, {19, 21, 32}, {16, 32, 32}, {40, 21, 12}, {9, 5, 9}, {1, 1, 1}} {
		rows, k, cols := s[0], s[1], s[2]
		t := IntTile{A: unsafe.Pointer(&a[0]), RowA: segs * 4 * k, SegA: 4 * k, K: k, Segs: segs, B: unsafe.Pointer(&b[0]), RowC: 4 * tilesCols, Start: &start[0]}
		both := func(t IntTile, cols int, turned bool) bool {
			for _, loops := range []*tileLoops{l, &far} {
				for i := range rows * tilesCols {
					got[i], want[i] = int32(i), int32(i)
				}
				x := t
				x.C = &got[0]
				loops.run(&x, rows, cols, turned)
				if x.C = &want[0]; x.Start == nil {
					x.Start = &none[0]
				}
				plain(&x, rows, cols, turned)
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
		if !both(t, tilesCols, false) {
			return false
		}
	}
	return true
}
