package move

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Word is a 32-bit number.
type Word interface{ float32 | int32 | uint32 }

// Words views elements, whose size is a multiple of four bytes and which are four-byte aligned,
// as 32-bit words.
func Words[T any](v []T) []uint32 {
	var x T
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(x))/4)
}

// Transpose writes rows rows of cols values: dst[i][j] = src[j][i]. Rows of dst are stepDst
// values apart, rows of src stepSrc.
func Transpose[T Word](dst []T, stepDst int, src []T, stepSrc, rows, cols int) {
	if e := simd.ElementKernels(); e == nil || !e.Transpose(Words(dst), stepDst, Words(src), stepSrc, rows, cols) {
		transposeSquares(dst, stepDst, src, stepSrc, rows, cols)
	}
}

// Deinterleave splits contiguous rows of n words: line j of dst, one word per row, gets word j of
// each row. dst has room for at least 8 lines. It returns how many of the first rows it
// processed: all, all but a few, or none without a SIMD kernel.
func Deinterleave(dst, src []uint32, rows, n int) int {
	f, e := simd.WindowKernels(), simd.ElementKernels()
	switch {
	case f == nil || e == nil || n < 2:
		return 0
	case n < 8 && f.CopyLines(nil, asFloats(dst), rows, asFloats(src), 1, n, rows, n):
		return rows
	case n < 8:
		// The words behind a row belong to the next one; they go to lines that are not read.
		if done := min(rows, (len(src)-8)/n+1); done >= 8 && e.Transpose(dst, rows, src, n, 8, done) {
			return done
		}
		return 0
	}
	if e.Transpose(dst, rows, src, n, n, rows) {
		return rows
	}
	return 0
}

// asFloats views words as float32.
func asFloats(v []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// Transpose16 is [Transpose] for 16-bit values.
func Transpose16(dst []int16, stepDst int, src []int16, stepSrc, rows, cols int) {
	if e := simd.ElementKernels(); e == nil || !e.Transpose16(uint16sOf(dst), stepDst, uint16sOf(src), stepSrc, rows, cols) {
		transposeSquares(dst, stepDst, src, stepSrc, rows, cols)
	}
}

// uint16sOf views signed 16-bit values as unsigned.
func uint16sOf(v []int16) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// transposeSquares is Transpose in plain Go, in squares that stay in the L1 cache.
func transposeSquares[T any](dst []T, stepDst int, src []T, stepSrc, rows, cols int) {
	const side = 16
	for j0 := 0; j0 < cols; j0 += side {
		for i0 := 0; i0 < rows; i0 += side {
			for j := j0; j < min(j0+side, cols); j++ {
				at := i0*stepDst + j
				for _, v := range src[j*stepSrc+i0:][:min(side, rows-i0)] {
					dst[at] = v
					at += stepDst
				}
			}
		}
	}
}
