package simd

import (
	"sync"
	"unsafe"
)

// Floats holds the kernels of float32 GEMM. Sums add their products in order. The exact kernels
// round each product and each sum separately, which makes them bit-exact to a plain loop. The
// fused kernels round once.
type Floats struct {
	Set Set
	// Rows and Cols are the size of the largest tile. Columns come in panels of Cols. A tile of
	// at most Half columns takes half the time.
	Rows, Cols, Half int
	// fused and exact hold the kernels for tiles of 1 to Rows rows, for up to Cols and up to Half
	// columns. Some instruction sets also have tiles of a quarter and three quarters of Cols.
	fused, exact tileKernels
	// indirect and exactIndirect hold the kernels of RunIndirect; they are empty if absent.
	// exactIndirect has only tiles of full panels, with masks for the columns.
	indirect, exactIndirect tileKernels
	spread                  func(dst *float32, panel int, src *float32, line, n, panels int)
	gather                  func(dst, src *float32, offs *int32, n int, runs *int32, nruns int)
	// fullTiles reports that tiles have all columns of a panel or of half a panel. Tiles with fewer
	// columns use a buffer.
	fullTiles bool
}

// tileKernels holds the kernels of one kind.
type tileKernels struct {
	whole, half []func(t *Tile)
	// Of a quarter and three quarters of the columns; nil if absent.
	tiny, short []func(t *Tile)
	double      []func(t *Tile)                 // of twice the columns, for few rows; nil if absent
	wide        [WideBFloat16 + 1]func(t *Tile) // by the type of b; nil if absent
	// tiles are kernels of several tiles of Rows rows, of up to Cols and up to Half columns, with
	// contiguous rows of a and b; nil if absent.
	tiles [2]func(t *Tile)
}

// PanelType is the type in which the values of a panel are stored.
type PanelType uint8

// The types of panels. Only [Floats.Wide] accepts the 16-bit types.
const (
	WideFloat32 PanelType = iota
	WideFloat16
	WideBFloat16
)

// WidePanels is the number of panels that [Floats.Wide] computes.
const WidePanels = 4

// FloatKernels returns the GEMM kernels of the current instruction set, or nil if only plain Go
// is available. Plain Go kernels have another structure and are part of the callers.
func FloatKernels() *Floats { return floatKernels.pick() }

// Bits of Tile.flags.
const (
	flagContinue   = 1 << iota // sums start from the values in c
	flagAccumulate             // c is added to the complete sums
	flagClamp
	flagMasked
)

// Tile is a tile of a GEMM c = act(a·b [+ c] + bias): a few rows of a by one panel of columns of
// b. Steps are in bytes.
//
// Element k of segment s of row r of a is at A + r*RowA + s*SegA + k*StepA. So rows can be
// packed, adjacent or one below the other, and the taps of a convolution window need no copy. The
// rows of b, one for each k of each segment, are StepB apart. A kernel reads a full row of b,
// including columns outside the tile.
type Tile struct {
	A                 *float32
	RowA, StepA, SegA int
	K, Segs           int // both at least 1
	B                 *float32
	StepB             int
	C                 *float32
	RowC              int
	BiasN             *float32 // one value for each column, or nil
	BiasM             *float32 // one value for each row, or nil
	mask              *int32
	PanelB            int // bytes from one panel to the next, if there are several
	Min, Max          float32
	bits, flags       uint32
	// Offs, for [Floats.RunIndirect], is the offset of the row of each step from B, in values. It
	// replaces StepB.
	Offs *int32
	// Next is memory that later tiles read, or nil. Each step prefetches one cache line, Fetch
	// bytes after the line before. [Floats.Wide] and RunIndirect ignore it.
	Next  unsafe.Pointer
	Fetch int
	// of RunTiles: tiles of a call, and the bytes that earlier tiles used
	tiles, doneA, doneC int
}

// columnMasks yields the mask of n columns at index 16 - n: n ones followed by zeros.
var columnMasks = func() (m [32]int32) {
	for i := range 16 {
		m[i] = -1
	}
	return m
}()

// Start is the way in which sums start and end.
type Start uint8

// FromZero starts sums from zero. Continue starts them from the values in c, which keeps the
// order of one long sum. Accumulate adds c at the end, which is closer to the true sum.
const (
	FromZero Start = iota
	Continue
	Accumulate
)

// SetStart sets the way in which sums start and end.
func (t *Tile) SetStart(s Start) {
	t.flags = t.flags&^(flagContinue|flagAccumulate) | uint32(s)
}

// SetClamp limits the results.
func (t *Tile) SetClamp(on bool, lo, hi float32) {
	t.flags &^= flagClamp
	if on {
		t.flags |= flagClamp
		t.Min, t.Max = lo, hi
	}
}

// Run computes rows rows, 1 to Rows, of width columns, 1 to Cols.
func (f *Floats) Run(t *Tile, rows, width int, exact bool) {
	of := &f.fused
	if exact {
		of = &f.exact
	}
	t.flags &^= flagMasked
	if f.fullTiles && width != f.Cols && width != f.Half {
		f.runBuffered(t, of, rows, width)
		return
	}
	of.run(f, t, rows, width)
}

// Split returns how many tiles, one below the other, [Floats.RunTiles] computes of the next n rows,
// and the height of a tile. The steps of t are set.
func (f *Floats) Split(t *Tile, n int) (rows, tiles int) {
	rows, tiles = f.Rows, n/f.Rows
	if n%f.Rows > 0 && n%f.Rows <= f.Rows/3 {
		tiles-- // two equal tiles are faster than a whole one and a small one
	}
	if tiles < 2 || f.fused.tiles[0] == nil || t.StepA != 4 || t.StepB != 4*f.Cols {
		return Evenly(n, f.Rows), 1
	}
	return rows, tiles
}

// RunTiles is Run for several tiles, as [Floats.Split] returns them. All have the same bias.
func (f *Floats) RunTiles(t *Tile, rows, tiles, width int, exact bool) {
	if tiles == 1 {
		f.Run(t, rows, width, exact)
		return
	}
	of := &f.fused
	if exact {
		of = &f.exact
	}
	t.tiles, t.doneA, t.doneC = tiles, 0, 0
	t.flags &^= flagMasked
	kernel, all := of.tiles[0], f.Cols
	if width <= f.Half {
		kernel, all = of.tiles[1], f.Half
	}
	if width < all {
		t.setMask(width)
	}
	kernel(t)
}

// run computes a tile.
func (of *tileKernels) run(f *Floats, t *Tile, rows, width int) {
	all := f.Taken(width)
	if of.half == nil {
		all = f.Cols
	}
	if width < all {
		t.setMask(width)
	}
	switch all {
	case f.Cols:
		of.whole[rows-1](t)
	case f.Half:
		of.half[rows-1](t)
	case f.Half / 2:
		of.tiny[rows-1](t)
	default:
		of.short[rows-1](t)
	}
}

// Taken returns the number of columns that a tile of width columns computes, at most a panel.
func (f *Floats) Taken(width int) int {
	quarters := f.fused.short != nil
	switch {
	case quarters && width <= f.Half/2:
		return f.Half / 2
	case width <= f.Half:
		return f.Half
	case quarters && width <= f.Half+f.Half/2:
		return f.Half + f.Half/2
	}
	return f.Cols
}

// HasIndirect reports whether [Floats.RunIndirect] is available.
func (f *Floats) HasIndirect() bool { return f != nil && f.indirect.whole != nil }

// RunIndirect is Run for a b whose rows are at the offsets Offs. It computes up to two panels of n
// columns and returns the number of columns that it computed.
func (f *Floats) RunIndirect(t *Tile, rows, n int, exact bool) int {
	of := &f.indirect
	if exact {
		of = &f.exactIndirect
	}
	t.flags &^= flagMasked
	if n >= 2*f.Cols && rows <= len(of.double) {
		of.double[rows-1](t)
		return 2 * f.Cols
	}
	n = min(n, f.Cols)
	of.run(f, t, rows, n)
	return n
}

// tileBuffer holds the results of a tile with fewer columns than its kernel computes, and a bias.
type tileBuffer struct{ c, bias [6 * 16]float32 }

var tileBuffers = sync.Pool{New: func() any { return new(tileBuffer) }}

// runBuffered is Run for a tile with fewer columns than its kernel computes.
func (f *Floats) runBuffered(t *Tile, of *tileKernels, rows, width int) {
	r := tileBuffers.Get().(*tileBuffer)
	c, rowC, bias := t.C, t.RowC, t.BiasN
	line := func(i int) []float32 { return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(c), i*rowC)), width) }
	if t.flags&(flagContinue|flagAccumulate) != 0 {
		for i := range rows {
			copy(r.c[i*f.Cols:], line(i))
		}
	}
	if bias != nil {
		copy(r.bias[:width], unsafe.Slice(bias, width))
		t.BiasN = &r.bias[0]
	}
	t.C, t.RowC = &r.c[0], 4*f.Cols
	if width > f.Half {
		of.whole[rows-1](t)
	} else {
		of.half[rows-1](t)
	}
	for i := range rows {
		copy(line(i), r.c[i*f.Cols:])
	}
	t.C, t.RowC, t.BiasN = c, rowC, bias
	tileBuffers.Put(r)
}

func (t *Tile) setMask(width int) {
	t.flags |= flagMasked
	t.bits = 1<<width - 1
	t.mask = &columnMasks[16-min(width, 16)]
}

// HasNarrow reports whether [Floats.Wide] reads 16-bit values.
func (f *Floats) HasNarrow() bool { return f.fused.wide[WideFloat16] != nil }

// Wide computes one row of WidePanels full panels. b is the type of their values.
func (f *Floats) Wide(t *Tile, exact bool, b PanelType) {
	t.flags &^= flagMasked
	if exact {
		f.exact.wide[b](t)
		return
	}
	f.fused.wide[b](t)
}

// Run is a part of a row of a panel. The columns from To on, up to those of the next Run, are
// adjacent in memory from From on.
type Run struct{ From, To int32 }

// Gather writes a panel of Cols columns, with a row for each of offs: run r of row i is copied
// from src[offs[i]+From] on. Runs are in the order of their columns. For each run Cols values are
// read, and up to Cols values may be written past the panel.
func (f *Floats) Gather(dst, src []float32, offs []int32, runs []Run) {
	if len(offs) == 0 || len(runs) == 0 {
		return
	}
	last := runs[len(runs)-1]
	_ = dst[(len(offs)-1)*f.Cols+int(last.To)+f.Cols-1]
	f.gather(unsafe.SliceData(dst), unsafe.SliceData(src), &offs[0], len(offs), &runs[0].From, len(runs))
}

// Spread writes panels of Cols columns, with a row for each of n lines of src. Lines are line
// values apart.
func (f *Floats) Spread(dst, src []float32, line, n, panels int) {
	if n <= 0 || panels <= 0 {
		return
	}
	_, _ = dst[n*panels*f.Cols-1], src[(n-1)*line+panels*f.Cols-1]
	f.spread(unsafe.SliceData(dst), 4*n*f.Cols, unsafe.SliceData(src), 4*line, n, panels)
}
