package simd

import (
	"math"
	"unsafe"
)

// CodeTile is an [IntTile] of fours whose sums become codes of 8 bits while they are in registers: rows of up to CodeColumns codes from Out on, RowOut bytes
// apart. Sums begin with all that is added to them, the bias, and for [Ints.QuadsToCodes] 2^31, too.
type CodeTile struct {
	IntTile
	Out    *uint8
	RowOut int
	mask   uint64 // of the columns that are written
	Scales *int32 // see [CodeScales]; the bits of floats where sums are rescaled
	up     uint64 // no result is below the zero point
	lo, hi [64]int8
	turn   [64]uint8
	zero   [32]int16
}

// CodeColumns is the number of columns of a panel of a [CodeTile].
const CodeColumns = 32

// SetColumns says how many columns are written, up to CodeColumns.
func (t *CodeTile) SetColumns(n int) { t.mask = 1<<n - 1 }

// SetLimits says between which codes results lie, and their zero point; see [EightBits].
func (t *CodeTile) SetLimits(zero, lo, hi int32) {
	less, turn := int32(0), uint8(0)
	if hi > math.MaxInt8 {
		less, turn = 128, 0x80
	}
	t.up = uint64(sign(lo >= zero))
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
// multipliers, those of every other channel again, what is added to the products of these and those, and shifts. up says that no result is below
// the zero point, of 8 bits with a sign.
func (s *Scales) PackCodes(dst []int32, ch, n int, zero int32, up bool) {
	for i := range n {
		s.pack(dst[i/16*80:][:80], i%16, ch+i, zero, up)
	}
}

// pack writes the numbers of a channel as lane x of a register, of each of the five kinds.
func (s *Scales) pack(at []int32, x, ch int, zero int32, up bool) {
	words := len(at) / 5
	half := s.Half[ch] + zero<<s.Down[ch] - int32(uint32(s.Twice[ch])>>1)
	if !up {
		half--
	}
	at[x], at[4*words+x] = s.Twice[ch], s.Down[ch]
	if x%2 == 0 {
		at[2*words+x], at[2*words+x+1] = math.MinInt32, half
		return
	}
	at[words+x-1] = s.Twice[ch]
	at[3*words+x-1], at[3*words+x] = math.MinInt32, half
}

// codeLoops are loops for each number of rows.
type codeLoops [12]func(t *CodeTile)

// codeSet makes codes: of activations by weights, and the other way round.
type codeSet struct{ quads, rescaled, turned codeLoops }

// HasCodes tells whether there are tiles whose sums become codes.
func (f *Ints) HasCodes() bool { return f != nil && f.codes != nil }

// QuadsToCodes is RunQuads for [Ints.HasCodes], with the rounding of [Ints.Requantise].
func (f *Ints) QuadsToCodes(t *CodeTile, rows int) { f.toCodes(t, rows, &f.codes.quads, false) }

// QuadsRescaled is RunQuads with the rounding of [Elements.RescaleColumns].
func (f *Ints) QuadsRescaled(t *CodeTile, rows int) { f.toCodes(t, rows, &f.codes.rescaled, false) }

// TurnedRescaled is RunTurned with the rounding of [Elements.RescaleRows].
func (f *Ints) TurnedRescaled(t *CodeTile, rows int) { f.toCodes(t, rows, &f.codes.turned, true) }

// toCodes computes codes; where registers hold pieces of matrices from the sums that these leave at C, which has room for CodeColumns of each row.
func (f *Ints) toCodes(t *CodeTile, rows int, loops *codeLoops, turned bool) {
	tile, out, scales := t.IntTile, t.Out, t.Scales
	if f.inTiles(&t.IntTile, rows) {
		t.Start = nil
		f.tiles.run(&t.IntTile, rows, CodeColumns, turned)
		if t.Start, t.Segs = tile.Start, 0; t.more == 0 {
			t.more = 2
		}
	}
	step := 0
	if turned {
		step = 4
	}
	for {
		n := min(rows, len(loops))
		loops[n-1](t)
		if rows -= n; rows == 0 {
			break
		}
		t.nextRows(n, step)
		t.Out = (*uint8)(unsafe.Add(unsafe.Pointer(t.Out), n*t.RowOut))
		t.Scales = (*int32)(unsafe.Add(unsafe.Pointer(t.Scales), n*step))
	}
	t.IntTile, t.Out, t.Scales = tile, out, scales
}
