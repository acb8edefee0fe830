package simd

// RowOp is an operation of [Elements.Pairs].
type RowOp uint8

// Sum, difference, product, quotient, and square of the difference (rounded twice).
const (
	RowAdd RowOp = iota
	RowSub
	RowMul
	RowDiv
	RowSquare
	rowSubFrom
	rowDivFrom
	rowOps
)

// rowPairKernel is a kernel of [Elements.Pairs]. Steps are in bytes.
type rowPairKernel func(dst, a, b *float32, rows, n, stepA, stepB int)

// HasPairs reports whether [Elements.Pairs] is available.
func (e *Elements) HasPairs() bool { return e != nil && e.pairs[RowAdd][0] != nil }

// Pairs writes adjacent rows of n results. Rows of the operands are stepA and stepB values apart.
// The operand single (1 for a, 2 for b, 0 for neither) has one value for each row.
func (e *Elements) Pairs(op RowOp, dst, a, b []float32, n, stepA, stepB, single int) {
	if n <= 0 || len(dst) < n {
		return
	}
	rows := len(dst) / n
	lenA, lenB := n, n
	switch single {
	case 1:
		lenA = 1
	case 2:
		lenB = 1
	}
	_, _ = a[(rows-1)*stepA+lenA-1], b[(rows-1)*stepB+lenB-1]
	kernel := e.pairs[op][min(single, 1)]
	if single == 1 {
		a, b, stepA, stepB = b, a, stepB, stepA
		switch op {
		case RowSub:
			kernel = e.pairs[rowSubFrom][1]
		case RowDiv:
			kernel = e.pairs[rowDivFrom][1]
		}
	}
	kernel(&dst[0], &a[0], &b[0], rows, n, 4*stepA, 4*stepB)
}
