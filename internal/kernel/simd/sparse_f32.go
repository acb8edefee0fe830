package simd

// Sparse multiplies matrices of float32 of which the left one has many zeros: what is
// not zero is listed, and the right one lies in panels of Cols columns, a row for each
// step. Sums take their products in order, of the exact kind with products and sums
// rounded apart; see [Floats].
type Sparse struct {
	Set  Set
	Cols int
	// Panels are those that a tile of one row and one of SparseRows rows takes at once.
	Panels, PanelsOfRows int
	// For one row and for SparseRows rows, a function for each number of panels.
	fused, exact [2][]func(t *SparseTile)
}

// SparseRows is the number of rows of a tile whose rows have their values at the same
// steps.
const SparseRows = 4

// SparseKernels of the current set; nil where there are none.
func SparseKernels() *Sparse { return sparse.pick() }

// SparseTile is a piece of a product, y = act(values·x + bias), of one row or of
// SparseRows rows. Steps are in bytes.
type SparseTile struct {
	X           *float32
	Panel       int    // from one panel of x to the next; those of y are neighbours
	Offs        *int32 // for each value, where its row of a panel begins, in bytes
	Vals        *float32
	Count       int // may be none
	Y           *float32
	RowY        int
	Bias        *float32 // one value for each row; nil for none
	mask        *int32
	Min, Max    float32
	bits, flags uint32
}

// SetStart says whether sums begin with what y holds.
func (t *SparseTile) SetStart(goOn bool) {
	t.flags &^= flagContinue
	if goOn {
		t.flags |= flagContinue
	}
}

// SetClamp limits the results.
func (t *SparseTile) SetClamp(on bool, lo, hi float32) {
	t.flags &^= flagClamp
	if on {
		t.flags |= flagClamp
		t.Min, t.Max = lo, hi
	}
}

// Run computes a row, or SparseRows rows, by width columns, at most as many panels as a
// tile takes.
func (f *Sparse) Run(t *SparseTile, rows bool, width int, exact bool) {
	panels := (width + f.Cols - 1) / f.Cols
	t.flags &^= flagMasked
	if left := width - (panels-1)*f.Cols; left < f.Cols {
		t.flags |= flagMasked
		t.bits = 1<<left - 1
		t.mask = &masks[16-min(left, 16)]
	}
	of := &f.fused
	if exact {
		of = &f.exact
	}
	if rows {
		of[1][panels-1](t)
		return
	}
	of[0][panels-1](t)
}
