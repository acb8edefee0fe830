package simd

import (
	"math"
	"unsafe"
)

// IntOp is an operation on two integers, modulo their range.
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

// intKinds are integers of 8, 16, 32 and 64 bits, each with a sign and without.
const intKinds = 8

// intKind is the kind of a type; false for what is no integer.
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

// integers is the loop of an operation on integers of a type; nil for none.
func integers[T any](e *Elements, k IntOp) func(dst, a, b *float32, n int) {
	if kind, ok := intKind[T](); ok && e != nil {
		return e.ints[k][kind]
	}
	return nil
}

// HasIntegers tells whether [Integers] has a loop.
func HasIntegers[T any](e *Elements, k IntOp) bool { return integers[T](e, k) != nil }

// Integers writes the results of an operation on pairs of integers; it returns for how many it did so: the caller does the rest. dst may be
// an operand.
func Integers[T any](e *Elements, k IntOp, dst, a, b []T) int {
	loop, each := integers[T](e, k), int(32/unsafe.Sizeof(*new(T)))
	n := len(dst) / each * each
	if loop == nil || n == 0 {
		return 0
	}
	_, _ = a[n-1], b[n-1]
	loop(words(dst), words(a), words(b), n/each*8)
	return n
}

// words are elements as loops over 32 bits take them.
func words[T any](v []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(v))) }

// XorBytes writes src with the bits of by turned; it returns for how many bytes it did so. dst may be src.
func (e *Elements) XorBytes(dst, src []uint8, by uint8) int {
	n := len(dst) / 32 * 32
	if e == nil || e.xorAll == nil || n == 0 {
		return 0
	}
	_ = src[n-1]
	e.xorAll(words(dst), words(src), math.Float32frombits(uint32(by)*0x01010101), n/4)
	return n
}
