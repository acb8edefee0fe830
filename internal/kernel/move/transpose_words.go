package move

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Word is a number of 32 bits.
type Word interface{ float32 | int32 | uint32 }

// Words are elements as words, four bytes each. They begin at a multiple of four.
func Words[T any](v []T) []uint32 {
	var x T
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(x))/4)
}

// Transpose writes rows rows of cols values, value j of row i from row j, value i of src; rows of dst are stepDst values apart, those of
// src stepSrc.
func Transpose[T Word](dst []T, stepDst int, src []T, stepSrc, rows, cols int) {
	if e := simd.ElementKernels(); e == nil || !e.Turn(Words(dst), stepDst, Words(src), stepSrc, rows, cols) {
		transposeSquares(dst, stepDst, src, stepSrc, rows, cols)
	}
}

// Deinterleave takes rows of n words that lie side by side apart: line j of dst, of as many words as there are rows, has word j of each. dst has room
// for 8 lines at least. It returns how many of the first rows it did, which is all of them, all but a few, or none where no loop in vectors
// does it.
func Deinterleave(dst, src []uint32, rows, n int) int {
	f, e := simd.WindowKernels(), simd.ElementKernels()
	switch {
	case f == nil || e == nil || n < 2:
		return 0
	case n < 8 && f.CopyLines(nil, asFloats(dst), rows, asFloats(src), 1, n, rows, n):
		return rows
	case n < 8:
		// Words behind a row are those of the next one, and come to lines that nothing reads.
		if done := min(rows, (len(src)-8)/n+1); done >= 8 && e.Turn(dst, rows, src, n, 8, done) {
			return done
		}
		return 0
	}
	if e.Turn(dst, rows, src, n, n, rows) {
		return rows
	}
	return 0
}

// asFloats are words as numbers.
func asFloats(v []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// Transpose16 is [Turn] for numbers of 16 bits.
func Transpose16(dst []int16, stepDst int, src []int16, stepSrc, rows, cols int) {
	if e := simd.ElementKernels(); e == nil || !e.TurnHalves(uint16sOf(dst), stepDst, uint16sOf(src), stepSrc, rows, cols) {
		transposeSquares(dst, stepDst, src, stepSrc, rows, cols)
	}
}

// uint16sOf are numbers of 16 bits without a sign.
func uint16sOf(v []int16) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// transposeSquares is Turn in plain Go, in squares that stay in the nearest cache.
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
