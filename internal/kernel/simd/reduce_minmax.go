package simd

import "unsafe"

// Extremes holds kernels for maxima and minima of all element types. NaN wins over numbers. If
// zeros of both signs are equal, the result may have the sign of either.
type Extremes struct {
	Set         Set
	lines, rows [2][extremeKinds]extremeKernel // of maxima, of minima; nil if absent
}

// extremeKernel writes the extremes of n columns of lines that are step bytes apart, or the
// extremes of lines rows of n adjacent values.
type extremeKernel func(dst, src *byte, lines, n, step int)

// The element types: integers as in intKind, then floats.
const (
	floatKind = intKinds + iota
	doubleKind

	extremeKinds
)

// extremeKind returns the index of an element type; false for other types.
func extremeKind[T any]() (int, bool) {
	switch any(*new(T)).(type) {
	case float32:
		return floatKind, true
	case float64:
		return doubleKind, true
	}
	return intKind[T]()
}

// ExtremeKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func ExtremeKernels() *Extremes { return extremeKernels.pick() }

// HasExtremes reports whether kernels for the element type are available.
func HasExtremes[T any](f *Extremes) bool {
	kind, ok := extremeKind[T]()
	return ok && f != nil && f.rows[0][kind] != nil
}

// ExtremeLines writes the maximum, or the minimum if least is set, of each of len(dst) columns of
// lines. There is at least one line; lines are step elements apart. As ExtremeRows, it requires
// [HasExtremes].
func ExtremeLines[T any](f *Extremes, least bool, dst, src []T, step, lines int) {
	kind, _ := extremeKind[T]()
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.lines[boolIndex(least)][kind](dataPointer[byte](dst), dataPointer[byte](src), lines, n, step*int(unsafe.Sizeof(*new(T))))
	}
}

// ExtremeRows writes the maximum, or the minimum if least is set, of each of len(dst) adjacent
// rows of n values, n at least 1.
func ExtremeRows[T any](f *Extremes, least bool, dst, src []T, n int) {
	kind, _ := extremeKind[T]()
	if len(dst) > 0 {
		_ = src[len(dst)*n-1]
		f.rows[boolIndex(least)][kind](dataPointer[byte](dst), dataPointer[byte](src), len(dst), n, 0)
	}
}
