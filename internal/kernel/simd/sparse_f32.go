package simd

// Sparse holds kernels of float32 GEMM with a sparse left matrix. Its nonzero values are listed.
// The right matrix is in panels of Cols columns, with a row for each step. Sums add their
// products in order. The exact kernels round products and sums separately; see [Floats].
type Sparse struct {
	Set  Set
	Cols int
	// Panels and PanelsOfRows are the numbers of panels that a tile of one row and a tile of
	// SparseRows rows compute at once.
	Panels, PanelsOfRows int
	// For one row and for SparseRows rows: a kernel for each number of panels.
	fused, exact [2][]func(t *SparseTile)
}

// SparseRows is the number of rows of a tile whose rows have their nonzero values at the same
// steps.
const SparseRows = 4

// SparseKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func SparseKernels() *Sparse { return sparseKernels.pick() }

// SparseTile is a tile of a product y = act(values·x + bias), with one row or SparseRows rows.
// Steps are in bytes.
type SparseTile struct {
	X           *float32
	Panel       int    // from one panel of x to the next; panels of y are adjacent
	Offs        *int32 // for each value, the byte offset of its row of a panel
	Vals        *float32
	Count       int // may be 0
	Y           *float32
	RowY        int
	Bias        *float32 // one value for each row, or nil
	mask        *int32
	Min, Max    float32
	bits, flags uint32
}

// SetStart sets whether sums start from the values in y.
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

// Run computes one row, or SparseRows rows if rows is set, of width columns: at most the number
// of panels of a tile.
func (f *Sparse) Run(t *SparseTile, rows bool, width int, exact bool) {
	panels := (width + f.Cols - 1) / f.Cols
	t.flags &^= flagMasked
	if left := width - (panels-1)*f.Cols; left < f.Cols {
		t.flags |= flagMasked
		t.bits = 1<<left - 1
		t.mask = &columnMasks[16-min(left, 16)]
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
