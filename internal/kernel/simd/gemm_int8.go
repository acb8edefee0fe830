package simd

import (
	"cmp"
	"encoding/binary"
	"math"
	"unsafe"
)

// Ints holds the kernels of int8 GEMM. Sums are int32 and exact.
//
// Left-hand values are widened to 16 bits, as differences to their zero point. One step
// multiplies two neighbours along the sum and adds the products. Some instruction sets have 4-way
// dot products of 8-bit values: signed weights by unsigned activations, or by signed activations.
type Ints struct {
	Set Set
	// Signed reports that activations of 4-way dot products are signed. QuadPairs reports that
	// panels hold two groups of four side by side; see [Ints.QuadIndex].
	Signed, QuadPairs bool
	// Rows and Cols are the size of the largest tile. Columns come in panels of Cols.
	Rows, Cols int
	// loops reports that kernels of Rows rows compute several tiles in a call.
	loops bool
	// Lanes is the number of channels that Requantise processes at a time. Step is the number of
	// values that Widen processes at a time.
	Lanes, Step  int
	narrow, wide []func(t *IntTile)
	narrowHalf   []func(t *IntTile) // nil if absent
	widenInt8    func(dst *int16, src *byte, n int, zero int16)
	widenUint8   func(dst *int16, src *byte, n int, zero int16)
	gather       func(dst, src *int16, offs *int32, n int, runs *int32, nruns int)
	// Kernels of 4-way dot products; nil if the instruction set has no such instructions.
	quads, few, transposed, half []func(t *IntTile)
	// ordered is non-nil if quads saturate; see [Ints.Saturates].
	ordered []func(t *IntTile)
	// Kernels of [PairWindow], present with ordered.
	splitPairs func(w *PairWindow, src *int8, quads int)
	joinPairs  func(dst *int8, w *PairWindow, places *uint8, quads int)
	quadsWide  func(t *IntTile) // nil if absent
	groups     *[groupKinds][]func(t *GroupTile)
	requant    *requantKernelSet
	// matrixTiles replaces quads and transposed for at least minTileRows rows; nil without matrix
	// tiles (AMX).
	matrixTiles                matrixTiles
	minTileRows, tileBlockRows int // rows of two tiles, which share columns
	gatherQuads                func(dst, src *byte, offs *int32, n int, runs *int32, nruns int)
	// The following kernels are nil if absent. interleave is for 32 columns.
	interleave func(dst, src *byte, step, n int, zero uint32)
	reach      func(src *byte, rows, k int, flip, from uint32, mask *byte, above, below *int32)
	lookup     func(dst, src *byte, n int, table *byte)
	// lookupAnyLength reports that lookup takes any number of bytes, not only multiples of 64.
	lookupAnyLength bool
	copyBytes       [2]func(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, flip int16)
	// For unsigned and for signed values.
	widenLines [2][2]func(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16)
	// For [Scales.Small], by rounding; nil if absent.
	requantiseSmall [roundings]*smallRequantKernels
	// For [Scales.Small] and any number of channels, in place of requantiseSmall; nil if absent.
	requantiseSmallAny func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)
	// For channels with fused scales, in place of requantiseSmall; nil if absent.
	requantiseFused func(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales, adds, bias *int32, lo, hi, sign int32)
	// Kernels for full registers of channels. requantiseFew is for registers of minLanes. The
	// other kernels of this group are nil if absent.
	requantise16              func(dst *int16, stepDst int, sums *int32, stepSums, rows, n, parts, low, stepParts int, scales *int64, zero, lo, hi int32)
	requantiseHalves          func(dst *int16, stepDst int, sums *float32, stepSums, rows, n, stepParts int, scales *int64, zero, lo, hi int32)
	splitBytes                func(upper, lower, src *int16, n int)
	weave                     func(dst *int16, cols int, src *int16, step, n, pairs int)
	lostBits                  func(src *int16, n int) uint32
	splitFloats               func(upper, lower *float32, src *int16, n int)
	requantise, requantiseFew func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, mul, up, down, bias *int32, zero, lo, hi int32)
}

// IntKernels returns the int8 kernels of the current instruction set, or nil if only plain Go is
// available.
func IntKernels() *Ints { return intKernels.pick() }

// IntTile is a tile of an integer GEMM c = a·b: a few rows of a by one panel of b. Steps are in
// bytes. Pair k of segment s of row r of a is at A + r*RowA + s*SegA + 4*k. The panel b holds
// Cols pairs of values for each pair of each segment.
//
// [Ints.RunQuads] and [Ints.RunTransposed] use groups of four 8-bit values in place of pairs of
// 16-bit values. Their sums start from Start.
type IntTile struct {
	A          unsafe.Pointer
	RowA, SegA int
	K, Segs    int // pairs in a segment, segments; both at least 1
	B          unsafe.Pointer
	C          *int32
	RowC       int
	more       int    // 1: sums continue from c; 2: from c plus Start
	Start      *int32 // initial sums of 4-way dot products: one for each column or row
	PanelB     int    // bytes from one panel to the next, if there are several
	// Ahead points to the data that AMX kernels prefetch meanwhile, as many bytes as a panel has.
	// It is the next panel if weights come from memory or from distant caches, else nil.
	Ahead unsafe.Pointer
	// Order is for [Ints.RunOrdered].
	Order *uint8
	below int // further tiles below this one, for kernels with loops
}

// SetContinue sets whether sums continue from the values in c.
func (t *IntTile) SetContinue(on bool) {
	t.more = 0
	if on {
		t.more = 1
	}
}

// Run computes rows rows of a panel, at least cols columns. If wide is set, b holds 16-bit
// values, else 8-bit values.
func (f *Ints) Run(t *IntTile, rows, cols int, wide bool) {
	kernels := f.narrow
	switch {
	case wide:
		kernels = f.wide
	case 2*cols <= f.Cols && f.narrowHalf != nil:
		kernels = f.narrowHalf
	}
	f.inRows(t, rows, kernels, 0)
}

// inRows is [IntTile.inRows], with few calls if kernels compute several tiles.
func (f *Ints) inRows(t *IntTile, rows int, kernels []func(t *IntTile), start int) {
	most := len(kernels)
	whole := rows / most
	if rest := rows % most; rest > 0 && rest < most-1 {
		whole-- // the last two are alike
	}
	if !f.loops || most < f.Rows || whole < 2 {
		t.inRows(rows, kernels, start)
		return
	}
	a, c := t.A, t.C
	t.below = whole - 1
	kernels[most-1](t)
	if t.A, t.C = a, c; rows > whole*most {
		from := t.Start
		t.nextRows(whole*most, start)
		t.inRows(rows-whole*most, kernels, start)
		t.A, t.C, t.Start = a, c, from
	}
}

// inRows computes any number of rows in chunks for which a kernel exists. The initial sums of the
// next row are start bytes further.
func (t *IntTile) inRows(rows int, kernels []func(t *IntTile), start int) {
	if rows <= len(kernels) {
		kernels[rows-1](t)
		return
	}
	// The instruction set has larger tiles for 4-way dot products.
	a, c, from := t.A, t.C, t.Start
	for rows > 0 {
		n := Evenly(rows, len(kernels))
		kernels[n-1](t)
		if rows -= n; rows > 0 {
			t.nextRows(n, start)
		}
	}
	t.A, t.C, t.Start = a, c, from
}

// nextRows advances the tile by n rows.
func (t *IntTile) nextRows(n, start int) {
	t.A, t.C = unsafe.Add(t.A, n*t.RowA), (*int32)(unsafe.Add(unsafe.Pointer(t.C), n*t.RowC))
	if start != 0 && t.Start != nil { // continued sums have no Start
		t.Start = (*int32)(unsafe.Add(unsafe.Pointer(t.Start), n*start))
	}
}

// Part returns the number of rows to compute next, given the remaining rows. It is an equal part
// of at most Rows rows or, with matrix tiles, as many rows as fill the tiles.
func (f *Ints) Part(left int) int {
	if f.matrixTiles != nil {
		return min(left, f.Rows)
	}
	return Evenly(left, f.Rows)
}

// PartOfOne is [Ints.Part] for rows that need one call each: all rows if kernels compute several
// tiles.
func (f *Ints) PartOfOne(left int) int {
	if f.loops {
		return left
	}
	return f.Part(left)
}

// CutRows returns the multiple of rows at which work is split. A call may compute more rows, but
// not faster.
func (f *Ints) CutRows() int { return cmp.Or(f.tileBlockRows, f.Rows) }

// Evenly returns the size of the next chunk of n. Chunks have at most most elements and are as
// equal as possible, because small tiles use the processor poorly.
func Evenly(n, most int) int {
	pieces := (n + most - 1) / most
	return (n + pieces - 1) / pieces
}

// Quads reports whether 4-way dot products of 8-bit values are available.
func (f *Ints) Quads() bool { return f.quads != nil }

// Saturates reports whether 4-way dot products add the products of two neighbours with saturation
// to 16 bits. Sums are exact if of two neighbouring weights those of one sign add up to at most
// [MaxPair].
func (f *Ints) Saturates() bool { return f.ordered != nil }

// MaxPair times the largest activation, 255, fits 16 bits.
const MaxPair = 128

// OrderWindow is the number of activations that [Ints.RunOrdered] reorders together.
const OrderWindow = 16

// OrderBytes is the size of the order of a group of four.
const OrderBytes = 4

// RunOrdered is RunQuads for reordered weights. It takes the activations of a segment in windows of
// OrderWindow, the last of which ends with the segment and may overlap the one before. At Order
// each group of four of the panel has OrderBytes bytes: the places of its four activations in the
// window. A segment has at least OrderWindow activations.
func (f *Ints) RunOrdered(t *IntTile, rows int) { f.inRows(t, rows, f.ordered, 0) }

// PairWindow holds the weights of up to [OrderWindow] steps of a panel of [PairColumns] columns.
type PairWindow struct {
	Steps [OrderWindow][PairColumns]int8
	// Sizes has the sizes of the positive weights of a step, then those of the negative ones, at
	// most 127: a byte for each column.
	Sizes [OrderWindow][2 * PairColumns / 8]uint64
	Large [OrderWindow]uint8 // number of sizes from 64
}

// PairColumns is the number of columns of panels that saturate.
const PairColumns = 16

// SplitPairs reads the groups of four of a window.
func (f *Ints) SplitPairs(w *PairWindow, panel []int8) {
	f.splitPairs(w, &panel[0], len(panel)/(4*PairColumns))
}

// JoinPairs writes the groups of four of a window with its steps at places.
func (f *Ints) JoinPairs(panel []int8, w *PairWindow, places *[OrderWindow]uint8) {
	f.joinPairs(&panel[0], w, &places[0], len(panel)/(4*PairColumns))
}

// Transposes reports whether [Ints.RunTransposed] is available.
func (f *Ints) Transposes() bool { return f.transposed != nil }

// QuadIndex returns the index of step i of column j in a panel of n groups of four steps. The
// groups of all columns follow each other. With QuadPairs, two consecutive groups of a column are
// neighbours; the last group of an odd number is separate.
func (f *Ints) QuadIndex(n, i, j int) int {
	q := i / 4
	if f.QuadPairs && q|1 < n {
		return 4*(q&^1)*f.Cols + 8*j + i%8
	}
	return 4*(q*f.Cols+j) + i%4
}

// Interleave writes n groups of four of all columns of a panel, in the layout without
// [Ints.QuadPairs]. It subtracts zero from each value. In src the values of all columns for one
// step are neighbours, and steps are step bytes apart. It returns false if the instruction set
// has no kernel for this.
func (f *Ints) Interleave(dst []int8, src []uint8, step, n int, zero uint8) bool {
	if f.interleave == nil || n == 0 {
		return false
	}
	_, _ = dst[n*4*f.Cols-1], src[(4*n-1)*step+f.Cols-1]
	f.interleave((*byte)(unsafe.Pointer(&dst[0])), &src[0], step, n, uint32(zero))
	return true
}

// reachBytes is the number of bytes that one step of the reach kernel reads.
const reachBytes = 32

// tailMasks holds, from entry reachBytes-n on, n bytes of ones. Zeros fill the rest of the
// vector.
var tailMasks = func() (m [2 * reachBytes]uint8) {
	for i := range reachBytes {
		m[i] = 0xFF
	}
	return m
}()

// AddDeviations adds up how far the k bytes of each row of v are above and below from. It adds
// these differences to above and below. Each byte is XORed with flip first. f may be nil.
func (f *Ints) AddDeviations(v []uint8, k int, flip, from uint8, above, below []int32) {
	done := 0
	// Vectors read past the end of a row, but not past the end of v.
	if over := (k + reachBytes - 1) / reachBytes * reachBytes; f != nil && f.reach != nil && k > 0 && len(v) >= over {
		done = min((len(v)-over)/k+1, len(v)/k)
		_, _ = above[done-1], below[done-1]
		f.reach(&v[0], done, k, uint32(flip), uint32(from), &tailMasks[reachBytes-k%reachBytes], &above[0], &below[0])
	}
	for r := done; (r+1)*k <= len(v) && k > 0; r++ {
		for _, x := range v[r*k:][:k] {
			d := int32(x^flip) - int32(from)
			above[r] += max(d, 0)
			below[r] += max(-d, 0)
		}
	}
}

// RunQuads computes rows rows of a panel with 4-way dot products: a holds activations, b signed
// weights. Start has one value for each column. At least cols columns are computed.
func (f *Ints) RunQuads(t *IntTile, rows, cols int) {
	switch {
	case f.usesTiles(t, rows):
		f.matrixTiles.run(t, rows, cols, false)
	case 2*cols <= f.Cols && f.few != nil:
		f.inRows(t, rows, f.few, 0)
	default:
		f.inRows(t, rows, f.quads, 0)
	}
}

// usesTiles reports whether matrix tiles compute this number of rows faster.
func (f *Ints) usesTiles(t *IntTile, rows int) bool {
	return rows >= f.minTileRows && f.Tiled(t.K, t.Segs)
}

// Lines describes N groups of rows that are A bytes apart in a. Their results follow each other.
type Lines struct{ N, A int }

// RunLines is RunQuads for several lines of rows rows. It requires that [Ints.RunsPanels] returns
// true.
func (f *Ints) RunLines(t *IntTile, rows, cols int, l Lines) { f.matrixTiles.lines(t, rows, cols, l) }

// Tiled reports whether matrix tiles compute products of many rows with k groups of four in each
// of segs segments.
func (f *Ints) Tiled(k, segs int) bool { return f.matrixTiles != nil && f.matrixTiles.faster(k, segs) }

// tileRows is the number of rows of a matrix tile, and of the groups of four in a row.
const tileRows = 16

// TilesOfRows returns the number of matrix tiles that hold rows rows. The last one may be partly
// filled.
func TilesOfRows(rows int) int { return (rows + tileRows - 1) / tileRows }

// matrixTiles is implemented by kernels that use registers for matrix tiles.
type matrixTiles interface {
	run(t *IntTile, rows, cols int, transposed bool)
	lines(t *IntTile, rows, cols int, l Lines)
	panels(t *IntTile, rows, panels int)
	faster(k, segs int) bool
}

// RunsPanels reports whether RunPanels and RunLines accept this number of rows.
func (f *Ints) RunsPanels(t *IntTile, rows int) bool { return f.usesTiles(t, rows) }

// RunPanels is RunQuads for panels full panels without segments. Panels are PanelB bytes apart,
// and their results are neighbours. It requires that [Ints.RunsPanels] returns true.
func (f *Ints) RunPanels(t *IntTile, rows, panels int) { f.matrixTiles.panels(t, rows, panels) }

// HasWideQuads reports whether [Ints.WideQuads] is available.
func (f *Ints) HasWideQuads() bool { return f.quadsWide != nil }

// WideQuads computes one row of one segment of [WidePanels] full panels, as RunQuads does. The
// results of the panels are neighbours.
func (f *Ints) WideQuads(t *IntTile) { f.quadsWide(t) }

// RunTransposed is RunQuads with weights in a and activations in b. Start has one value for each
// row. At least cols columns of the panel are computed.
func (f *Ints) RunTransposed(t *IntTile, rows, cols int) {
	switch {
	case f.usesTiles(t, rows):
		f.matrixTiles.run(t, rows, cols, true)
	case 2*cols <= f.Cols:
		t.inRows(rows, f.half, 4)
	default:
		t.inRows(rows, f.transposed, 4)
	}
}

// GatherQuads is Gather for groups of four 8-bit values, a row for each four entries of offs, in
// the layout of [Ints.QuadIndex]. It may write up to two rows past the end.
func (f *Ints) GatherQuads(dst, src []uint8, offs []int32, runs []Run) {
	if len(offs) == 0 || len(runs) == 0 {
		return
	}
	last := int(runs[len(runs)-1].To)
	if f.QuadPairs {
		last *= 2
	}
	_ = dst[(len(offs)/4*f.Cols+last)*4-1]
	f.gatherQuads(unsafe.SliceData(dst), unsafe.SliceData(src), &offs[0], len(offs)/4, &runs[0].From, len(runs))
}

// LooksUp reports whether [Ints.Lookup] has a SIMD kernel.
func (f *Ints) LooksUp() bool { return f.lookup != nil }

// Lookup replaces bytes by their entries in a table. It returns the number of bytes written; the
// caller computes the rest.
func (f *Ints) Lookup(dst, src []uint8, table *[256]uint8) int {
	n := len(dst)
	if !f.lookupAnyLength {
		n = n / 64 * 64
	}
	if f.lookup == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	f.lookup(&dst[0], &src[0], n, &table[0])
	return n
}

// CopyBytes copies lines of n bytes and, if flipHigh is set, flips the highest bit of each byte.
// Lines of dst are stepDst bytes apart, lines of src stepSrc bytes, and neighbours in a line of
// src each bytes. It returns false if the instruction set or the value of each is not supported.
func (f *Ints) CopyBytes(dst []uint8, stepDst int, src []uint8, stepSrc, each, n, lines int, flipHigh bool) bool {
	if f.copyBytes[0] == nil || each > 2 {
		return false
	}
	if n <= 0 || lines <= 0 {
		return true
	}
	_, _ = dst[(lines-1)*stepDst+n-1], src[(lines-1)*stepSrc+(n-1)*each]
	flip := int16(0)
	if flipHigh {
		flip = 0x80
		if each == 1 {
			flip = -0x7f80 // both bytes
		}
	}
	in, out := lastMasks(n, each, 64/each)
	f.copyBytes[each-1](&dst[0], stepDst, &src[0], stepSrc, n, lines, in, out, flip)
	return true
}

// WidenLines is Widen for lines, with the steps of CopyBytes.
func (f *Ints) WidenLines(dst []int16, stepDst int, src []uint8, stepSrc, each, n, lines int, signed bool, zero int16) bool {
	if f.widenLines[0][0] == nil || each > 2 {
		return false
	}
	if n <= 0 || lines <= 0 {
		return true
	}
	_, _ = dst[(lines-1)*stepDst+n-1], src[(lines-1)*stepSrc+(n-1)*each]
	in, out := lastMasks(n, each, 32)
	f.widenLines[boolIndex(signed)][each-1](&dst[0], 2*stepDst, &src[0], stepSrc, n, lines, in, out, zero)
	return true
}

// lastMasks returns the masks of the last register for n values: a bit for each byte that it
// reads, and a bit for each value that it writes.
func lastMasks(n, each, values int) (in, out uint64) {
	rest := (n-1)%values + 1
	return 1<<(rest*each-each+1) - 1, 1<<rest - 1
}

// QuadInput converts 8-bit values, signed or not, to the type of activations of 4-way dot products.
// If f.Signed is false, it adds 128 to signed values; else it subtracts 128 from unsigned values.
func (f *Ints) QuadInput(dst, src []uint8, signed bool) {
	dst = dst[:len(src)]
	if signed == f.Signed {
		copy(dst, src)
		return
	}
	if f.CopyBytes(dst, 0, src, 0, 1, len(src), 1, true) {
		return
	}
	done := ElementKernels().XorBytes(dst, src, 0x80)
	dst, src = dst[done:], src[done:]
	const flip = 0x8080808080808080
	for len(src) >= 8 && len(dst) >= 8 {
		binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(src)^flip)
		dst, src = dst[8:], src[8:]
	}
	for i, v := range src {
		dst[i] = v ^ 0x80
	}
}

// QuadInputZero returns the zero point of values that [Ints.QuadInput] converted.
func (f *Ints) QuadInputZero(signed bool, zero int32) int32 {
	switch {
	case signed == f.Signed:
		return zero
	case signed:
		return zero + 128
	}
	return zero - 128
}

// Widen writes the differences of the 8-bit values src, signed or not, to a zero point.
func (f *Ints) Widen(dst []int16, src []uint8, signed bool, zero int16) {
	dst = dst[:len(src)]
	n := len(src) / f.Step * f.Step
	switch {
	case n == 0:
	case signed:
		f.widenInt8(&dst[0], &src[0], n, zero)
	default:
		f.widenUint8(&dst[0], &src[0], n, zero)
	}
	for i, v := range src[n:] {
		dst[n+i] = int16(v) - zero
		if signed {
			dst[n+i] = int16(int8(v)) - zero
		}
	}
}

// Gather writes a panel of Cols columns of pairs, a row for each two entries of offs; see
// [Floats.Gather].
func (f *Ints) Gather(dst, src []int16, offs []int32, runs []Run) {
	if len(offs) == 0 || len(runs) == 0 {
		return
	}
	last := runs[len(runs)-1]
	_ = dst[((len(offs)/2-1)*f.Cols+int(last.To)+f.Cols)*2-1]
	f.gather(unsafe.SliceData(dst), unsafe.SliceData(src), &offs[0], len(offs)/2, &runs[0].From, len(runs))
}

// Scales holds the parameters of channels for Requantise: the multiplier, its shifts to the left
// and to the right, and the bias. The arrays are padded to a multiple of Lanes.
type Scales struct {
	Mul, Up, Down, Bias []int32
	// Small reports that all multipliers are at least 2^30, that all shifts go to the right by 1
	// to 20, and that the magnitude of every sum with its bias is at most 2^30. In this case
	// Twice holds the lower 32 bits of twice the multipliers, and Half holds 2^Down / 2.
	Small       bool
	Twice, Half []int32
	// Near is Small for shifts from 1 to the left to 20 to the right. Doubles reports that some go
	// to the left.
	Near, Doubles bool
	// Fused holds the parameters of channels that have fused scales.
	Fused FusedScales
}

// Scales16 holds the parameters of channels for Requantise16, in blocks of eight channels, padded
// to a multiple of 16. Each block holds the biases, the multipliers, half of the divisors
// 2^shift, and the shifts to the right, 1 to 63.
type Scales16 []int64

// NewScales16 allocates parameters for n channels.
func NewScales16(n int) Scales16 { return make(Scales16, 4*((n+15)/16*16)) }

// Set sets the parameters of channel i.
func (s Scales16) Set(i int, bias, mul int64, down int) {
	b := s[i/8*32+i%8:]
	b[0], b[8], b[16], b[24] = bias, mul, 1<<(down-1), int64(down)
}

// Requantise16 converts rows of sums to 16-bit values. Channel i becomes ((sum + bias)·mul +
// half) / 2^down, of which the lower 32 bits count, plus zero, limited to lo and hi.
//
// A sum is the sum of its parts, which are stepParts apart. If low is at least 1 and less than
// parts, the parts before the last low count 256 times. n channels are written for each row; n is
// rounded up to a multiple of 16 for reading. The scales start at channel at, a multiple of 16.
// It returns false, and does nothing, if the instruction set has no kernel for this.
func (f *Ints) Requantise16(dst []int16, stepDst int, sums []int32, stepSums, rows, n, parts, low, stepParts int, s Scales16, at int, zero, lo, hi int32) bool {
	if f == nil || f.requantise16 == nil {
		return false
	}
	if rows > 0 && n > 0 {
		last := (n+15)/16*16 - 1
		_, _, _ = s[4*(at+last)+3], dst[(rows-1)*stepDst+n-1], sums[(parts-1)*stepParts+(rows-1)*stepSums+last]
		f.requantise16(&dst[0], 2*stepDst, &sums[0], 4*stepSums, rows, n, parts, low, 4*stepParts, &s[4*at], zero, lo, hi)
	}
	return true
}

// RequantiseFloats is Requantise16 for integer sums in float32, in rows of n: 256 times the first
// part plus the second part. It reads up to 15 more values of the second part.
func (f *Ints) RequantiseFloats(dst []int16, sums []float32, rows, n, stepParts int, s Scales16, zero, lo, hi int32) bool {
	if f == nil || f.requantiseHalves == nil {
		return false
	}
	if rows > 0 && n > 0 {
		whole := (n + 15) / 16 * 16
		_, _, _ = s[4*whole-1], dst[rows*n-1], sums[stepParts+(rows-1)*n+whole-1]
		f.requantiseHalves(&dst[0], 2*n, &sums[0], 4*n, rows, n, 4*stepParts, &s[0], zero, lo, hi)
	}
	return true
}

// SplitFloats splits values into their upper 8 bits, with the sign, and their lower 8 bits, as
// float32. It returns false, and does nothing, if the instruction set has no kernel for this.
func (f *Ints) SplitFloats(upper, lower []float32, src []int16) bool {
	if f == nil || f.splitFloats == nil {
		return false
	}
	upper, lower = upper[:len(src)], lower[:len(src)]
	n := len(src) / 8 * 8
	if n > 0 {
		f.splitFloats(&upper[0], &lower[0], &src[0], n)
	}
	for i, v := range src[n:] {
		upper[n+i], lower[n+i] = float32(v>>8), float32(v&255)
	}
	return true
}

// SplitBytes is SplitFloats with int16 results. It works with every instruction set.
func (f *Ints) SplitBytes(upper, lower, src []int16) {
	n := len(src)
	if upper, lower = upper[:n], lower[:n]; n > 0 && f.splitBytes != nil {
		f.splitBytes(&upper[0], &lower[0], &src[0], n)
		return
	}
	for i, v := range src {
		upper[i], lower[i] = v>>8, v&255
	}
}

// InterleavePairs interleaves pairs of lines of n 16-bit values, step values apart. A panel has a
// line of Cols such pairs; the pairs from n on are 0. It returns false, and does nothing, if the
// instruction set has no kernel for this.
func (f *Ints) InterleavePairs(dst, src []int16, step, n, pairs int) bool {
	if f == nil || f.weave == nil || f.Cols%16 != 0 {
		return false
	}
	if n > 0 && pairs > 0 {
		_, _ = dst[2*pairs*f.Cols-1], src[(2*pairs-1)*step+n-1]
		f.weave(&dst[0], f.Cols, &src[0], 2*step, n, pairs)
	}
	return true
}

// Fit8 reports whether all values fit int8.
func (f *Ints) Fit8(v []int16) bool {
	if f != nil && f.lostBits != nil && len(v) > 0 {
		return f.lostBits(&v[0], len(v)) == 0
	}
	lost := int16(0)
	for _, x := range v {
		lost |= x ^ int16(int8(x))
	}
	return lost == 0
}

// smallRequantKernels holds the kernels for [Scales.Small]: for blocks of 64 and of 32 channels,
// and for up to 64, 32 and 16 channels.
type smallRequantKernels struct {
	whole64, whole32, last64, last32, last16 func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)
}

// Requantise converts rows of sums to 8-bit values. Channel i becomes round((sum + bias) << up ·
// mul / 2^31 / 2^down) + zero, limited to lo and hi. It rounds as TFLite does: the product to the
// nearest, ties up; the shift to the nearest, ties away from zero.
//
// n channels are written for each row. The scales start at channel at. It returns false, and does
// nothing, if n is less than the number of channels of the smallest register.
func (f *Ints) Requantise(dst []uint8, stepDst int, sums []int32, stepSums, rows, n int, s *Scales, at int, zero, lo, hi int32) bool {
	if s.Small && f.requantiseSmall[0] != nil && rows > 0 && n > 0 && EightBits(zero, lo, hi) {
		f.requantiseScaled(dst, stepDst, sums, stepSums, rows, n, s, at, zero, lo, hi)
		return true
	}
	small := s.Small && f.requantiseSmallAny != nil && rows > 0 && n > 0 && EightBits(zero, lo, hi)
	if f.requantiseFused != nil && s.Fused.Add != nil && lo >= zero && rows > 0 && n > 0 && EightBits(zero, lo, hi) {
		done := f.requantiseAsFused(dst, stepDst, sums, stepSums, rows, n, s, at, lo, hi)
		if done == n {
			return true
		}
		if n-done < f.Lanes && !small {
			done = max(0, n-f.Lanes) // a full register is left
		}
		dst, sums, at, n = dst[done:], sums[done:], at+done, n-done
	}
	if small {
		_, _, _, _ = s.Twice[at+n-1], s.Down[at+n-1], s.Bias[at+n-1], s.Half[at+n-1]
		_, _ = dst[(rows-1)*stepDst+n-1], sums[(rows-1)*stepSums+n-1]
		sign := signOf(hi)
		f.requantiseSmallAny(&dst[0], stepDst, &sums[0], 4*stepSums, rows, n, &s.Twice[at], &s.Down[at], &s.Bias[at], &s.Half[at], zero+sign, lo+sign, hi+sign, sign)
		return true
	}
	lanes, kernel := f.Lanes, f.requantise
	if n < lanes {
		lanes, kernel = minLanes, f.requantiseFew
	}
	if n < lanes {
		return false
	}
	if rows <= 0 {
		return true
	}
	_, _, _, _ = s.Mul[at+n-1], s.Up[at+n-1], s.Down[at+n-1], s.Bias[at+n-1]
	_, _ = dst[(rows-1)*stepDst+n-1], sums[(rows-1)*stepSums+n-1]
	whole := n / lanes * lanes
	kernel(&dst[0], stepDst, &sums[0], 4*stepSums, rows, whole, &s.Mul[at], &s.Up[at], &s.Down[at], &s.Bias[at], zero, lo, hi)
	if n > whole {
		// A last full register overlaps channels that are already done.
		i := n - lanes
		kernel(&dst[i], stepDst, &sums[i], 4*stepSums, rows, lanes, &s.Mul[at+i], &s.Up[at+i], &s.Down[at+i], &s.Bias[at+i], zero, lo, hi)
	}
	return true
}

// requantiseAsFused is Requantise for the first channels, as far as all have fused scales. It
// returns their number: all, or a multiple of a block.
func (f *Ints) requantiseAsFused(dst []uint8, stepDst int, sums []int32, stepSums, rows, n int, s *Scales, at int, lo, hi int32) int {
	const block = 16
	done := 0
	for done < n && s.rounding(at+done, min(block, n-done), true) == roundFused {
		done = min(done+block, n)
	}
	if done == 0 {
		return 0
	}
	_, _ = dst[(rows-1)*stepDst+done-1], sums[(rows-1)*stepSums+done-1]
	_, _, _ = s.Fused.Scale[at+done-1], s.Fused.Add[at+done-1], s.Fused.Start[at+done-1]
	sign := signOf(hi)
	f.requantiseFused(&dst[0], stepDst, &sums[0], 4*stepSums, rows, done, &s.Fused.Scale[at], &s.Fused.Add[at], &s.Fused.Start[at], lo+sign, hi+sign, sign)
	return done
}

// signOf returns what is added to values up to hi: unsigned values are computed as signed values.
func signOf(hi int32) int32 {
	if hi > math.MaxInt8 {
		return -128
	}
	return 0
}

// EightBits reports whether the zero point and the limits fit int8, or all fit uint8.
func EightBits(zero, lo, hi int32) bool {
	least, most := int32(math.MinInt8), int32(math.MaxInt8)
	if hi > math.MaxInt8 {
		least, most = 0, math.MaxUint8
	}
	return least <= zero && zero <= most && least <= lo && lo <= most && least <= hi && hi <= most
}

// requantiseScaled is Requantise for [Scales.Small].
func (f *Ints) requantiseScaled(dst []uint8, stepDst int, sums []int32, stepSums, rows, n int, s *Scales, at int, zero, lo, hi int32) {
	_, _, _, _ = s.Twice[at+n-1], s.Down[at+n-1], s.Bias[at+n-1], s.Half[at+n-1]
	_, _ = dst[(rows-1)*stepDst+n-1], sums[(rows-1)*stepSums+n-1]
	sign := signOf(hi)
	for i := 0; i < n; {
		// All channels after the first block without fused scales use the other kernels.
		next, round := n-i, s.rounding(at+i, min(n-i, 64), lo >= zero)
		if round == roundFused {
			next = min(next, 64)
		}
		kernels := f.requantiseSmall[round]
		kernel, take := kernels.last16, next
		switch {
		case take >= 64:
			kernel, take = kernels.whole64, take/64*64
		case take > 32:
			kernel = kernels.last64
		case take == 32:
			kernel = kernels.whole32
		case take > 16:
			kernel = kernels.last32
		}
		twice, down, bias := &s.Twice[at+i], &s.Down[at+i], &s.Bias[at+i]
		if round == roundFused {
			twice, down, bias = &s.Fused.Scale[at+i], &s.Fused.Add[at+i], &s.Fused.Start[at+i]
		}
		kernel(&dst[i], stepDst, &sums[i], 4*stepSums, rows, take, twice, down, bias, &s.Half[at+i], zero+sign, lo+sign, hi+sign, sign)
		i += take
	}
}

// minLanes is the number of channels of the smallest register.
const minLanes = 8
