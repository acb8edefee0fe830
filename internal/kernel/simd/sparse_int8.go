package simd

import (
	"encoding/binary"
	"unsafe"
)

// SparseInts holds kernels of int8 GEMM with a sparse left matrix of signed weights. Groups of
// four weights are listed. The right matrix is in panels of Cols columns of unsigned values. Sums
// are exact.
type SparseInts struct {
	Set  Set
	Cols int
	// Pairs reports that a group of four weights is listed as two pairs of 16-bit values: weights
	// 0 and 2, then weights 1 and 3.
	Pairs bool
	// Costs holds the cost of a product with a listed group of four, relative to a dense kernel
	// of the instruction set, by [SparseKind].
	Costs [SparseKinds]float64
	// For a full panel, and for the first half of its columns; nil if absent.
	whole, half [SparseKinds]func(t *SparseIntTile)
	split       func(x *byte, rows int) // nil where transposing bytes is as fast as transposing words
}

// SparseKind is the kind of sparsity: which groups of four weights are listed.
type SparseKind int

// SparseRow groups any four nonzero weights of a row. SparseRowsTogether groups the weights of
// any four steps for SparseRows rows. SparseFours groups the weights of four adjacent steps of a
// row; panels have the values of these steps side by side.
const (
	SparseRow SparseKind = iota
	SparseRowsTogether
	SparseFours
	SparseKinds
)

// Rows returns the number of rows of a tile.
func (k SparseKind) Rows() int {
	if k == SparseRowsTogether {
		return SparseRows
	}
	return 1
}

// SparseIntKernels returns the kernels of the current instruction set. It returns nil if they are
// not available, or if the dense kernels are faster in any case, as with AMX.
func SparseIntKernels() *SparseInts {
	if current == AMX {
		return nil
	}
	return sparseIntKernels.pick()
}

// MeasuredCosts returns Costs, raised to the measured costs of this processor where these are
// higher.
func (f *SparseInts) MeasuredCosts() [SparseKinds]float64 {
	costs := f.Costs
	if f.Set == VNNI && forcedSparse4of8Gain == 0 {
		for kind, c := range sparseCosts() {
			costs[kind] = max(costs[kind], c)
		}
	}
	return costs
}

// Size returns the number of bytes of a listed group of four weights of a row.
func (f *SparseInts) Size() int {
	if f.Pairs {
		return 8
	}
	return 4
}

// Put writes a group of four weights of a row.
func (f *SparseInts) Put(dst []uint8, w [4]int8) {
	if !f.Pairs {
		binary.LittleEndian.PutUint32(dst, uint32(uint8(w[0]))|uint32(uint8(w[1]))<<8|uint32(uint8(w[2]))<<16|uint32(uint8(w[3]))<<24)
		return
	}
	for i, at := range [4]int{0, 2, 1, 3} {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(int16(w[at])))
	}
}

// Splits reports whether [SparseInts.Split] creates the lines of a panel from groups of four
// steps.
func (f *SparseInts) Splits() bool { return f.split != nil }

// Split converts each of n lines of groups of four steps in panel to four lines of values, in
// place.
func (f *SparseInts) Split(panel []uint8, n int) {
	if n > 0 {
		_ = panel[4*f.Cols*n-1]
		f.split(&panel[0], n)
	}
}

// SparseIntTile is a tile of a product y = weights·x + start. It has several units that follow
// each other in the lists: rows, or groups of SparseRows rows that are listed together. The
// kernels modify it.
type SparseIntTile struct {
	X *uint8
	// For each group of four, the byte offsets of its lines of the panel: four lines, or one line
	// of groups of four.
	Offs   *uint16
	Vals   unsafe.Pointer
	Counts *uint32 // groups of four of each unit; may be 0
	Units  int     // at least 1
	Y      *int32  // Cols sums for each row, or half of them for half a panel
	RowY   int     // in bytes
	Start  *int32  // a value for each row
	more   int     // 1: sums continue from y and ignore Start
}

// SetContinue sets whether sums continue from the values in y.
func (t *SparseIntTile) SetContinue(on bool) {
	t.more = 0
	if on {
		t.more = 1
	}
}

// Half reports whether width columns are computed as half a panel.
func (f *SparseInts) Half(width int) bool { return 2*width <= f.Cols && f.half[SparseRow] != nil }

// Run computes at least width columns, at most a panel.
func (f *SparseInts) Run(t *SparseIntTile, kind SparseKind, width int) {
	if f.Half(width) {
		f.half[kind](t)
		return
	}
	f.whole[kind](t)
}
