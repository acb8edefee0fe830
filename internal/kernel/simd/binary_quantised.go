package simd

import "unsafe"

// Pairs are loops over two operands of codes of 8 or 16 bits in the fixed-point arithmetic of TFLite. They take any number of
// elements.
type Pairs struct {
	Set   Set
	loops [pairKinds][2]pairLoop[byte]
	words [pairKinds]pairLoop[int16] // nil for kinds that codes of 16 bits do not have
}

// pairLoop writes the results of rows side by side; steps are in bytes.
type pairLoop[T byte | int16] func(dst, a, b *T, rows, n, stepA, stepB, single int, q *Pair)

// PairKernels of the current set; nil where plain Go is all there is.
func PairKernels() *Pairs { return pairs.pick() }

// PairKind is what becomes of two operands.
type PairKind uint8

// Sum and differences bring operands to a finer scale first: (a - ZeroA) << (Shift - 1) and the scaled (b - ZeroB) <<
// Shift. Difference is that of a and b, Reverse that of b and a. Product is of the differences to the zero points. PRelu is
// the scaled (a - ZeroA) << Shift, where it is negative the product instead. Square is of the difference, in 16 bits of that of half of a - ZeroA, rounded
// up, and the scaled b - ZeroB. Leaky has no b: of what is negative it
// takes (a - ZeroA) << ZeroB.
const (
	PairSum PairKind = iota
	PairDifference
	PairReverse
	PairProduct
	PairPRelu
	PairSquare
	PairLeaky

	pairKinds = iota
)

// Scaling is a multiplication by a fixed-point number of 2^30 to 2^31 - 1 and a shift to the right by 0 to 30, in
// the rounding of [Ints.Requantise], as the assembly reads it.
type Scaling struct{ twice, down, half, negate int32 }

// NewScaling returns false for what it cannot be.
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

// Pair is what a loop needs to know. Sums, differences and products must be at most 2^30 in size.
type Pair struct {
	ZeroA, ZeroB int32
	Shift        int32
	B, Result    Scaling
	Zero, Lo, Hi int32 // of the result
}

// Combine writes results of the codes a and b, signed or not: of rows of n codes, whose results lie side by side. Those of the operands lie stepA and
// stepB codes apart, and of the operand that is single (1 for a, 2 for b, 0 for neither) they have one code.
func (f *Pairs) Combine(kind PairKind, dst, a, b []uint8, n, stepA, stepB, single int, q *Pair, signed bool) {
	combine(f.loops[kind][sign(signed)], dst, a, b, n, stepA, stepB, single, q)
}

// CombineWords is Combine for codes of 16 bits with a sign, of all kinds but PRelu.
func (f *Pairs) CombineWords(kind PairKind, dst, a, b []int16, n, stepA, stepB, single int, q *Pair) {
	combine(f.words[kind], dst, a, b, n, stepA, stepB, single, q)
}

func combine[T byte | int16](loop pairLoop[T], dst, a, b []T, n, stepA, stepB, single int, q *Pair) {
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
	loop(&dst[0], &a[0], &b[0], rows, n, size*stepA, size*stepB, single, q)
}
