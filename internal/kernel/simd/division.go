package simd

import "unsafe"

// Quotient is a result of a division.
type Quotient uint8

// The results: the quotient truncated towards zero, the remainder of the truncated quotient, and
// the remainder of the floored quotient. The result of an integer division by zero is zero.
const (
	TruncatedQuotient Quotient = iota
	TruncatedRemainder
	FlooredRemainder

	quotientKinds = iota
)

// divisionKernel computes elements and returns their number. It stops before elements that it
// cannot compute.
type divisionKernel func(dst, a, b *byte, n int) int

// Divisions holds kernels that divide elements.
type Divisions struct {
	Set     Set
	ints    [quotientKinds][intKinds]divisionKernel
	singles divisionKernel // TruncatedRemainder of float32
	doubles divisionKernel // TruncatedRemainder of float64
}

// DivisionKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func DivisionKernels() *Divisions { return divisionKernels.pick() }

// division returns the kernel of an element type, or nil if it is not available.
func division[T any](f *Divisions, k Quotient) divisionKernel {
	if f == nil {
		return nil
	}
	if kind, ok := intKind[T](); ok {
		return f.ints[k][kind]
	}
	switch any(*new(T)).(type) {
	case float32:
		if k == TruncatedRemainder {
			return f.singles
		}
	case float64:
		if k == TruncatedRemainder {
			return f.doubles
		}
	}
	return nil
}

// HasDivisions reports whether [Divide] has a kernel.
func HasDivisions[T any](f *Divisions, k Quotient) bool { return division[T](f, k) != nil }

// plainDivisions is the number of elements that plain Go computes after a kernel stops. An element
// that the kernel cannot compute is seldom alone.
const plainDivisions = 64

// Divide writes the results of divisions, bit-exact to plain. plain computes the elements that a
// kernel cannot compute: dividends of more than 53 bits; and floats divided by zero or NaN, or
// with quotients of more than 52 bits. dst may be an operand.
func Divide[T any](f *Divisions, k Quotient, dst, a, b []T, plain func(dst, a, b []T)) {
	kernel := division[T](f, k)
	for len(dst) > 0 {
		a, b = a[:len(dst)], b[:len(dst)]
		n := kernel((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&a[0])), (*byte)(unsafe.Pointer(&b[0])), len(dst))
		dst, a, b = dst[n:], a[n:], b[n:]
		n = min(plainDivisions, len(dst))
		plain(dst[:n], a[:n], b[:n])
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}
