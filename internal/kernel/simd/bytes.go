package simd

import "unsafe"

// Ints multiplies matrices of 8-bit numbers with 32-bit sums, which are exact. The
// left-hand numbers come widened to 16 bits, as differences to their zero point; two
// neighbours along the sum are multiplied and added in one step.
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
	// Whole registers of channels; the second for as many as fewLanes.
	requantise, requantiseFew func(dst *byte, stepDst int, sums *int32, stepSums, rows, n int, mul, up, down, bias *int32, zero, lo, hi int32)
}

// IntKernels of 8-bit products in the current set; nil where plain Go is all there is.
func IntKernels() *Ints { return ints.pick() }

// IntTile is a piece of a product of integers, c = a·b: a few rows of a by one panel of
// b. Steps are in bytes. Pair k of segment s of row r of a lies at A + r*RowA + s*SegA +
// 4*k. b is a panel: for each pair of each segment Cols pairs of numbers.
type IntTile struct {
	A          *int16
	RowA, SegA int
	K, Segs    int // pairs in a segment, segments; both at least 1
	B          unsafe.Pointer
	C          *int32
	RowC       int
	more       int // sums go on from what c holds
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
