package simd

// Columns holds float32 GEMV kernels for weights without zeros. Each column lists its weights and
// their steps. Groups of Lanes columns are computed together, as many steps as the longest list.
type Columns struct {
	Set          Set
	Lanes        int
	fused, exact func(t *ColumnsTile)
}

// ColumnKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func ColumnKernels() *Columns { return columnKernels.pick() }

// ColumnsTile holds the arguments for some groups of columns.
type ColumnsTile struct {
	Y, X   *float32
	Steps  *uint16  // index in X, a column after the other, step by step and group by group
	Values *float32 // as Steps
	Counts *uint32  // steps of each group
	Groups int      // at least 1
}

// Row writes to y the products of the row x with the columns. The terms are added in order. If
// exact is set, products and sums are rounded separately; see [Floats].
func (f *Columns) Row(t *ColumnsTile, exact bool) {
	if exact {
		f.exact(t)
		return
	}
	f.fused(t)
}
