package simd

// Expand are loops over panels of float32 in which zeros are left out: ExpandColumns bits for each step tell which columns have a value, and the
// values lie one behind the other.
type Expand struct {
	Set          Set
	fused, exact func(t *ExpandTile)
}

// ExpandColumns is the number of columns of a panel.
const ExpandColumns = 32

// ExpandKernels of the current set; nil where there are none.
func ExpandKernels() *Expand { return expand.pick() }

// ExpandTile is a piece of work on a panel.
type ExpandTile struct {
	Y, X   *float32
	Masks  *uint32  // one for each step, the first column in the lowest bit
	Values *float32 // as many as there are bits, and 15 more
	Steps  int      // at least one
}

// Row writes to y the products of the row x with ExpandColumns columns: sums in order, of the exact kind with products and sums rounded apart; see
// [Floats].
func (f *Expand) Row(t *ExpandTile, exact bool) {
	if exact {
		f.exact(t)
		return
	}
	f.fused(t)
}
