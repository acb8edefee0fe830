package simd

// Pools are loops of pooling windows over 8-bit numbers that lie side by side: the channels of a position, or
// all values of a line. All take any number of them. Numbers are signed or not; steps are in elements.
type Pools struct {
	Set          Set
	addBytes     [2]func(dst *int32, src *byte, step, lines, n int)
	largestBytes [3]func(dst, src *byte, step, lines, n int)
	largestTaps  [3]func(dst *byte, stepDst int, src *byte, stepSrc, tap, taps, places, n int)
	averageTaps  func(dst *byte, stepDst int, src *int32, stepSrc, tap, taps, places, n int, by, half float32, lo, hi int32)
	addFloats    func(dst, src *float32, step, lines, n int)
}

// CodeKind is what codes the bytes hold whose largest is wanted.
type CodeKind uint8

// Kinds of codes.
const (
	UnsignedBytes CodeKind = iota
	SignedBytes
	SignedWords
)

// PoolKernels of the current set; nil where plain Go is all there is.
func PoolKernels() *Pools { return pools.pick() }

// AddBytes writes the sums of lines, at least one, of len(dst) numbers, which lie step apart.
func (f *Pools) AddBytes(dst []int32, src []uint8, step, lines int, signed bool) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.addBytes[sign(signed)](&dst[0], &src[0], step, lines, n)
	}
}

// AddFloats is AddBytes for float32: sums begin with zero and take the lines in order.
func (f *Pools) AddFloats(dst, src []float32, step, lines int) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.addFloats(&dst[0], &src[0], 4*step, lines, n)
	}
}

// LargestBytes writes the largest codes of lines, at least one, of len(dst) bytes, which lie step apart.
func (f *Pools) LargestBytes(dst, src []uint8, step, lines int, kind CodeKind) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.largestBytes[kind](&dst[0], &src[0], step, lines, n)
	}
}

// LargestTaps writes at places codes of n bytes each, stepDst apart: the largest of taps, at least one, that lie tap
// apart. Those of places lie stepSrc apart.
func (f *Pools) LargestTaps(dst []uint8, stepDst int, src []uint8, stepSrc, tap, taps, places, n int, kind CodeKind) {
	if places <= 0 || n <= 0 {
		return
	}
	_, _ = dst[(places-1)*stepDst+n-1], src[(places-1)*stepSrc+(taps-1)*tap+n-1]
	f.largestTaps[kind](&dst[0], stepDst, &src[0], stepSrc, tap, taps, places, n)
}

// AverageTaps is LargestTaps for sums of taps, at most 2^23 in size, divided by by, at least 1 and at most 2^16; halves are rounded
// away from zero. Results are limited to lo and hi.
func (f *Pools) AverageTaps(dst []uint8, stepDst int, src []int32, stepSrc, tap, taps, places, n int, by, lo, hi int32) {
	if places <= 0 || n <= 0 {
		return
	}
	_, _ = dst[(places-1)*stepDst+n-1], src[(places-1)*stepSrc+(taps-1)*tap+n-1]
	f.averageTaps(&dst[0], stepDst, &src[0], 4*stepSrc, 4*tap, taps, places, n, float32(by), float32(by/2), lo, hi)
}
