package simd

import "unsafe"

// Extremes find the greatest and the smallest numbers. What is no number wins over numbers; the sign of a zero may be that of any of them.
type Extremes struct {
	Set         Set
	lines, rows [2][extremeKinds]extremeLoop // of the greatest, of the smallest; nil for none
}

// extremeLoop writes n extremes of columns of lines, step bytes apart, or those of as many rows as there are lines, n numbers each, side by side.
type extremeLoop func(dst, src *byte, lines, n, step int)

// The kinds of numbers: those of integers, and of floating-point numbers.
const (
	floatKind = intKinds + iota
	doubleKind

	extremeKinds
)

// extremeKind is the kind of a type; false for others.
func extremeKind[T any]() (int, bool) {
	switch any(*new(T)).(type) {
	case float32:
		return floatKind, true
	case float64:
		return doubleKind, true
	}
	return intKind[T]()
}

// ExtremeKernels of the current set; nil where plain Go is all there is.
func ExtremeKernels() *Extremes { return extremeLoops.pick() }

// HasExtremes tells whether there are loops for a type.
func HasExtremes[T any](f *Extremes) bool {
	kind, ok := extremeKind[T]()
	return ok && f != nil && f.rows[0][kind] != nil
}

// ExtremeLines writes the greatest number of each of len(dst) columns of lines, at least one, that lie step elements apart, or the smallest; only where
// [HasExtremes] holds, as ExtremeRows.
func ExtremeLines[T any](f *Extremes, least bool, dst, src []T, step, lines int) {
	kind, _ := extremeKind[T]()
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.lines[sign(least)][kind](numbers[byte](dst), numbers[byte](src), lines, n, step*int(unsafe.Sizeof(*new(T))))
	}
}

// ExtremeRows writes the greatest number of each of len(dst) rows of n, at least one, side by side, or the smallest.
func ExtremeRows[T any](f *Extremes, least bool, dst, src []T, n int) {
	kind, _ := extremeKind[T]()
	if len(dst) > 0 {
		_ = src[len(dst)*n-1]
		f.rows[sign(least)][kind](numbers[byte](dst), numbers[byte](src), len(dst), n, 0)
	}
}
