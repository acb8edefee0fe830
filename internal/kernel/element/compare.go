package element

import (
	"cmp"
	"encoding/binary"

	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Comparisons give 1 where they hold and 0 where they do not.

// compared returns SIMD kernels for a relation if the processor has them for the type, else
// plain.
func compared[T cmp.Ordered](k simd.Relation, plain Loops[T, uint8]) Loops[T, uint8] {
	f := simd.RelationKernels()
	if !simd.HasCompare[T](f) {
		return plain
	}
	return Loops[T, uint8]{Vec: func(dst []uint8, a, b []T) {
		n := simd.Compare(f, k, dst, a, b)
		plain.Vec(dst[n:], a[n:], b[n:])
	}}
}

// Equal is a == b.
func Equal[T cmp.Ordered]() Loops[T, uint8] {
	return compared(simd.Equal, Loops[T, uint8]{equalVec[T], equalScalar[T], func(dst []uint8, a T, b []T) { equalScalar(dst, b, a) }, nil})
}

// NotEqual is a != b.
func NotEqual[T cmp.Ordered]() Loops[T, uint8] {
	return compared(simd.Unequal, Loops[T, uint8]{Vec: notEqualVec[T]})
}

// Less is a < b.
func Less[T cmp.Ordered]() Loops[T, uint8] {
	return compared(simd.Less, Loops[T, uint8]{Vec: lessVec[T]})
}

// LessEqual is a <= b.
func LessEqual[T cmp.Ordered]() Loops[T, uint8] {
	return compared(simd.LessEqual, Loops[T, uint8]{Vec: lessEqualVec[T]})
}

// Greater is a > b.
func Greater[T cmp.Ordered]() Loops[T, uint8] { return swapped(Less[T]()) }

// GreaterEqual is a >= b.
func GreaterEqual[T cmp.Ordered]() Loops[T, uint8] { return swapped(LessEqual[T]()) }

// swapped swaps the operands.
func swapped[T any](l Loops[T, uint8]) Loops[T, uint8] {
	return Loops[T, uint8]{Vec: func(dst []uint8, a, b []T) { l.Vec(dst, b, a) }}
}

func equalVec[T cmp.Ordered](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = tensor.Truth(a[i] == b[i])
	}
}

func equalScalar[T cmp.Ordered](dst []uint8, a []T, b T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = tensor.Truth(a[i] == b)
	}
}

func notEqualVec[T cmp.Ordered](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = tensor.Truth(a[i] != b[i])
	}
}

func lessVec[T cmp.Ordered](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = tensor.Truth(a[i] < b[i])
	}
}

func lessEqualVec[T cmp.Ordered](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = tensor.Truth(a[i] <= b[i])
	}
}

// inWords combines bytes eight at a time and returns how many; 0 for other types.
func inWords[T tensor.Integer](dst, a, b []T, of func(x, y uint64) uint64) int {
	d, ok := any(dst).([]uint8)
	if !ok {
		return 0
	}
	x, y, n := any(a).([]uint8), any(b).([]uint8), len(d)/8*8
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(d[i:], of(binary.LittleEndian.Uint64(x[i:]), binary.LittleEndian.Uint64(y[i:])))
	}
	return n
}

// And is a & b.
func And[T tensor.Integer]() Loops[T, T] {
	return inIntegers(simd.BitAnd, Loops[T, T]{Vec: func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := inWords(dst, a, b, func(x, y uint64) uint64 { return x & y }); i < len(dst); i++ {
			dst[i] = a[i] & b[i]
		}
	}})
}

// Or is a | b.
func Or[T tensor.Integer]() Loops[T, T] {
	return inIntegers(simd.BitOr, Loops[T, T]{Vec: func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := inWords(dst, a, b, func(x, y uint64) uint64 { return x | y }); i < len(dst); i++ {
			dst[i] = a[i] | b[i]
		}
	}})
}

// Xor is a ^ b.
func Xor[T tensor.Integer]() Loops[T, T] {
	return inIntegers(simd.BitXor, Loops[T, T]{Vec: func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := inWords(dst, a, b, func(x, y uint64) uint64 { return x ^ y }); i < len(dst); i++ {
			dst[i] = a[i] ^ b[i]
		}
	}})
}

// ShiftLeft is a << b. Go fills shifts by the width or more, and a negative amount read as a huge
// one, with zeros or sign bits: ONNX asks for the same.
func ShiftLeft[T tensor.Integer]() Loops[T, T] {
	return Loops[T, T]{
		Vec: func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] << uint64(b[i])
			}
		},
		VectorScalar: func(dst, a []T, b T) {
			a = a[:len(dst)]
			for i := range dst {
				dst[i] = a[i] << uint64(b)
			}
		},
	}
}

// ShiftRight is a >> b, as [ShiftLeft].
func ShiftRight[T tensor.Integer]() Loops[T, T] {
	return Loops[T, T]{
		Vec: func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = a[i] >> uint64(b[i])
			}
		},
		VectorScalar: func(dst, a []T, b T) {
			a = a[:len(dst)]
			for i := range dst {
				dst[i] = a[i] >> uint64(b)
			}
		},
	}
}
