package simd

import (
	"encoding/binary"
	"unsafe"
)

// Ints multiplies matrices of 8-bit numbers with 32-bit sums, which are exact. The
// left-hand numbers come widened to 16 bits, as differences to their zero point; two
// neighbours along the sum are multiplied and added in one step. Some sets multiply and add four
// neighbours of 8 bits, of which the one side has a sign and the other has none.
type Ints struct {
	Set Set
	// Rows and Cols are the size of the largest tile; columns come in panels of Cols.
	Rows, Cols int
	// Lanes is the number of channels that Requantise takes at a time, Step that of the
	// values of Widen.
	Lanes, Step  int
	narrow, wide []func(t *IntTile)
	widenInt8    func(dst *int16, src *byte, n int, zero int16)
	widenUint8   func(dst *int16, src *byte, n int, zero int16)
	gather       func(dst, src *int16, offs *int32, n int, runs *int32, nruns int)
	// Fours of 8-bit numbers; nil where the set has no such products.
	quads, turned []func(t *IntTile)
	gatherQuads   func(dst, src *byte, offs *int32, n int, runs *int32, nruns int)
	// Whole registers of channels; the second for as many as fewLanes.
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
	more       int    // sums go on from what c holds
	Start      *int32 // what sums of fours begin with: of each column, or of each row
}

// SetContinue says whether sums go on from what c holds.
func (t *IntTile) SetContinue(on bool) {
	t.more = 0
	if on {
		t.more = 1
	}
}

// Run computes rows rows of a whole panel; wide says that b has 16-bit numbers, and not
// 8-bit ones.
func (f *Ints) Run(t *IntTile, rows int, wide bool) {
	if wide {
		f.wide[rows-1](t)
		return
	}
	f.narrow[rows-1](t)
}

// Quads tells whether there are products of fours of 8-bit numbers.
func (f *Ints) Quads() bool { return f.quads != nil }

// RunQuads computes rows rows of a whole panel, fours of 8-bit numbers at a time: those of a have no
// sign, those of b have one. Start has a number for each column.
func (f *Ints) RunQuads(t *IntTile, rows int) { f.quads[rows-1](t) }

// RunTurned is RunQuads with signs in a and none in b; Start has a number for each row.
func (f *Ints) RunTurned(t *IntTile, rows int) { f.turned[rows-1](t) }

// GatherQuads is Gather for fours of 8-bit numbers, a row for each four of offs.
func (f *Ints) GatherQuads(dst, src []uint8, offs []int32, runs []Run) {
	if len(offs) == 0 || len(runs) == 0 {
		return
	}
	last := runs[len(runs)-1]
	_ = dst[((len(offs)/4-1)*f.Cols+int(last.To)+f.Cols)*4-1]
	f.gatherQuads(unsafe.SliceData(dst), unsafe.SliceData(src), &offs[0], len(offs)/4, &runs[0].From, len(runs))
}

// Unsigned writes the bits of 8-bit numbers as numbers without a sign: those with one get 128 added.
func Unsigned(dst, src []uint8, signed bool) {
	if !signed {
		copy(dst, src)
		return
	}
	dst = dst[:len(src)]
	const flip = 0x8080808080808080
	for len(src) >= 8 && len(dst) >= 8 {
		binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(src)^flip)
		dst, src = dst[8:], src[8:]
	}
	for i, v := range src {
		dst[i] = v ^ 0x80
	}
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
type Scales struct{ Mul, Up, Down, Bias []int32 }

// Requantise turns rows of sums into 8-bit values: of channel i round((sum + bias) <<
// up · mul / 2^31 / 2^down) + zero, between lo and hi, in the rounding of TFLite (the
// product to the nearest, ties up; the shift to the nearest, ties away from zero). n
// channels are written for each row; the scales begin at channel at. It does nothing and
// returns false for fewer channels than the smallest register takes.
func (f *Ints) Requantise(dst []uint8, stepDst int, sums []int32, stepSums, rows, n int, s *Scales, at int, zero, lo, hi int32) bool {
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

// fewLanes is the number of channels of the smallest register.
const fewLanes = 8
