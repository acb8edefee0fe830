package simd

import (
	"cmp"
	"encoding/binary"
	"math"
	"unsafe"
)

// Ints multiplies matrices of 8-bit numbers with 32-bit sums, which are exact. The
// left-hand numbers come widened to 16 bits, as differences to their zero point; two
// neighbours along the sum are multiplied and added in one step. Some sets multiply and add four
// neighbours of 8 bits: weights have a sign, activations have none, or one as well.
type Ints struct {
	Set Set
	// Signed says that activations in fours have a sign, Eights that panels of fours have two of
	// them side by side; see [Ints.FourAt].
	Signed, Eights bool
	// Rows and Cols are the size of the largest tile; columns come in panels of Cols.
	Rows, Cols int
	// Lanes is the number of channels that Requantise takes at a time, Step that of the
	// values of Widen.
	Lanes, Step  int
	narrow, wide []func(t *IntTile)
	narrowHalf   []func(t *IntTile) // nil for none
	widenInt8    func(dst *int16, src *byte, n int, zero int16)
	widenUint8   func(dst *int16, src *byte, n int, zero int16)
	gather       func(dst, src *int16, offs *int32, n int, runs *int32, nruns int)
	// Fours of 8-bit numbers; nil where the set has no such products.
	quads, few, turned, half []func(t *IntTile)
	quadsWide                func(t *IntTile) // nil where the set has none
	groups                   *[groupKinds][]func(t *GroupTile)
	codes                    *codeSet
	tiles                    tileSet // in place of quads and turned from fewest rows on; nil where there is none
	fewest, block            int     // rows of two tiles, which share columns
	gatherQuads              func(dst, src *byte, offs *int32, n int, runs *int32, nruns int)
	interleave               func(dst, src *byte, step, n int, zero uint32)                                   // for 32 columns; nil for none
	reach                    func(src *byte, rows, k int, turn, from uint32, mask *byte, above, below *int32) // nil for none
	// Nil where the set has none.
	lookup func(dst, src *byte, n int, table *byte)
	// looksUpAll says that lookup takes any number of bytes, and not a multiple of 64 only.
	looksUpAll bool
	copyBytes  [2]func(dst *byte, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, turn int16)
	// Numbers without a sign, and with one.
	widenLines [2][2]func(dst *int16, stepDst int, src *byte, stepSrc, n, lines int, in, out uint64, zero int16)
	// For [Scales.Small], of each rounding; nil for none.
	requantiseSmall [roundings]*smallRequantise
	// Whole registers of channels; the second for as many as fewLanes.
	requantise16              func(dst *int16, stepDst int, sums *int32, stepSums, rows, n, parts, low, stepParts int, scales *int64, zero, lo, hi int32) // nil for none
	requantiseHalves          func(dst *int16, stepDst int, sums *float32, stepSums, rows, n, stepParts int, scales *int64, zero, lo, hi int32)           // nil for none
	apart                     func(upper, lower, src *int16, n int)                                                                                       // nil for none
	weave                     func(dst *int16, cols int, src *int16, step, n, pairs int)                                                                  // nil for none
	lostWords                 func(src *int16, n int) uint32                                                                                              // nil for none
	halves                    func(upper, lower *float32, src *int16, n int)                                                                              // nil for none
	requantise, requantiseFew func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, mul, up, down, bias *int32, zero, lo, hi int32)
}

// IntKernels of 8-bit products in the current set; nil where plain Go is all there is.
func IntKernels() *Ints { return ints.pick() }

// IntTile is a piece of a product of integers, c = a·b: a few rows of a by one panel of
// b. Steps are in bytes. Pair k of segment s of row r of a lies at A + r*RowA + s*SegA +
// 4*k. b is a panel: for each pair of each segment Cols pairs of numbers.
//
// Fours of 8-bit numbers take the place of pairs of 16-bit ones in [Ints.RunQuads] and
// [Ints.RunTurned], and sums begin with Start.
type IntTile struct {
	A          unsafe.Pointer
	RowA, SegA int
	K, Segs    int // pairs in a segment, segments; both at least 1
	B          unsafe.Pointer
	C          *int32
	RowC       int
	more       int    // sums go on from what c holds, with 2 and Start
	Start      *int32 // what sums of fours begin with: of each column, or of each row
	PanelB     int    // from one panel to the next, for several
	// Ahead is what sets with tiles bring near meanwhile, as many bytes as a panel has: the panel that comes next, where weights come from
	// memory or caches that are far. Nil for nothing.
	Ahead unsafe.Pointer
}

// SetContinue says whether sums go on from what c holds.
func (t *IntTile) SetContinue(on bool) {
	t.more = 0
	if on {
		t.more = 1
	}
}

// Run computes rows rows of a panel, of cols columns at least; wide says that b has 16-bit numbers, and not
// 8-bit ones.
func (f *Ints) Run(t *IntTile, rows, cols int, wide bool) {
	loops := f.narrow
	switch {
	case wide:
		loops = f.wide
	case 2*cols <= f.Cols && f.narrowHalf != nil:
		loops = f.narrowHalf
	}
	t.inRows(rows, loops, 0)
}

// inRows computes any number of rows, in pieces for which there is a loop; what the sums of the next row begin with lies start bytes further.
func (t *IntTile) inRows(rows int, loops []func(t *IntTile), start int) {
	if rows <= len(loops) {
		loops[rows-1](t)
		return
	}
	// The set has larger tiles of fours.
	a, c, from := t.A, t.C, t.Start
	for rows > 0 {
		n := Evenly(rows, len(loops))
		loops[n-1](t)
		if rows -= n; rows > 0 {
			t.nextRows(n, start)
		}
	}
	t.A, t.C, t.Start = a, c, from
}

// nextRows goes on to the rows behind the first n.
func (t *IntTile) nextRows(n, start int) {
	t.A, t.C = unsafe.Add(t.A, n*t.RowA), (*int32)(unsafe.Add(unsafe.Pointer(t.C), n*t.RowC))
	if start != 0 && t.Start != nil { // sums that go on have none
		t.Start = (*int32)(unsafe.Add(unsafe.Pointer(t.Start), n*start))
	}
}

// Part is the number of rows to compute next of those that are left: equal parts of at most Rows, or as many as fill tiles.
func (f *Ints) Part(left int) int {
	if f.tiles != nil {
		return min(left, f.Rows)
	}
	return Evenly(left, f.Rows)
}

// CutRows is the number of rows whose multiples work is cut between: a call may compute more, but no faster.
func (f *Ints) CutRows() int { return cmp.Or(f.block, f.Rows) }

// Evenly is the next of the pieces into which n is cut, of at most most each: as equal
// as can be, because small tiles make poor use of the processor.
func Evenly(n, most int) int {
	pieces := (n + most - 1) / most
	return (n + pieces - 1) / pieces
}

// Quads tells whether there are products of fours of 8-bit numbers.
func (f *Ints) Quads() bool { return f.quads != nil }

// FourAt is the place of step i of column j in a panel of n fours of steps. Fours of all columns follow each
// other; with Eights two fours of a column do, and only the last one of an odd number is alone.
func (f *Ints) FourAt(n, i, j int) int {
	q := i / 4
	if f.Eights && q|1 < n {
		return 4*(q&^1)*f.Cols + 8*j + i%8
	}
	return 4*(q*f.Cols+j) + i%4
}

// Interleave writes n fours of all columns of a panel, without [Ints.Eights]: steps of a column less zero, of which those of all columns lie side by side
// in src, step bytes from step to step. It returns false where the set has no loop for that.
func (f *Ints) Interleave(dst []int8, src []uint8, step, n int, zero uint8) bool {
	if f.interleave == nil || n == 0 {
		return false
	}
	_, _ = dst[n*4*f.Cols-1], src[(4*n-1)*step+f.Cols-1]
	f.interleave((*byte)(unsafe.Pointer(&dst[0])), &src[0], step, n, uint32(zero))
	return true
}

// reachBytes is how many bytes a step of reach takes.
const reachBytes = 32

// firstBytes has, from entry reachBytes-n on, n bytes of ones and as many zeros as fill a vector.
var firstBytes = func() (m [2 * reachBytes]uint8) {
	for i := range reachBytes {
		m[i] = 0xFF
	}
	return m
}()

// Reach tells by how much the k bytes of each row of v, of which the bits of turn are turned first, lie above a number, and below it: it adds that to above and
// below. f may be nil.
func (f *Ints) Reach(v []uint8, k int, turn, from uint8, above, below []int32) {
	done := 0
	// Vectors go beyond the last bytes of a row, but not of v.
	if over := (k + reachBytes - 1) / reachBytes * reachBytes; f != nil && f.reach != nil && k > 0 && len(v) >= over {
		done = min((len(v)-over)/k+1, len(v)/k)
		_, _ = above[done-1], below[done-1]
		f.reach(&v[0], done, k, uint32(turn), uint32(from), &firstBytes[reachBytes-k%reachBytes], &above[0], &below[0])
	}
	for r := done; (r+1)*k <= len(v) && k > 0; r++ {
		for _, x := range v[r*k:][:k] {
			d := int32(x^turn) - int32(from)
			above[r] += max(d, 0)
			below[r] += max(-d, 0)
		}
	}
}

// RunQuads computes rows rows of a panel, fours of 8-bit numbers at a time: those of a are activations,
// those of b weights, which have a sign. Start has a number for each column; of these, cols at least are computed.
func (f *Ints) RunQuads(t *IntTile, rows, cols int) {
	switch {
	case f.inTiles(t, rows):
		f.tiles.run(t, rows, cols, false)
	case 2*cols <= f.Cols && f.few != nil:
		t.inRows(rows, f.few, 0)
	default:
		t.inRows(rows, f.quads, 0)
	}
}

// inTiles tells whether rows of a product are worth to be computed in registers that hold pieces of matrices.
func (f *Ints) inTiles(t *IntTile, rows int) bool {
	return rows >= f.fewest && f.Tiled(t.K, t.Segs)
}

// Lines are several rows of rows: so many, A bytes apart in a. Those of results follow one another.
type Lines struct{ N, A int }

// RunLines is RunQuads, where [Ints.RunsPanels] says so, for several lines of rows rows.
func (f *Ints) RunLines(t *IntTile, rows, cols int, l Lines) { f.tiles.lines(t, rows, cols, l) }

// Tiled tells whether products of many rows with k fours of segs segments are computed so.
func (f *Ints) Tiled(k, segs int) bool { return f.tiles != nil && f.tiles.worth(k, segs) }

// tileLines are the rows of a tile, and the fours of one.
const tileLines = 16

// TilesOfRows is how many registers hold rows rows, the last one in part.
func TilesOfRows(rows int) int { return (rows + tileLines - 1) / tileLines }

// tileSet are registers that hold pieces of matrices.
type tileSet interface {
	run(t *IntTile, rows, cols int, turned bool)
	lines(t *IntTile, rows, cols int, l Lines)
	panels(t *IntTile, rows, panels int)
	worth(k, segs int) bool
}

// RunsPanels tells whether RunPanels computes so many rows.
func (f *Ints) RunsPanels(t *IntTile, rows int) bool { return f.inTiles(t, rows) }

// RunPanels is RunQuads, where [Ints.RunsPanels] says so, for panels whole panels, PanelB bytes apart, whose results lie side by side, without segments.
func (f *Ints) RunPanels(t *IntTile, rows, panels int) { f.tiles.panels(t, rows, panels) }

// HasWideQuads tells whether there is [Ints.WideQuads].
func (f *Ints) HasWideQuads() bool { return f.quadsWide != nil }

// WideQuads computes one row of one segment of [WidePanels] whole panels, whose results lie side by side, as RunQuads does.
func (f *Ints) WideQuads(t *IntTile) { f.quadsWide(t) }

// RunTurned is RunQuads with weights in a and activations in b; Start has a number for each row. Of the panel's columns, cols
// at least are computed.
func (f *Ints) RunTurned(t *IntTile, rows, cols int) {
	switch {
	case f.inTiles(t, rows):
		f.tiles.run(t, rows, cols, true)
	case 2*cols <= f.Cols:
		t.inRows(rows, f.half, 4)
	default:
		t.inRows(rows, f.turned, 4)
	}
}

// GatherQuads is Gather for fours of 8-bit numbers, a row for each four of offs, in places of [Ints.FourAt]. It
// may write two rows over the end.
func (f *Ints) GatherQuads(dst, src []uint8, offs []int32, runs []Run) {
	if len(offs) == 0 || len(runs) == 0 {
		return
	}
	last := int(runs[len(runs)-1].To)
	if f.Eights {
		last *= 2
	}
	_ = dst[(len(offs)/4*f.Cols+last)*4-1]
	f.gatherQuads(unsafe.SliceData(dst), unsafe.SliceData(src), &offs[0], len(offs)/4, &runs[0].From, len(runs))
}

// LooksUp tells whether [Ints.Lookup] has a loop in vectors.
func (f *Ints) LooksUp() bool { return f.lookup != nil }

// Lookup replaces bytes by their entries in a table. It returns for how many it did so.
func (f *Ints) Lookup(dst, src []uint8, table *[256]uint8) int {
	n := len(dst)
	if !f.looksUpAll {
		n = n / 64 * 64
	}
	if f.lookup == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	f.lookup(&dst[0], &src[0], n, &table[0])
	return n
}

// CopyBytes copies lines of n bytes, with the highest bit of each turned if turned is set; lines of dst are stepDst
// bytes apart, those of src stepSrc, and neighbours of src each. It returns false where the set or the step is not for it.
func (f *Ints) CopyBytes(dst []uint8, stepDst int, src []uint8, stepSrc, each, n, lines int, turned bool) bool {
	if f.copyBytes[0] == nil || each > 2 {
		return false
	}
	if n <= 0 || lines <= 0 {
		return true
	}
	_, _ = dst[(lines-1)*stepDst+n-1], src[(lines-1)*stepSrc+(n-1)*each]
	turn := int16(0)
	if turned {
		turn = 0x80
		if each == 1 {
			turn = -0x7f80 // both bytes
		}
	}
	in, out := lastMasks(n, each, 64/each)
	f.copyBytes[each-1](&dst[0], stepDst, &src[0], stepSrc, n, lines, in, out, turn)
	return true
}

// WidenLines is Widen for lines as CopyBytes has them.
func (f *Ints) WidenLines(dst []int16, stepDst int, src []uint8, stepSrc, each, n, lines int, signed bool, zero int16) bool {
	if f.widenLines[0][0] == nil || each > 2 {
		return false
	}
	if n <= 0 || lines <= 0 {
		return true
	}
	_, _ = dst[(lines-1)*stepDst+n-1], src[(lines-1)*stepSrc+(n-1)*each]
	in, out := lastMasks(n, each, 32)
	f.widenLines[sign(signed)][each-1](&dst[0], 2*stepDst, &src[0], stepSrc, n, lines, in, out, zero)
	return true
}

// lastMasks has a bit for each byte that the last of the registers for n values reads, and for each value that
// it writes: as many as there are, or fewer.
func lastMasks(n, each, values int) (in, out uint64) {
	rest := (n-1)%values + 1
	return 1<<(rest*each-each+1) - 1, 1<<rest - 1
}

// Fours writes the bits of 8-bit numbers, signed or not, as those of fours of activations: without a sign, those
// with one get 128 added; where f.Signed, with one, the others get 128 taken away.
func (f *Ints) Fours(dst, src []uint8, signed bool) {
	dst = dst[:len(src)]
	if signed == f.Signed {
		copy(dst, src)
		return
	}
	if f.CopyBytes(dst, 0, src, 0, 1, len(src), 1, true) {
		return
	}
	const flip = 0x8080808080808080
	for len(src) >= 8 && len(dst) >= 8 {
		binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(src)^flip)
		dst, src = dst[8:], src[8:]
	}
	for i, v := range src {
		dst[i] = v ^ 0x80
	}
}

// FoursZero is a zero point of numbers that [Ints.Fours] moved.
func (f *Ints) FoursZero(signed bool, zero int32) int32 {
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

// Gather writes a panel of Cols columns of pairs, a row for each two of offs; see
// [Floats.Gather].
func (f *Ints) Gather(dst, src []int16, offs []int32, runs []Run) {
	if len(offs) == 0 || len(runs) == 0 {
		return
	}
	last := runs[len(runs)-1]
	_ = dst[((len(offs)/2-1)*f.Cols+int(last.To)+f.Cols)*2-1]
	f.gather(unsafe.SliceData(dst), unsafe.SliceData(src), &offs[0], len(offs)/2, &runs[0].From, len(runs))
}

// Scales are the numbers of channels for Requantise, in arrays that go on to a multiple
// of Lanes: the multiplier, its shifts to the left and to the right, and the bias.
type Scales struct {
	Mul, Up, Down, Bias []int32
	// Small says that multipliers are 2^30 and more, that all shifts go to the right, by 1 to 20, and that no sum with
	// its bias is larger than 2^30. Twice then has the lower 32 bits of twice the multipliers, Half 2^Down / 2.
	Small       bool
	Twice, Half []int32
	// Fused are the numbers of the channels that have such.
	Fused FusedScales
}

// Scales16 are the numbers of channels for Requantise16, for blocks of eight channels and a multiple of 16 of them: of each block the biases, the
// multipliers, halves of what the shifts divide by, and the shifts to the right, 1 to 63.
type Scales16 []int64

// NewScales16 makes room for n channels.
func NewScales16(n int) Scales16 { return make(Scales16, 4*((n+15)/16*16)) }

// Set sets the numbers of channel i.
func (s Scales16) Set(i int, bias, mul int64, down int) {
	b := s[i/8*32+i%8:]
	b[0], b[8], b[16], b[24] = bias, mul, 1<<(down-1), int64(down)
}

// Requantise16 turns rows of sums into 16-bit values: of channel i ((sum + bias)·mul + half) / 2^down, the lower 32 bits of it,
// plus zero, between lo and hi. Sums are those of parts, stepParts apart; if the last low are fewer than all of them, and at least one, the others count 256 times. n channels are written for each row, those of a multiple of 16 read; the
// scales begin at channel at, a multiple of 16. It does nothing and returns false where the set has no loop for it.
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

// RequantiseHalves is Requantise16 for sums as floats that are whole numbers, rows of n: 256 times the first part and the second, of which it reads
// up to 15 more.
func (f *Ints) RequantiseHalves(dst []int16, sums []float32, rows, n, stepParts int, s Scales16, zero, lo, hi int32) bool {
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

// Halves takes numbers apart: their upper 8 bits, with the sign, and the lower ones. It does nothing and returns false where the set has no loop for it.
func (f *Ints) Halves(upper, lower []float32, src []int16) bool {
	if f == nil || f.halves == nil {
		return false
	}
	if n := len(src); n > 0 {
		_, _ = upper[n-1], lower[n-1]
		f.halves(&upper[0], &lower[0], &src[0], n)
	}
	return true
}

// Apart is Halves in 16 bits, for all sets.
func (f *Ints) Apart(upper, lower, src []int16) {
	n := len(src)
	if upper, lower = upper[:n], lower[:n]; n > 0 && f.apart != nil {
		f.apart(&upper[0], &lower[0], &src[0], n)
		return
	}
	for i, v := range src {
		upper[i], lower[i] = v>>8, v&255
	}
}

// Weave writes pairs of lines of n words, step words apart, as pairs of words, of which a panel has a line of Cols, those from n on being 0. It does
// nothing and returns false where the set has no loop for it.
func (f *Ints) Weave(dst, src []int16, step, n, pairs int) bool {
	if f == nil || f.weave == nil || f.Cols%16 != 0 {
		return false
	}
	if n > 0 && pairs > 0 {
		_, _ = dst[2*pairs*f.Cols-1], src[(2*pairs-1)*step+n-1]
		f.weave(&dst[0], f.Cols, &src[0], 2*step, n, pairs)
	}
	return true
}

// Fit8 tells whether all words have 8 bits with a sign.
func (f *Ints) Fit8(v []int16) bool {
	if f != nil && f.lostWords != nil && len(v) > 0 {
		return f.lostWords(&v[0], len(v)) == 0
	}
	lost := int16(0)
	for _, x := range v {
		lost |= x ^ int16(int8(x))
	}
	return lost == 0
}

// smallRequantise are the loops for [Scales.Small]: for blocks of 64 and of 32 channels, and for as many as 64, 32 and 16.
type smallRequantise struct {
	whole64, whole32, last64, last32, last16 func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, twice, down, bias, half *int32, zero, lo, hi, sign int32)
}

// Requantise turns rows of sums into 8-bit values: of channel i round((sum + bias) <<
// up · mul / 2^31 / 2^down) + zero, between lo and hi, in the rounding of TFLite (the
// product to the nearest, ties up; the shift to the nearest, ties away from zero). n
// channels are written for each row; the scales begin at channel at. It does nothing and
// returns false for fewer channels than the smallest register takes.
func (f *Ints) Requantise(dst []uint8, stepDst int, sums []int32, stepSums, rows, n int, s *Scales, at int, zero, lo, hi int32) bool {
	if s.Small && f.requantiseSmall[0] != nil && rows > 0 && n > 0 && EightBits(zero, lo, hi) {
		f.small(dst, stepDst, sums, stepSums, rows, n, s, at, zero, lo, hi)
		return true
	}
	lanes, loop := f.Lanes, f.requantise
	if n < lanes {
		lanes, loop = fewLanes, f.requantiseFew
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
	loop(&dst[0], stepDst, &sums[0], 4*stepSums, rows, whole, &s.Mul[at], &s.Up[at], &s.Down[at], &s.Bias[at], zero, lo, hi)
	if n > whole {
		// The last ones a second time together with what is left.
		i := n - lanes
		loop(&dst[i], stepDst, &sums[i], 4*stepSums, rows, lanes, &s.Mul[at+i], &s.Up[at+i], &s.Down[at+i], &s.Bias[at+i], zero, lo, hi)
	}
	return true
}

// EightBits tells whether zero point and limits are numbers of 8 bits, with a sign or without.
func EightBits(zero, lo, hi int32) bool {
	least, most := int32(math.MinInt8), int32(math.MaxInt8)
	if hi > math.MaxInt8 {
		least, most = 0, math.MaxUint8
	}
	return least <= zero && zero <= most && least <= lo && lo <= most && least <= hi && hi <= most
}

// small is Requantise for [Scales.Small].
func (f *Ints) small(dst []uint8, stepDst int, sums []int32, stepSums, rows, n int, s *Scales, at int, zero, lo, hi int32) {
	_, _, _, _ = s.Twice[at+n-1], s.Down[at+n-1], s.Bias[at+n-1], s.Half[at+n-1]
	_, _ = dst[(rows-1)*stepDst+n-1], sums[(rows-1)*stepSums+n-1]
	var sign int32
	if hi > math.MaxInt8 {
		// Numbers without a sign go the way of those with one.
		sign = -128
	}
	for i := 0; i < n; {
		// Channels behind the first block that has no fused numbers do without them, too.
		next, round := n-i, s.rounding(at+i, min(n-i, 64), lo >= zero)
		if round == roundFused {
			next = min(next, 64)
		}
		loops := f.requantiseSmall[round]
		loop, take := loops.last16, next
		switch {
		case take >= 64:
			loop, take = loops.whole64, take/64*64
		case take > 32:
			loop = loops.last64
		case take == 32:
			loop = loops.whole32
		case take > 16:
			loop = loops.last32
		}
		twice, down, bias := &s.Twice[at+i], &s.Down[at+i], &s.Bias[at+i]
		if round == roundFused {
			twice, down, bias = &s.Fused.Scale[at+i], &s.Fused.Add[at+i], &s.Fused.Start[at+i]
		}
		loop(&dst[i], stepDst, &sums[i], 4*stepSums, rows, take, twice, down, bias, &s.Half[at+i], zero+sign, lo+sign, hi+sign, sign)
		i += take
	}
}

// fewLanes is the number of channels of the smallest register.
const fewLanes = 8
