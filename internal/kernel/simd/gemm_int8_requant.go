package simd

import (
	"cmp"
	"math"
	"math/bits"
	"unsafe"
)

// CodeTile is an [IntTile] of fours whose sums become codes of 8 bits while they are in registers: rows of up to CodeColumns codes from Out on, RowOut bytes
// apart. Sums begin with all that is added to them, the bias, and for [Ints.QuadsToCodes] what [Scales.PackCodes] adds, too.
type CodeTile struct {
	IntTile
	Out    *uint8
	RowOut int
	mask   uint64 // of the columns that are written
	Scales *int32 // see [CodeScales]; the bits of floats where sums are rescaled
	round  uint64 // how sums become codes
	// Tiles of a call, whose sums begin with Start or have no segments, and how far each lies from the last one, in bytes. The loops count how far they have gone.
	tiles          int
	stepA, stepOut int
	doneA, doneOut int
	finish         uint64
	lo, hi         [64]int8
	turn           [64]uint8
	zero           [32]int16
}

// How codes are finished whose limits are those of 8 bits: with a sign, and without one and a zero point, where it takes less to do so. The assembly knows the numbers.
const (
	finishAll = iota
	finishSigned
	finishPlain
)

// finishOf is how codes between lo and hi are finished.
func finishOf(lo, hi int32) uint64 {
	if lo == math.MinInt8 && hi == math.MaxInt8 {
		return finishSigned
	}
	return finishAll
}

// CodeColumns is the number of columns of a panel of a [CodeTile].
const CodeColumns = 32

// SetColumns says how many columns are written, up to CodeColumns.
func (t *CodeTile) SetColumns(n int) { t.mask = 1<<n - 1 }

// columns is what SetColumns was given.
func (t *CodeTile) columns() int { return bits.Len64(t.mask) }

// SetLimits says between which codes results lie; see [EightBits].
func (t *CodeTile) SetLimits(lo, hi int32) {
	less, turn := int32(0), uint8(0)
	if hi > math.MaxInt8 {
		less, turn = 128, 0x80
	}
	t.finish = finishOf(lo, hi)
	for i := range t.lo {
		t.lo[i], t.hi[i], t.turn[i] = int8(lo-less), int8(hi-less), turn
	}
}

// SetRescaling is SetLimits for sums that are rescaled, by small scales.
func (t *CodeTile) SetRescaling(q *Rescaling) {
	less, turn := int32(0), uint8(0)
	if !q.Signed {
		less, turn = 128, 0x80
	}
	if t.finish = finishOf(q.Lo, q.Hi); !q.Signed && q.Zero == 0 && q.Lo == 0 && q.Hi == math.MaxUint8 {
		t.finish = finishPlain
	}
	for i := range t.lo {
		t.lo[i], t.hi[i], t.turn[i] = int8(q.Lo-less), int8(q.Hi-less), turn
	}
	for i := range t.zero {
		t.zero[i] = int16(q.Zero - less)
	}
}

// CodeScales is the number of values for the columns of a panel that [Scales.PackCodes] writes.
const CodeScales = 5 * CodeColumns

// PackCodes writes the numbers of n channels from ch on for [Ints.QuadsToCodes], from [Scales.Small] ones: for each register of 16 twice the
// multipliers, those of every other channel again, what is added to the products of these and those, and shifts, or the numbers of [Fused]. up says that no
// result is below the zero point, of 8 bits with a sign. Start has what sums begin with, to which it adds the bias and more. It returns
// what [CodeTile.SetRounding] takes.
func (s *Scales) PackCodes(dst, start []int32, ch, n int, zero int32, up bool) uint8 {
	round := s.rounding(ch, n, up)
	for i := range n {
		start[i] += s.start(ch+i, round)
		s.pack(dst[i/16*80:][:80], i%16, ch+i, zero, round)
	}
	return uint8(round)
}

// SetRounding says how the sums of a panel become codes.
func (t *CodeTile) SetRounding(r uint8) { t.round = uint64(r) }

// codeLoops are loops for each number of rows.
type codeLoops [12]func(t *CodeTile)

// codeSet makes codes: of activations by weights, also for the first half of a panel, and the other way round.
type codeSet struct{ quads, few, rescaled, fewRescaled, turned codeLoops }

// toCodes are the loops of [Ints.QuadsToCodes] for the columns of a tile.
func (s *codeSet) toCodes(t *CodeTile) *codeLoops {
	if t.columns() <= CodeColumns/2 {
		return &s.few
	}
	return &s.quads
}

// toRescaled are those of [Ints.QuadsRescaled].
func (s *codeSet) toRescaled(t *CodeTile) *codeLoops {
	if t.columns() <= CodeColumns/2 {
		return &s.fewRescaled
	}
	return &s.rescaled
}

// HasCodes tells whether there are tiles whose sums become codes.
func (f *Ints) HasCodes() bool { return f != nil && f.codes != nil }

// Fuses tells whether there are loops that make codes with the numbers of [Fused].
func (f *Ints) Fuses() bool { return f != nil && f.requantiseSmall[roundFused] != nil }

// QuadsToCodes is RunQuads for [Ints.HasCodes] and any number of rows, with the rounding of [Ints.Requantise].
func (f *Ints) QuadsToCodes(t *CodeTile, rows int) { f.toCodes(t, rows, f.codes.toCodes(t), false) }

// QuadsRescaled is RunQuads for any number of rows, with the rounding of [Elements.RescaleColumns].
func (f *Ints) QuadsRescaled(t *CodeTile, rows int) { f.toCodes(t, rows, f.codes.toRescaled(t), false) }

// SumsToCodes makes the codes of [Ints.QuadsToCodes] of rows rows of sums at C.
func (f *Ints) SumsToCodes(t *CodeTile, rows int) { t.ofSums(rows, f.codes.toCodes(t), false, 1) }

// SumsRescaled makes those of [Ints.QuadsRescaled].
func (f *Ints) SumsRescaled(t *CodeTile, rows int) { t.ofSums(rows, f.codes.toRescaled(t), false, 1) }

// TurnedRescaled is RunTurned for any number of rows, with the rounding of [Elements.RescaleRows].
func (f *Ints) TurnedRescaled(t *CodeTile, rows int) { f.toCodes(t, rows, &f.codes.turned, true) }

// toCodes computes codes; where registers hold pieces of matrices from the sums that these leave at C, which has room for CodeColumns of each row.
func (f *Ints) toCodes(t *CodeTile, rows int, loops *codeLoops, turned bool) {
	if !f.inTiles(&t.IntTile, rows) {
		t.inRows(rows, loops, turned)
		return
	}
	start, more := t.Start, cmp.Or(t.more, 2)
	t.Start = nil
	f.tiles.run(&t.IntTile, rows, t.columns(), turned)
	t.Start = start
	t.ofSums(rows, loops, turned, more)
}

// LinesToCodes is [Ints.QuadsToCodes] for several lines of rows rows, where [Ints.RunsPanels] says so: codes of lines lie out bytes apart.
func (f *Ints) LinesToCodes(t *CodeTile, rows int, l Lines, out int) {
	f.lines(t, rows, l, out, f.codes.toCodes(t))
}

// LinesRescaled is LinesToCodes for [Ints.QuadsRescaled].
func (f *Ints) LinesRescaled(t *CodeTile, rows int, l Lines, out int) {
	f.lines(t, rows, l, out, f.codes.toRescaled(t))
}

// lines computes lines of sums, and the codes of these.
func (f *Ints) lines(t *CodeTile, rows int, l Lines, out int, loops *codeLoops) {
	start, more := t.Start, cmp.Or(t.more, 2)
	t.Start = nil
	f.tiles.lines(&t.IntTile, rows, t.columns(), l)
	t.Start = start
	if out == rows*t.RowOut {
		t.ofSums(l.N*rows, loops, false, more)
		return
	}
	sums, codes := t.C, t.Out
	for i := range l.N {
		t.C = (*int32)(unsafe.Add(unsafe.Pointer(sums), i*rows*t.RowC))
		t.Out = (*uint8)(unsafe.Add(unsafe.Pointer(codes), i*out))
		t.ofSums(rows, loops, false, more)
	}
	t.C, t.Out = sums, codes
}

// ofSums makes codes of the sums at C, to which more may add Start.
func (t *CodeTile) ofSums(rows int, loops *codeLoops, turned bool, more int) {
	segs, was := t.Segs, t.more
	t.Segs, t.more = 0, more
	t.inRows(rows, loops, turned)
	t.Segs, t.more = segs, was
}

// inRows computes any number of rows, several tiles of them in a call where sums begin with Start, or are all there is.
func (t *CodeTile) inRows(rows int, loops *codeLoops, turned bool) {
	tile, out, scales, step := t.IntTile, t.Out, t.Scales, 0
	if turned {
		step = 4
	}
	for rows > 0 {
		n := Evenly(rows, len(loops))
		t.tiles, t.stepA, t.stepOut, t.doneA, t.doneOut = 1, n*t.RowA, n*t.RowOut, 0, 0
		if !turned && (t.more == 0 || t.Segs == 0) {
			t.tiles = rows / n
		}
		if t.Segs == 0 { // there are sums alone
			t.stepA = n * t.RowC
		}
		done := t.tiles * n
		loops[n-1](t)
		if rows -= done; rows > 0 {
			t.nextRows(done, step)
			t.Out = (*uint8)(unsafe.Add(unsafe.Pointer(t.Out), done*t.RowOut))
			t.Scales = (*int32)(unsafe.Add(unsafe.Pointer(t.Scales), done*step))
		}
	}
	t.IntTile, t.Out, t.Scales = tile, out, scales
}
