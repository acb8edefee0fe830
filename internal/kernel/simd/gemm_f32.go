package simd

import (
	"sync"
	"unsafe"
)

// Floats multiplies matrices of float32. Sums take their products in order; those of
// the exact kind round each product and each sum apart, which gives the bits of a
// plain loop, the fused kind rounds once.
type Floats struct {
	Set Set
	// Rows and Cols are the size of the largest tile; columns come in panels of Cols,
	// of which a tile of at most Half columns takes half the time.
	Rows, Cols, Half int
	// fused and exact are the functions for tiles of 1 to Rows rows, for up to Cols
	// and up to Half columns, and in some sets for a quarter and three quarters of Cols.
	fused, exact tiles
	// placed and exactPlaced are those of Placed, empty in sets without; exactPlaced has tiles of whole panels only, of which
	// masks leave out columns.
	placed, exactPlaced tiles
	spread              func(dst *float32, panel int, src *float32, line, n, panels int)
	gather              func(dst, src *float32, offs *int32, n int, runs *int32, nruns int)
	// bounce says that tiles have all columns of a panel, or of half of one: those that
	// lack some go through a room that has them.
	bounce bool
}

// tiles are the functions of one kind.
type tiles struct {
	whole, half []func(t *Tile)
	tiny, short []func(t *Tile)                 // of a quarter and of three quarters of the columns; nil for none
	double      []func(t *Tile)                 // of twice the columns, for few rows; nil for none
	wide        [WideBFloat16 + 1]func(t *Tile) // by the numbers of b; nil where there is none
}

// Narrow says in how many bits, and which, the numbers of a panel lie in memory.
type Narrow uint8

// Panels are of float32 but for [Floats.Wide].
const (
	WideFloat32 Narrow = iota
	WideFloat16
	WideBFloat16
)

// WidePanels is the number of panels that [Floats.Wide] takes.
const WidePanels = 4

// FloatKernels of products in the current set; nil where plain Go is all there is: its
// loops are built otherwise and stay with their callers.
func FloatKernels() *Floats { return floats.pick() }

// Bits of Tile.Flags.
const (
	flagContinue   = 1 << iota // sums begin with what c holds
	flagAccumulate             // c is added to the finished sums
	flagClamp
	flagMasked
)

// Tile is a piece of a product of matrices, c = act(a·b [+ c] + bias): a few rows of a
// by one panel of columns of b. Steps are in bytes.
//
// Element k of segment s of row r of a lies at A + r*RowA + s*SegA + k*StepA, so that
// rows may lie packed, side by side or under each other, and the taps of a window need
// no copy. Of b the rows, one for each k of each segment, lie StepB apart; a row is
// read for all columns of a tile, the missing ones too.
type Tile struct {
	A                 *float32
	RowA, StepA, SegA int
	K, Segs           int // both at least 1
	B                 *float32
	StepB             int
	C                 *float32
	RowC              int
	BiasN             *float32 // one value for each column; nil for none
	BiasM             *float32 // one value for each row; nil for none
	mask              *int32
	PanelB            int // from one panel to the next, for several
	Min, Max          float32
	bits, flags       uint32
	Offs              *int32 // of [Floats.Placed]: where the row of each step lies from B on, in values; StepB is not used
	// Next is memory that later tiles read: one line of it, Fetch bytes further each step, is brought near. Nil for none;
	// of [Floats.Wide] and Placed it is not looked at.
	Next  unsafe.Pointer
	Fetch int
}

// masks begin with as many ones as there are columns, from the place 16 - columns on.
var masks = func() (m [32]int32) {
	for i := range 16 {
		m[i] = -1
	}
	return m
}()

// Start says how sums begin and end.
type Start uint8

// Sums begin with zero; go on from what c holds, which keeps the order of one long sum;
// or have c added at the end, which is closer to the true sum.
const (
	FromZero Start = iota
	Continue
	Accumulate
)

// SetStart says how sums begin.
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
	if f.bounce && width != f.Cols && width != f.Half {
		f.bounced(t, of, rows, width)
		return
	}
	of.run(f, t, rows, width)
}

// run computes a tile.
func (of *tiles) run(f *Floats, t *Tile, rows, width int) {
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

// Taken is the number of columns that are computed for so many, a panel's at most.
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

// HasPlaced tells whether the set has [Floats.Placed].
func (f *Floats) HasPlaced() bool { return f != nil && f.placed.whole != nil }

// Placed is Run of a b whose rows lie where Offs says. It computes as many of n columns as go together, up to
// two panels of them, and returns their number.
func (f *Floats) Placed(t *Tile, rows, n int, exact bool) int {
	of := &f.placed
	if exact {
		of = &f.exactPlaced
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

// bounceRoom holds the results of a tile of the set that needs it, and a bias.
type bounceRoom struct{ c, bias [6 * 16]float32 }

var bounceRooms = sync.Pool{New: func() any { return new(bounceRoom) }}

// bounced is Run of a tile that lacks columns.
func (f *Floats) bounced(t *Tile, of *tiles, rows, width int) {
	r := bounceRooms.Get().(*bounceRoom)
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
	bounceRooms.Put(r)
}

func (t *Tile) setMask(width int) {
	t.flags |= flagMasked
	t.bits = 1<<width - 1
	t.mask = &masks[16-min(width, 16)]
}

// HasNarrow tells whether [Floats.Wide] reads 16-bit numbers.
func (f *Floats) HasNarrow() bool { return f.fused.wide[WideFloat16] != nil }

// Wide computes one row of WidePanels whole panels, whose numbers b says.
func (f *Floats) Wide(t *Tile, exact bool, b Narrow) {
	t.flags &^= flagMasked
	if exact {
		f.exact.wide[b](t)
		return
	}
	f.fused.wide[b](t)
}

// Run is a piece of a panel's row: the columns from To on, up to those of the next run,
// are neighbours in memory from From on.
type Run struct{ From, To int32 }

// Gather writes a panel of Cols columns, a row for each of offs: run r of row i is
// copied from src[offs[i]+From] on. Runs are in the order of their columns. Cols values
// are read for each run, and as many may be written behind the panel.
func (f *Floats) Gather(dst, src []float32, offs []int32, runs []Run) {
	if len(offs) == 0 || len(runs) == 0 {
		return
	}
	last := runs[len(runs)-1]
	_ = dst[(len(offs)-1)*f.Cols+int(last.To)+f.Cols-1]
	f.gather(unsafe.SliceData(dst), unsafe.SliceData(src), &offs[0], len(offs), &runs[0].From, len(runs))
}

// Spread writes panels of Cols columns, a row for each of n lines of src, which lie line
// values apart.
func (f *Floats) Spread(dst, src []float32, line, n, panels int) {
	if n <= 0 || panels <= 0 {
		return
	}
	_, _ = dst[n*panels*f.Cols-1], src[(n-1)*line+panels*f.Cols-1]
	f.spread(unsafe.SliceData(dst), 4*n*f.Cols, unsafe.SliceData(src), 4*line, n, panels)
}
