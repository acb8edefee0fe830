package simd

import (
	"math"
	"unsafe"
)

// IntOp is an operation on two integers with wrapping arithmetic.
type IntOp uint8

// The operations.
const (
	BitAnd IntOp = iota
	BitOr
	BitXor
	IntAdd
	IntSub
	IntMul
	IntMax
	IntMin

	intOps = iota
)

// intKinds is the number of integer types: 8, 16, 32 and 64 bits, each signed and unsigned.
const intKinds = 8

// intKind returns the index of an integer type; false for other types.
func intKind[T any]() (int, bool) {
	switch any(*new(T)).(type) {
	case int8:
		return 0, true
	case uint8:
		return 1, true
	case int16:
		return 2, true
	case uint16:
		return 3, true
	case int32:
		return 4, true
	case uint32:
		return 5, true
	case int64:
		return 6, true
	case uint64:
		return 7, true
	}
	return 0, false
}

// intKernel returns the kernel of an operation for an integer type, or nil if it is not available.
func intKernel[T any](e *Elements, k IntOp) func(dst, a, b *float32, n int) {
	if kind, ok := intKind[T](); ok && e != nil {
		return e.ints[k][kind]
	}
	return nil
}

// HasIntegers reports whether [Integers] has a kernel.
func HasIntegers[T any](e *Elements, k IntOp) bool { return intKernel[T](e, k) != nil }

// Integers applies an operation to pairs of integers. It returns the number of elements written;
// the caller computes the rest. dst may be an operand.
func Integers[T any](e *Elements, k IntOp, dst, a, b []T) int {
	kernel, each := intKernel[T](e, k), int(32/unsafe.Sizeof(*new(T)))
	n := len(dst) / each * each
	if kernel == nil || n == 0 {
		return 0
	}
	_, _ = a[n-1], b[n-1]
	kernel(words(dst), words(a), words(b), n/each*8)
	return n
}

// words converts a slice to the pointer that kernels of 32-bit words take.
func words[T any](v []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(v))) }

// XorBytes writes src XOR by. It returns the number of bytes written. dst may be src.
func (e *Elements) XorBytes(dst, src []uint8, by uint8) int {
	n := len(dst) / 32 * 32
	if e == nil || e.xorAll == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.xorAll(words(dst), words(src), math.Float32frombits(uint32(by)*0x01010101), n/4)
	return n
}
