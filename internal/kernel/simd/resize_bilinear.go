package simd

import "unsafe"

// Resizes holds kernels of bilinear interpolation: that of TFLite, and along lines.
type Resizes struct {
	Set          Set
	acrossFloats func(dst, top, bottom *float32, taps *Tap, count, channels int)
	mixBytes     func(dst *int32, top, bottom *byte, n int, left, right int32)
	acrossBytes  func(dst *byte, src *int32, taps *Tap, count, channels int)
	between      func(dst *float32, stepDst int, src *float32, stepSrc, lines int, blocks *Between, count int)
	minChannels  int // of acrossFloats
}

// HasFloats reports whether [Resizes.AcrossFloats] is available for so many channels.
func (r *Resizes) HasFloats(channels int) bool { return r != nil && channels >= r.minChannels }

// HasBytes reports whether [Resizes.MixBytes] and [Resizes.AcrossBytes] are available.
func (r *Resizes) HasBytes() bool { return r != nil && r.acrossBytes != nil }

// HasBetween reports whether [Resizes.Between] is available.
func (r *Resizes) HasBetween() bool { return r != nil && r.between != nil }

// Between describes the interpolation of 16 adjacent values of a line: the indices of their
// neighbours within 32 values from Base on, and the weights. Bits of In mark the values that are
// read, bits of Out the values that are written.
type Between struct {
	Base        int64 // in bytes
	In, Out     uint32
	Lo, Hi      [16]int32
	Left, Right [16]float32
}

var _ = [1]struct{}{}[unsafe.Sizeof(Between{})-272]

// Between writes lines whose values are left·lo + right·hi of the values of src. Lines are
// stepDst and stepSrc values apart. Products and sums are rounded separately. Blocks follow each
// other. The caller must make sure that they read and write within the slices.
func (r *Resizes) Between(dst []float32, stepDst int, src []float32, stepSrc, lines int, blocks []Between) {
	if lines > 0 && len(blocks) > 0 {
		r.between(&dst[0], 4*stepDst, &src[0], 4*stepSrc, lines, &blocks[0], len(blocks))
	}
}

// ResizeKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func ResizeKernels() *Resizes { return resizeKernels.pick() }

// Tap describes the neighbours of a position: the index of the first channel of each, times four,
// and their weights, as float32 or integers.
type Tap struct {
	Lo, Hi      int32
	Left, Right uint32 // bits of the weights
}

var _ = [1]struct{}{}[unsafe.Sizeof(Tap{})-16]

// AcrossFloats writes, for each tap and channel, ((top·left + bottom·left) + top'·right) +
// bottom'·right, with each step rounded.
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

// MixBytes writes top·left + bottom·right of signed quantised values.
func (r *Resizes) MixBytes(dst []int32, top, bottom []int8, left, right int32) {
	if n := len(dst); n > 0 {
		_, _ = top[n-1], bottom[n-1]
		r.mixBytes(&dst[0], (*byte)(unsafe.Pointer(&top[0])), (*byte)(unsafe.Pointer(&bottom[0])), n, left, right)
	}
}

// AcrossBytes writes, for each tap and channel, (src·left + src'·right) / 2^20, rounded to the
// nearest, ties away from zero.
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
