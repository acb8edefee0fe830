package simd

import "unsafe"

// Expand holds float32 GEMV kernels for panels without zeros. One bit for each column of each
// step marks the columns that have a value; the values follow each other.
type Expand struct {
	Set Set
	// Columns is the number of columns of a panel, as in [Floats]; a multiple of 8.
	Columns int
	// Zeros is the minimum share of zeros at which these kernels are faster, for a row that waits
	// for its weights from memory. Narrow is the same for values that fit 16 bits. Both were
	// measured with bench/sparse.
	Zeros, Narrow float64
	fused, exact  func(t *ExpandTile)
}

// ExpandKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func ExpandKernels() *Expand { return expandKernels.pick() }

// ExpandTile holds the arguments for one panel.
type ExpandTile struct {
	Y, X   *float32
	Masks  *uint8   // a bit for each column of each step, the first column in the lowest bit
	Values *float32 // one for each set bit, and 15 more
	Steps  int      // at least 1
}

// Row writes to y the products of the row x with the columns of a panel. The terms are added in
// order. If exact is set, products and sums are rounded separately; see [Floats].
func (f *Expand) Row(t *ExpandTile, exact bool) {
	if exact {
		f.exact(t)
		return
	}
	f.fused(t)
}

// ExpandInts holds int8 GEMV kernels for panels without zeros. Weights are in groups of four, in
// the layout of [Ints] without [Ints.QuadPairs]. One bit for each weight of a panel marks the
// nonzero weights; these follow each other.
type ExpandInts struct {
	Set   Set
	Zeros float64 // as in [Expand]
	row   func(t *ExpandIntTile)
}

// ExpandIntColumns is the number of columns of a panel.
const ExpandIntColumns = 32

// ExpandIntKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func ExpandIntKernels() *ExpandInts { return expandIntKernels.pick() }

// ExpandIntTile holds the arguments for one panel.
type ExpandIntTile struct {
	Y *int32
	X unsafe.Pointer // groups of four values, as [Ints.QuadInput] writes them
	// Two masks for each group of four steps, each for half of the columns. The first weight is
	// in the lowest bit.
	Masks  *uint64
	Values *int8  // one for each set bit, and 63 more
	Steps  int    // groups of four steps; at least 1
	Start  *int32 // initial sums
}

// Row writes to y the sums of the products of a row with the columns of a panel, as
// [Ints.RunQuads] does.
func (f *ExpandInts) Row(t *ExpandIntTile) { f.row(t) }
