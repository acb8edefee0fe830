package simd

import "unsafe"

// Relation is what two numbers are to each other, or not.
type Relation uint8

// The relations; of what is no number only the second holds.
const (
	Equal Relation = iota
	Unequal
	Less
	LessEqual
)

// relationLoop writes 1 for each of n pairs of which a relation holds, and 0 for the others.
type relationLoop func(dst, a, b *byte, n int)

// Relations are comparisons of elements.
type Relations struct {
	Set                                Set
	each                               int             // the number of elements of a call is a multiple of this
	floats, ints, longs, bytes, signed [4]relationLoop // by relation; bytes without and with a sign
}

// RelationKernels of the current set; nil where plain Go is all there is.
func RelationKernels() *Relations { return relations.pick() }

// comparison is the loop of a relation of elements of a type; nil for none.
func comparison[T any](f *Relations, k Relation) relationLoop {
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

// HasCompare tells whether [Compare] has loops for a type.
func HasCompare[T any](f *Relations) bool { return comparison[T](f, Equal) != nil }

// Compare writes 1 where a relation holds of two elements and 0 elsewhere; it returns for how many elements it did so: the caller does the
// rest.
func Compare[T any](f *Relations, k Relation, dst []uint8, a, b []T) int {
	loop := comparison[T](f, k)
	if loop == nil || len(dst) < f.each {
		return 0
	}
	n := len(dst) / f.each * f.each
	_, _ = a[n-1], b[n-1]
	loop(&dst[0], (*byte)(unsafe.Pointer(&a[0])), (*byte)(unsafe.Pointer(&b[0])), n)
	return n
}
