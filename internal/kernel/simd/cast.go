package simd

// CastKind is a type of elements that conversions know.
type CastKind uint8

// The types.
const (
	CastBool CastKind = iota // anything but zero holds
	CastHalf
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
	CastBrain // bfloat16

	castKinds = iota
)

var castSizes = [castKinds]int{1, 2, 4, 8, 1, 1, 4, 8, 2, 2, 4, 8, 2}

type castLoop func(dst, src *byte, n int)

// Casts are conversions between types of elements.
type Casts struct {
	Set   Set
	each  int // the number of elements of a call is a multiple of this
	loops [castKinds][castKinds]castLoop
}

// CastKernels of the current set; nil where plain Go is all there is.
func CastKernels() *Casts { return castLoops.pick() }

// Has tells whether there is a loop.
func (c *Casts) Has(from, to CastKind) bool { return c != nil && c.loops[from][to] != nil }

// Cast converts elements as they lie in memory; it returns for how many it did so: the caller does the rest. Floats are rounded to the nearest,
// ties to even. Integers are truncated, those of floats towards zero: what 32 or 64 bits with a sign cannot hold becomes the smallest number, of others
// the lower bits count, of 64, but where 64 bits without a sign hold it.
func (c *Casts) Cast(dst, src []byte, from, to CastKind) int {
	n := len(dst) / castSizes[to] / c.each * c.each
	if n > 0 {
		_ = src[n*castSizes[from]-1]
		c.loops[from][to](&dst[0], &src[0], n)
	}
	return n
}
