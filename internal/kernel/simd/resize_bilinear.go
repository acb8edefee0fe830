package simd

import "unsafe"

// Resizes are loops of bilinear interpolation: of TFLite, and along lines.
type Resizes struct {
	Set          Set
	acrossFloats func(dst, top, bottom *float32, taps *Tap, count, channels int)
	mixBytes     func(dst *int32, top, bottom *byte, n int, left, right int32)
	acrossBytes  func(dst *byte, src *int32, taps *Tap, count, channels int)
	between      func(dst *float32, stepDst int, src *float32, stepSrc, lines int, blocks *Between, count int)
}

// Between says what 16 neighbouring values of a line lie between: places in 32 values from Base on, with their weights. Bits of In
// are the values of these that are read, those of Out the values that are written.
type Between struct {
	Base        int64 // in bytes
	In, Out     uint32
	Lo, Hi      [16]int32
	Left, Right [16]float32
}

var _ = [1]struct{}{}[unsafe.Sizeof(Between{})-272]

// Between writes lines, stepDst values apart, whose values are left·lo + right·hi of those of src, stepSrc apart: products and sums are
// rounded apart. Blocks follow each other; the caller answers for what they read and write.
func (r *Resizes) Between(dst []float32, stepDst int, src []float32, stepSrc, lines int, blocks []Between) {
	if lines > 0 && len(blocks) > 0 {
		r.between(&dst[0], 4*stepDst, &src[0], 4*stepSrc, lines, &blocks[0], len(blocks))
	}
}

// ResizeKernels of the current set; nil where plain Go is all there is.
func ResizeKernels() *Resizes { return resizeLoops.pick() }

// Tap says what a position lies between: the first channel of either, times four, and their weights, float32 or whole.
type Tap struct {
	Lo, Hi      int32
	Left, Right uint32 // bits
}

var _ = [1]struct{}{}[unsafe.Sizeof(Tap{})-16]

// AcrossFloats writes, for each tap and channel, ((top·left + bottom·left) + top'·right) + bottom'·right, each step rounded.
func (r *Resizes) AcrossFloats(dst, top, bottom []float32, taps []Tap, channels int) {
	if len(taps) == 0 || channels == 0 {
		return
	}
	_ = dst[len(taps)*channels-1]
	for _, t := range taps {
		_, _ = top[:len(bottom)], bottom[int(max(t.Lo, t.Hi))/4+channels-1]
		_ = top[min(t.Lo, t.Hi)/4]
	}
	r.acrossFloats(&dst[0], &top[0], &bottom[0], &taps[0], len(taps), channels)
}

// MixBytes writes top·left + bottom·right, of codes with a sign.
func (r *Resizes) MixBytes(dst []int32, top, bottom []int8, left, right int32) {
	if n := len(dst); n > 0 {
		_, _ = top[n-1], bottom[n-1]
		r.mixBytes(&dst[0], (*byte)(unsafe.Pointer(&top[0])), (*byte)(unsafe.Pointer(&bottom[0])), n, left, right)
	}
}

// AcrossBytes writes, for each tap and channel, src·left + src'·right, divided by 2^20, to the nearest, ties away from zero.
func (r *Resizes) AcrossBytes(dst []int8, src []int32, taps []Tap, channels int) {
	if len(taps) == 0 || channels == 0 {
		return
	}
	_ = dst[len(taps)*channels-1]
	for _, t := range taps {
		_, _ = src[int(max(t.Lo, t.Hi))/4+channels-1], src[min(t.Lo, t.Hi)/4]
	}
	r.acrossBytes((*byte)(unsafe.Pointer(&dst[0])), &src[0], &taps[0], len(taps), channels)
}
