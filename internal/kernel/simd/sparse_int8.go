package simd

import (
	"encoding/binary"
	"unsafe"
)

// SparseInts multiplies matrices of 8-bit numbers of which the left one, of weights with a sign, has many zeros: fours of weights are
// listed, the right one lies in panels of Cols codes without a sign. Sums are exact.
type SparseInts struct {
	Set  Set
	Cols int
	// Pairs says that a four of weights is listed as two pairs of 16-bit numbers, the first and the third, and the others.
	Pairs bool
	// Costs of a product of a listed four against one of the dense kernels of the set, by [SparseKind].
	Costs [SparseKinds]float64
	// For a whole panel, and for the first half of its columns; nil where the set has none.
	whole, half [SparseKinds]func(t *SparseIntTile)
	split       func(x *byte, rows int) // nil where bytes are turned as fast as words
}

// SparseKind tells which zeros are left out.
type SparseKind int

// Of a row any four weights are put together; of SparseRows rows those of any four steps; or of a row the four of neighbouring
// steps, of which panels have the codes side by side.
const (
	SparseRow SparseKind = iota
	SparseRowsTogether
	SparseFours
	SparseKinds
)

// Rows is the number of rows of a tile.
func (k SparseKind) Rows() int {
	if k == SparseRowsTogether {
		return SparseRows
	}
	return 1
}

// SparseIntKernels of the current set; nil where there are none, or where the dense ones are too fast to be beaten: in tiles.
func SparseIntKernels() *SparseInts {
	if current == AMX {
		return nil
	}
	return sparseInts.pick()
}

// MeasuredCosts are Costs as far as this processor has no higher ones.
func (f *SparseInts) MeasuredCosts() [SparseKinds]float64 {
	costs := f.Costs
	if f.Set == VNNI && siftedForced == 0 {
		for kind, c := range sparseCosts() {
			costs[kind] = max(costs[kind], c)
		}
	}
	return costs
}

// Size is the number of bytes of a listed four of a row.
func (f *SparseInts) Size() int {
	if f.Pairs {
		return 8
	}
	return 4
}

// Put lists a four of weights of a row.
func (f *SparseInts) Put(dst []uint8, w [4]int8) {
	if !f.Pairs {
		binary.LittleEndian.PutUint32(dst, uint32(uint8(w[0]))|uint32(uint8(w[1]))<<8|uint32(uint8(w[2]))<<16|uint32(uint8(w[3]))<<24)
		return
	}
	for i, at := range [4]int{0, 2, 1, 3} {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(int16(w[at])))
	}
}

// Splits tells whether lines of a panel are made of fours of steps by [SparseInts.Split].
func (f *SparseInts) Splits() bool { return f.split != nil }

// Split makes lines of codes of each of n lines of fours of steps in panel.
func (f *SparseInts) Split(panel []uint8, n int) {
	if n > 0 {
		_ = panel[4*f.Cols*n-1]
		f.split(&panel[0], n)
	}
}

// SparseIntTile is a piece of a product, y = weights·x + start, of units that follow each other by a panel: of rows, or of SparseRows rows
// that are listed together. A product writes to it.
type SparseIntTile struct {
	X      *uint8
	Offs   *uint16 // where the lines of the panel for each four begin, in bytes: four lines, or one that has fours
	Vals   unsafe.Pointer
	Counts *uint32 // of fours of each unit; may be none
	Units  int     // at least 1
	Y      *int32  // Cols sums of each row, half of them for half a panel
	RowY   int     // in bytes
	Start  *int32  // a number for each row
	more   int     // sums go on from what y holds, in place of Start
}

// SetContinue says whether sums go on from what y holds.
func (t *SparseIntTile) SetContinue(on bool) {
	t.more = 0
	if on {
		t.more = 1
	}
}

// Half tells whether width columns are computed as half a panel.
func (f *SparseInts) Half(width int) bool { return 2*width <= f.Cols && f.half[SparseRow] != nil }

// Run computes width columns at least, as many as a panel has at most.
func (f *SparseInts) Run(t *SparseIntTile, kind SparseKind, width int) {
	if f.Half(width) {
		f.half[kind](t)
		return
	}
	f.whole[kind](t)
}
