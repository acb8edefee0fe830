package simd

import "unsafe"

// Quotient is what a division gives.
type Quotient uint8

// What it gives: the quotient truncated towards zero, what that leaves, and what the quotient of the floor leaves. Divided by zero it is zero.
const (
	WholeQuotient Quotient = iota
	RestTruncated
	RestFloored

	quotientKinds = iota
)

// divisionLoop computes any number of elements, and returns how many it has: it ends before some with which it cannot.
type divisionLoop func(dst, a, b *byte, n int) int

// Divisions are divisions of elements.
type Divisions struct {
	Set     Set
	ints    [quotientKinds][intKinds]divisionLoop
	singles divisionLoop // RestTruncated of float32
	doubles divisionLoop // of float64
}

// DivisionKernels of the current set; nil where plain Go is all there is.
func DivisionKernels() *Divisions { return quotients.pick() }

// division is the loop of elements of a type; nil for none.
func division[T any](f *Divisions, k Quotient) divisionLoop {
	if f == nil {
		return nil
	}
	if kind, ok := intKind[T](); ok {
		return f.ints[k][kind]
	}
	switch any(*new(T)).(type) {
	case float32:
		if k == RestTruncated {
			return f.singles
		}
	case float64:
		if k == RestTruncated {
			return f.doubles
		}
	}
	return nil
}

// HasDivisions tells whether [Divide] has a loop.
func HasDivisions[T any](f *Divisions, k Quotient) bool { return division[T](f, k) != nil }

// hardDivisions is the number of elements that plain Go computes where vectors cannot: one that is hard is seldom alone.
const hardDivisions = 64

// Divide writes what divisions give, with the bits of plain, which computes the elements that vectors cannot: dividends of more than 53 bits, and
// floats divided by zero, by what is no number, or whose quotients have more than 52 bits. dst may be an operand.
func Divide[T any](f *Divisions, k Quotient, dst, a, b []T, plain func(dst, a, b []T)) {
	loop := division[T](f, k)
	for len(dst) > 0 {
		a, b = a[:len(dst)], b[:len(dst)]
		n := loop((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&a[0])), (*byte)(unsafe.Pointer(&b[0])), len(dst))
		dst, a, b = dst[n:], a[n:], b[n:]
		n = min(hardDivisions, len(dst))
		plain(dst[:n], a[:n], b[:n])
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}
