package simd

// Pools holds pooling kernels over adjacent 8-bit values: the channels of a position, or all
// values of a line. They take any number of values, signed or not. Steps are in elements.
type Pools struct {
	Set          Set
	addBytes     [2]func(dst *int32, src *byte, step, lines, n int)
	largestBytes [3]func(dst, src *byte, step, lines, n int)
	largestTaps  [3]func(dst *byte, stepDst int, src *byte, stepSrc, tap, taps, places, n int)
	averageTaps  func(dst *byte, stepDst int, src *int32, stepSrc, tap, taps, places, n int, by, half float32, lo, hi int32)
	addFloats    func(dst, src *float32, step, lines, n int)
}

// PoolKind is the type of the values of a maximum.
type PoolKind uint8

// Types of quantised values.
const (
	UnsignedBytes PoolKind = iota
	SignedBytes
	SignedWords
)

// PoolKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func PoolKernels() *Pools { return poolKernels.pick() }

// AddBytes writes the sums of lines, at least one, of len(dst) values. Lines are step values
// apart.
func (f *Pools) AddBytes(dst []int32, src []uint8, step, lines int, signed bool) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.addBytes[boolIndex(signed)](&dst[0], &src[0], step, lines, n)
	}
}

// AddFloats is AddBytes for float32. Sums start from zero and add the lines in order.
func (f *Pools) AddFloats(dst, src []float32, step, lines int) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.addFloats(&dst[0], &src[0], 4*step, lines, n)
	}
}

// LargestBytes writes the maxima of lines, at least one, of len(dst) bytes. Lines are step bytes
// apart.
func (f *Pools) LargestBytes(dst, src []uint8, step, lines int, kind PoolKind) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.largestBytes[kind](&dst[0], &src[0], step, lines, n)
	}
}

// LargestTaps writes, at places positions of n bytes each, stepDst apart, the maximum of taps
// taps. There is at least one tap. Taps are tap apart, positions stepSrc.
func (f *Pools) LargestTaps(dst []uint8, stepDst int, src []uint8, stepSrc, tap, taps, places, n int, kind PoolKind) {
	if places <= 0 || n <= 0 {
		return
	}
	_, _ = dst[(places-1)*stepDst+n-1], src[(places-1)*stepSrc+(taps-1)*tap+n-1]
	f.largestTaps[kind](&dst[0], stepDst, &src[0], stepSrc, tap, taps, places, n)
}

// AverageTaps is LargestTaps for the average: the sum of the taps divided by by, with halves
// rounded away from zero, limited to lo and hi. The magnitude of a sum is at most 2^23; by is 1
// to 2^16.
func (f *Pools) AverageTaps(dst []uint8, stepDst int, src []int32, stepSrc, tap, taps, places, n int, by, lo, hi int32) {
	if places <= 0 || n <= 0 {
		return
	}
	_, _ = dst[(places-1)*stepDst+n-1], src[(places-1)*stepSrc+(taps-1)*tap+n-1]
	f.averageTaps(&dst[0], stepDst, &src[0], 4*stepSrc, 4*tap, taps, places, n, float32(by), float32(by/2), lo, hi)
}
