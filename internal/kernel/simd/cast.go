package simd

// CastKind is an element type of a cast.
type CastKind uint8

// The element types of casts.
const (
	CastBool CastKind = iota // all values other than zero are true
	CastFloat16
	CastFloat
	CastDouble
	CastInt8
	CastUint8
	CastInt32
	CastInt64
	CastInt16
	CastUint16
	CastUint32
	CastUint64
	CastBFloat16 // bfloat16

	castKinds = iota
)

var castSizes = [castKinds]int{1, 2, 4, 8, 1, 1, 4, 8, 2, 2, 4, 8, 2}

type castKernel func(dst, src *byte, n int)

// Casts holds kernels that convert between element types.
type Casts struct {
	Set      Set
	multiple int // n of a call is a multiple of this
	kernels  [castKinds][castKinds]castKernel
}

// CastKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func CastKernels() *Casts { return castKernels.pick() }

// Has reports whether a kernel is available.
func (c *Casts) Has(from, to CastKind) bool { return c != nil && c.kernels[from][to] != nil }

// Cast converts elements, in their memory representation. It returns the number of elements
// written; the caller converts the rest.
//
// Floats are rounded to the nearest, ties to even. Floats become integers by truncation towards
// zero. A float that int32 or int64 cannot hold becomes the smallest integer. The other integer
// types take the lower bits of the int64 value; uint64 also takes values that only uint64 can
// hold. Integers become smaller integers by truncation to the lower bits.
func (c *Casts) Cast(dst, src []byte, from, to CastKind) int {
	n := len(dst) / castSizes[to] / c.multiple * c.multiple
	if n > 0 {
		_ = src[n*castSizes[from]-1]
		c.kernels[from][to](&dst[0], &src[0], n)
	}
	return n
}
