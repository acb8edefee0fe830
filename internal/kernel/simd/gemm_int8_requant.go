package simd

import (
	"cmp"
	"math"
	"math/bits"
	"unsafe"
)

// CodeTile is an [IntTile] for 4-way dot products whose sums are requantised to 8 bits in
// registers. It writes rows of up to RequantColumns quantised values, RowOut bytes apart, from Out
// on. The initial sums include the bias and, for [Ints.QuadsRequantised], the values that
// [Scales.PackRequant] adds.
type CodeTile struct {
	IntTile
	Out    *uint8
	RowOut int
	mask   uint64 // of the columns that are written
	Scales *int32 // see [RequantScales]; float32 bits for rescaled sums
	round  uint64 // rounding of the sums
	// tiles is the number of tiles of a call; their sums start from Start or have no segments.
	// The steps are the bytes from tile to tile. The kernels keep the bytes done so far.
	tiles          int
	stepA, stepOut int
	doneA, doneOut int
	finish         uint64
	lo, hi         [64]int8
	flip           [64]uint8
	zero           [32]int16
}

// The last step of requantisation. If the limits are those of int8, or those of uint8 with zero
// point 0, it takes fewer instructions. The assembly uses these values.
const (
	finishAll = iota
	finishSigned
	finishPlain
)

// finishOf returns the last step for quantised values between lo and hi.
func finishOf(lo, hi int32) uint64 {
	if lo == math.MinInt8 && hi == math.MaxInt8 {
		return finishSigned
	}
	return finishAll
}

// RequantColumns is the number of columns of a panel of a [CodeTile].
const RequantColumns = 32

// SetColumns sets the number of columns that are written, at most RequantColumns.
func (t *CodeTile) SetColumns(n int) { t.mask = 1<<n - 1 }

// columns returns the argument of SetColumns.
func (t *CodeTile) columns() int { return bits.Len64(t.mask) }

// SetLimits sets the limits of quantised results; see [EightBits].
func (t *CodeTile) SetLimits(lo, hi int32) {
	less, flip := int32(0), uint8(0)
	if hi > math.MaxInt8 {
		less, flip = 128, 0x80
	}
	t.finish = finishOf(lo, hi)
	for i := range t.lo {
		t.lo[i], t.hi[i], t.flip[i] = int8(lo-less), int8(hi-less), flip
	}
}

// SetRescaling is SetLimits for sums that are rescaled by float32 scales.
func (t *CodeTile) SetRescaling(q *Rescaling) {
	less, flip := int32(0), uint8(0)
	if !q.Signed {
		less, flip = 128, 0x80
	}
	if t.finish = finishOf(q.Lo, q.Hi); !q.Signed && q.Zero == 0 && q.Lo == 0 && q.Hi == math.MaxUint8 {
		t.finish = finishPlain
	}
	for i := range t.lo {
		t.lo[i], t.hi[i], t.flip[i] = int8(q.Lo-less), int8(q.Hi-less), flip
	}
	for i := range t.zero {
		t.zero[i] = int16(q.Zero - less)
	}
}

// RequantScales is the number of values that [Scales.PackRequant] writes for the columns of a
// panel.
const RequantScales = 5 * RequantColumns

// PackRequant packs the parameters of n channels from ch on for [Ints.QuadsRequantised], for
// [Scales.Small]. For each register of 16 channels it writes twice the multipliers, those of
// every other channel again, the values added to the even and to the odd products, and the
// shifts. Fused scales have the values of [Fused] instead.
//
// up reports that no result is below the zero point, which is a signed 8-bit value. PackRequant
// adds the bias, and a value that depends on the rounding, to the initial sums in start. It
// returns the argument for [CodeTile.SetRounding].
func (s *Scales) PackRequant(dst, start []int32, ch, n int, zero int32, up bool) uint8 {
	round := s.rounding(ch, n, up)
	for i := range n {
		start[i] += s.start(ch+i, round)
		s.pack(dst[i/16*80:][:80], i%16, ch+i, zero, round)
	}
	return uint8(round)
}

// SetRounding sets the rounding of the sums of a panel.
func (t *CodeTile) SetRounding(r uint8) { t.round = uint64(r) }

// requantKernels holds a kernel for each number of rows.
type requantKernels [12]func(t *CodeTile)

// requantKernelSet holds GEMM kernels with requantisation: activations by weights, the same for
// the first half of a panel, and weights by activations.
type requantKernelSet struct{ quads, few, rescaled, fewRescaled, transposed requantKernels }

// toCodes returns the kernels of [Ints.QuadsRequantised] for the columns of a tile.
func (s *requantKernelSet) toCodes(t *CodeTile) *requantKernels {
	if t.columns() <= RequantColumns/2 {
		return &s.few
	}
	return &s.quads
}

// toRescaled returns the kernels of [Ints.QuadsRescaled].
func (s *requantKernelSet) toRescaled(t *CodeTile) *requantKernels {
	if t.columns() <= RequantColumns/2 {
		return &s.fewRescaled
	}
	return &s.rescaled
}

// HasRequantised reports whether GEMM kernels with requantisation are available.
func (f *Ints) HasRequantised() bool { return f != nil && f.requant != nil }

// Fuses reports whether kernels that requantise with [Fused] scales are available.
func (f *Ints) Fuses() bool {
	return f != nil && (f.requantiseSmall[roundFused] != nil || f.requantiseFused != nil)
}

// QuadsRequantised is RunQuads for any number of rows, with the rounding of [Ints.Requantise]. It
// requires [Ints.HasRequantised].
func (f *Ints) QuadsRequantised(t *CodeTile, rows int) {
	f.toCodes(t, rows, f.requant.toCodes(t), false)
}

// QuadsRescaled is RunQuads for any number of rows, with the rounding of
// [Elements.RescaleColumns].
func (f *Ints) QuadsRescaled(t *CodeTile, rows int) {
	f.toCodes(t, rows, f.requant.toRescaled(t), false)
}

// SumsRequantised requantises rows rows of sums at C as [Ints.QuadsRequantised] does.
func (f *Ints) SumsRequantised(t *CodeTile, rows int) {
	t.requantise(rows, f.requant.toCodes(t), false, 1)
}

// SumsRescaled requantises rows rows of sums at C as [Ints.QuadsRescaled] does.
func (f *Ints) SumsRescaled(t *CodeTile, rows int) {
	t.requantise(rows, f.requant.toRescaled(t), false, 1)
}

// TransposedRescaled is RunTransposed for any number of rows, with the rounding of
// [Elements.RescaleRows].
func (f *Ints) TransposedRescaled(t *CodeTile, rows int) {
	f.toCodes(t, rows, &f.requant.transposed, true)
}

// toCodes computes quantised values. With matrix tiles it first stores the sums at C, which has
// RequantColumns values for each row, and requantises them afterwards.
func (f *Ints) toCodes(t *CodeTile, rows int, kernels *requantKernels, transposed bool) {
	if !f.usesTiles(&t.IntTile, rows) {
		t.inRows(rows, kernels, transposed)
		return
	}
	start, more := t.Start, cmp.Or(t.more, 2)
	t.Start = nil
	f.matrixTiles.run(&t.IntTile, rows, t.columns(), transposed)
	t.Start = start
	t.requantise(rows, kernels, transposed, more)
}

// LinesRequantised is [Ints.QuadsRequantised] for several lines of rows rows. It requires that
// [Ints.RunsPanels] returns true. The results of the lines are out bytes apart.
func (f *Ints) LinesRequantised(t *CodeTile, rows int, l Lines, out int) {
	f.lines(t, rows, l, out, f.requant.toCodes(t))
}

// LinesRescaled is LinesRequantised for [Ints.QuadsRescaled].
func (f *Ints) LinesRescaled(t *CodeTile, rows int, l Lines, out int) {
	f.lines(t, rows, l, out, f.requant.toRescaled(t))
}

// lines computes lines of sums and requantises them.
func (f *Ints) lines(t *CodeTile, rows int, l Lines, out int, kernels *requantKernels) {
	start, more := t.Start, cmp.Or(t.more, 2)
	t.Start = nil
	f.matrixTiles.lines(&t.IntTile, rows, t.columns(), l)
	t.Start = start
	if out == rows*t.RowOut {
		t.requantise(l.N*rows, kernels, false, more)
		return
	}
	sums, codes := t.C, t.Out
	for i := range l.N {
		t.C = (*int32)(unsafe.Add(unsafe.Pointer(sums), i*rows*t.RowC))
		t.Out = (*uint8)(unsafe.Add(unsafe.Pointer(codes), i*out))
		t.requantise(rows, kernels, false, more)
	}
	t.C, t.Out = sums, codes
}

// requantise requantises the sums at C. Depending on more, it adds Start to them first.
func (t *CodeTile) requantise(rows int, kernels *requantKernels, transposed bool, more int) {
	segs, was := t.Segs, t.more
	t.Segs, t.more = 0, more
	t.inRows(rows, kernels, transposed)
	t.Segs, t.more = segs, was
}

// inRows computes any number of rows. A call computes several tiles if their sums start from
// Start or are complete.
func (t *CodeTile) inRows(rows int, kernels *requantKernels, transposed bool) {
	tile, out, scales, step := t.IntTile, t.Out, t.Scales, 0
	if transposed {
		step = 4
	}
	for rows > 0 {
		n := Evenly(rows, len(kernels))
		t.tiles, t.stepA, t.stepOut, t.doneA, t.doneOut = 1, n*t.RowA, n*t.RowOut, 0, 0
		if !transposed && (t.more == 0 || t.Segs == 0) {
			t.tiles = rows / n
		}
		if t.Segs == 0 { // only sums, without a product
			t.stepA = n * t.RowC
		}
		done := t.tiles * n
		kernels[n-1](t)
		if rows -= done; rows > 0 {
			t.nextRows(done, step)
			t.Out = (*uint8)(unsafe.Add(unsafe.Pointer(t.Out), done*t.RowOut))
			t.Scales = (*int32)(unsafe.Add(unsafe.Pointer(t.Scales), done*step))
		}
	}
	t.IntTile, t.Out, t.Scales = tile, out, scales
}
