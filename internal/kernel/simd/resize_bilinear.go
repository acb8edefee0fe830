package simd

import (
	"math"
	"unsafe"
)

// Resizes holds kernels of bilinear interpolation: that of TFLite, and along lines.
type Resizes struct {
	Set          Set
	acrossFloats func(dst, top, bottom *float32, taps *Tap, count, channels int)
	mixBytes     func(dst *int32, top, bottom *byte, n int, left, right int32)
	acrossBytes  func(dst *byte, src *int32, taps *Tap, count, channels int)
	between      func(dst *float32, stepDst int, src *float32, stepSrc, lines int, blocks *Between, count int)
	block        int // values that are read and written at least, 0 for any number
}

// Slack is the number of values behind the lines of [Resizes.AcrossFloats] and
// [Resizes.AcrossBytes] that lets all positions be computed by the kernels.
const Slack = 8

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

// inside returns how many of the taps, from the first on, read and write blocks that lie within n
// values and a line.
func (r *Resizes) inside(taps []Tap, channels, n, line int) int {
	each := max(channels, r.block)
	for i, t := range taps {
		if lo, hi := int(min(t.Lo, t.Hi)), int(max(t.Lo, t.Hi)); i*channels+each > n || lo < 0 || hi/4+each > line {
			return i
		}
	}
	return len(taps)
}

// AcrossFloats writes, for each tap and channel, ((top·left + bottom·left) + top'·right) +
// bottom'·right, with each step rounded.
func (r *Resizes) AcrossFloats(dst, top, bottom []float32, taps []Tap, channels int) {
	whole := r.inside(taps, channels, len(dst), min(len(top), len(bottom)))
	if whole > 0 && channels > 0 {
		r.acrossFloats(&dst[0], &top[0], &bottom[0], &taps[0], whole, channels)
	}
	for i, t := range taps[whole:] {
		lo, hi, left, right := t.Lo/4, t.Hi/4, math.Float32frombits(t.Left), math.Float32frombits(t.Right)
		out := dst[(whole+i)*channels:][:channels]
		for k := range out {
			lo, hi := int(lo)+k, int(hi)+k
			out[k] = float32(top[lo]*left) + float32(bottom[lo]*left) + float32(top[hi]*right) + float32(bottom[hi]*right) + 0
		}
	}
}

// MixBytes writes top·left + bottom·right of signed quantised values.
func (r *Resizes) MixBytes(dst []int32, top, bottom []int8, left, right int32) {
	n := len(dst)
	top, bottom = top[:n], bottom[:n]
	if n > 0 && n >= r.block {
		r.mixBytes(&dst[0], (*byte)(unsafe.Pointer(&top[0])), (*byte)(unsafe.Pointer(&bottom[0])), n, left, right)
		return
	}
	for i := range dst {
		dst[i] = int32(top[i])*left + int32(bottom[i])*right
	}
}

// AcrossBytes writes, for each tap and channel, (src·left + src'·right) / 2^20, rounded to the
// nearest, ties away from zero.
func (r *Resizes) AcrossBytes(dst []int8, src []int32, taps []Tap, channels int) {
	whole := r.inside(taps, channels, len(dst), len(src))
	if whole > 0 && channels > 0 {
		r.acrossBytes((*byte)(unsafe.Pointer(&dst[0])), &src[0], &taps[0], whole, channels)
	}
	for i, t := range taps[whole:] {
		out := dst[(whole+i)*channels:][:channels]
		for k := range out {
			x := src[int(t.Lo/4)+k]*int32(t.Left) + src[int(t.Hi/4)+k]*int32(t.Right)
			out[k] = int8((x + x>>31 + 1<<19) >> 20)
		}
	}
}
