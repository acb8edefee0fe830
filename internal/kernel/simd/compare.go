package simd

import "unsafe"

// Relation is a comparison of two elements.
type Relation uint8

// The comparisons. For NaN only Unequal is true.
const (
	Equal Relation = iota
	Unequal
	Less
	LessEqual
)

// relationKernel writes 1 for each of n pairs for which a comparison is true, else 0.
type relationKernel func(dst, a, b *byte, n int)

// Relations holds kernels that compare elements.
type Relations struct {
	Set      Set
	multiple int // n of a call is a multiple of this
	// By comparison. bytes are unsigned, signed are signed bytes.
	floats, ints, longs, bytes, signed [4]relationKernel
}

// RelationKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func RelationKernels() *Relations { return relationKernels.pick() }

// comparison returns the kernel of a comparison for an element type, or nil if it is not
// available.
func comparison[T any](f *Relations, k Relation) relationKernel {
	if f == nil {
		return nil
	}
	switch any(*new(T)).(type) {
	case float32:
		return f.floats[k]
	case int32:
		return f.ints[k]
	case int64:
		return f.longs[k]
	case uint8:
		return f.bytes[k]
	case int8:
		return f.signed[k]
	}
	return nil
}

// HasCompare reports whether [Compare] has kernels for an element type.
func HasCompare[T any](f *Relations) bool { return comparison[T](f, Equal) != nil }

// Compare writes 1 if a comparison of two elements is true, else 0. It returns the number of
// elements written; the caller computes the rest.
func Compare[T any](f *Relations, k Relation, dst []uint8, a, b []T) int {
	kernel := comparison[T](f, k)
	if kernel == nil || len(dst) < f.multiple {
		return 0
	}
	n := len(dst) / f.multiple * f.multiple
	_, _ = a[n-1], b[n-1]
	kernel(&dst[0], (*byte)(unsafe.Pointer(&a[0])), (*byte)(unsafe.Pointer(&b[0])), n)
	return n
}
