package simd

import "unsafe"

// Pairs holds kernels for two 8-bit or 16-bit quantised operands in the fixed-point arithmetic of
// TFLite. They take any number of elements.
type Pairs struct {
	Set       Set
	anyLength bool // else rows of at least 8 values, of which they compute a multiple of 8
	kernels   [pairKinds][2]pairKernel[byte]
	kernels16 [pairKinds]pairKernel[int16] // nil for kinds without 16-bit values
}

// pairKernel writes the results of rows, which are adjacent. Steps are in bytes.
type pairKernel[T byte | int16] func(dst, a, b *T, rows, n, stepA, stepB, single int, q *Pair)

// PairKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func PairKernels() *Pairs { return pairKernels.pick() }

// PairKind is an operation on two quantised operands.
type PairKind uint8

// The operations:
//
//   - PairSum, PairDifference (a - b) and PairReverse (b - a) first bring the operands to a finer
//     scale: (a - ZeroA) << (Shift - 1), and the scaled (b - ZeroB) << Shift.
//   - PairProduct multiplies the differences to the zero points.
//   - PairPRelu is the scaled (a - ZeroA) << Shift or, if that is negative, the product.
//   - PairSquare is the square of the difference. For 16 bits, the operands of the difference are
//     half of a - ZeroA, rounded up, and the scaled b - ZeroB.
//   - PairLeaky has no b: for negative values it uses (a - ZeroA) << ZeroB.
//   - PairScaled is PairProduct in float32: the product is multiplied by Scale, the Bias added with
//     the product's sign, and the sum rounded to the nearest integer, ties to even.
const (
	PairSum PairKind = iota
	PairDifference
	PairReverse
	PairProduct
	PairPRelu
	PairSquare
	PairLeaky
	PairScaled

	pairKinds = iota
)

// Scaling is a multiplication by a fixed-point number from 2^30 to 2^31 - 1 and a shift to the
// right by 0 to 30, with the rounding of [Ints.Requantise]. Its layout is known to the assembly.
type Scaling struct{ twice, down, half, negate int32 }

// NewScaling returns false for parameters outside these ranges.
func NewScaling(mul int32, down int) (Scaling, bool) {
	if mul < 1<<30 || down < 0 || down > 30 {
		return Scaling{}, false
	}
	s := Scaling{twice: int32(2 * int64(mul)), down: int32(down)}
	if down > 0 {
		s.half, s.negate = 1<<(down-1), -1
	}
	return s, true
}

// Pair holds the parameters of an operation. The magnitudes of sums, differences and products
// must be at most 2^30.
type Pair struct {
	ZeroA, ZeroB int32
	Shift        int32
	B, Result    Scaling
	Zero, Lo, Hi int32 // of the result
	Scale, Bias  float32
}

// Scales reports whether 8-bit values have a kernel for PairScaled.
func (f *Pairs) Scales() bool { return f.kernels[PairScaled][0] != nil }

// Combine computes rows of n results, which are adjacent, from quantised operands a and b, signed
// or not. Rows of the operands are stepA and stepB values apart. The operand single (1 for a, 2
// for b, 0 for neither) has one value for each row.
func (f *Pairs) Combine(kind PairKind, dst, a, b []uint8, n, stepA, stepB, single int, q *Pair, signed bool) {
	combine(f.kernels[kind][boolIndex(signed)], f.anyLength, dst, a, b, n, stepA, stepB, single, q)
}

// CombineWords is Combine for signed 16-bit values, for all kinds but PairPRelu and PairScaled.
func (f *Pairs) CombineWords(kind PairKind, dst, a, b []int16, n, stepA, stepB, single int, q *Pair) {
	combine(f.kernels16[kind], f.anyLength, dst, a, b, n, stepA, stepB, single, q)
}

func combine[T byte | int16](kernel pairKernel[T], anyLength bool, dst, a, b []T, n, stepA, stepB, single int, q *Pair) {
	if len(dst) == 0 {
		return
	}
	rows, lastA, lastB, size := len(dst)/n, n-1, n-1, int(unsafe.Sizeof(T(0)))
	switch single {
	case 1:
		lastA = 0
	case 2:
		lastB = 0
	}
	_, _ = a[(rows-1)*stepA+lastA], b[(rows-1)*stepB+lastB]
	whole := n
	if !anyLength {
		whole = n &^ 7
	}
	if whole > 0 {
		kernel(&dst[0], &a[0], &b[0], rows, n, size*stepA, size*stepB, single, q)
	}
	if whole == n {
		return
	}
	var x, y, z [8]T
	for r := range rows {
		copy(x[:], a[r*stepA+min(whole, lastA):r*stepA+lastA+1])
		copy(y[:], b[r*stepB+min(whole, lastB):r*stepB+lastB+1])
		kernel(&z[0], &x[0], &y[0], 1, 8, 0, 0, single, q)
		copy(dst[r*n+whole:][:n-whole], z[:])
	}
}
