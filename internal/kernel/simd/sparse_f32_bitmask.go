package simd

import "unsafe"

// Expand are loops over panels of float32 in which zeros are left out: a bit for each column of each step tells which columns have a value, and the
// values lie one behind the other.
type Expand struct {
	Set Set
	// Columns is the number of columns of a panel, that of [Floats]; a multiple of 8.
	Columns int
	// Zeros is the share of zeros from which on a row that waits for its weights in memory gains, as measured by bench/sparse; Narrow that for numbers
	// that fit 16 bits.
	Zeros, Narrow float64
	fused, exact  func(t *ExpandTile)
}

// ExpandKernels of the current set; nil where there are none.
func ExpandKernels() *Expand { return expand.pick() }

// ExpandTile is a piece of work on a panel.
type ExpandTile struct {
	Y, X   *float32
	Masks  *uint8   // a bit for each column of each step, the first one in the lowest bit
	Values *float32 // as many as there are bits, and 15 more
	Steps  int      // at least one
}

// Row writes to y the products of the row x with the columns of a panel: sums in order, of the exact kind with products and sums rounded apart; see
// [Floats].
func (f *Expand) Row(t *ExpandTile, exact bool) {
	if exact {
		f.exact(t)
		return
	}
	f.fused(t)
}

// ExpandInts are loops over panels of fours of 8-bit weights, those of [Ints] without [Ints.Eights], in which zeros are left out: a bit for each weight
// of a panel tells which of them are not zero, and these lie one behind the other.
type ExpandInts struct {
	Set   Set
	Zeros float64 // as that of [Expand]
	row   func(t *ExpandIntTile)
}

// ExpandIntColumns is the number of columns of a panel.
const ExpandIntColumns = 32

// ExpandIntKernels of the current set; nil where there are none.
func ExpandIntKernels() *ExpandInts { return expandInts.pick() }

// ExpandIntTile is a piece of work on a panel.
type ExpandIntTile struct {
	Y      *int32
	X      unsafe.Pointer // fours of codes, as [Ints.Fours] writes them
	Masks  *uint64        // two for each four of steps: of the weights of half of the columns each, the first one in the lowest bit
	Values *int8          // as many as there are bits, and 63 more
	Steps  int            // fours; at least one
	Start  *int32         // what sums begin with
}

// Row writes to y the sums of the products of a row with the columns of a panel, as [Ints.RunQuads] does.
func (f *ExpandInts) Row(t *ExpandIntTile) { f.row(t) }
