package quant

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// granularity maps elements of a quantised tensor to scales: one for all, one for each index
// along an axis, or one for each block along it. A tensor is walked in rows within which the
// scale is constant or advances by one.
type granularity struct {
	rows, row int // number of rows and elements of each but perhaps the last
	total     int // elements
	scales    int // number of scales
	vector    bool
	outer     int // rows for each step of the leading dimensions
	block     int // rows or elements that share a scale
	inner     int // blocked along an inner axis: scales of one row, else 0
	perAxis   bool
}

// tensorRow is the row length if one scale applies to all elements.
const tensorRow = 4096

func newGranularity(x, scale []int, axis, block int) (granularity, error) {
	n, ns := tensor.Elements(x), tensor.Elements(scale)
	g := granularity{total: n, scales: ns}
	if ns == 1 && len(scale) <= max(1, len(x)) {
		g.row, g.rows = tensorRow, (n+tensorRow-1)/tensorRow
		return g, nil
	}
	axis, err := op.Axis(axis, len(x))
	if err != nil {
		return g, op.Malformed("%d scales, and %v", ns, err)
	}
	outer, dim, inner := tensor.Elements(x[:axis]), x[axis], tensor.Elements(x[axis+1:])
	if len(scale) == 1 && block == 0 {
		if ns != dim {
			return g, fmt.Errorf("%d scales for axis %d of shape %s", ns, axis, tensor.FormatShape(x))
		}
		if inner == 1 {
			g.row, g.rows, g.vector = dim, outer, true
		} else {
			g.row, g.rows, g.outer, g.perAxis = inner, outer*dim, dim, true
		}
		return g, nil
	}
	if len(scale) != len(x) {
		return g, fmt.Errorf("scale of shape %s for shape %s", tensor.FormatShape(scale), tensor.FormatShape(x))
	}
	blocks := scale[axis]
	if block == 0 && blocks > 0 {
		block = (dim + blocks - 1) / blocks
	}
	for i, d := range scale {
		if i != axis && d != x[i] || i == axis && (block <= 0 || d != (dim+block-1)/block) {
			return g, fmt.Errorf("scale of shape %s with blocks of %d along axis %d for shape %s", tensor.FormatShape(scale), block, axis, tensor.FormatShape(x))
		}
	}
	// Rows are the lines along the axis if it is the last one, whose blocks get a scale each,
	// else the lines of the trailing dimensions.
	g.block = block
	if inner == 1 {
		g.row, g.rows, g.outer = block, outer*blocks, blocks
		g.perAxis = false
		g.inner = -dim
		return g, nil
	}
	g.row, g.rows, g.outer, g.vector, g.inner = inner, outer*dim, dim, true, inner
	return g, nil
}

// at returns the elements of row r, and its first scale. Within the row the scale advances with
// the element if g.vector is set.
func (g *granularity) at(r int) (lo, hi, scale int) {
	switch {
	case g.inner < 0: // blocks along the last axis; the last block may be short
		dim := -g.inner
		line, b := r/g.outer, r%g.outer
		lo = line*dim + b*g.row
		return lo, min(lo+g.row, (line+1)*dim), r
	case g.inner > 0:
		blocks := (g.outer + g.block - 1) / g.block
		return r * g.row, (r + 1) * g.row, (r/g.outer*blocks + r%g.outer/g.block) * g.inner
	case g.perAxis:
		return r * g.row, (r + 1) * g.row, r % g.outer
	}
	return r * g.row, min((r+1)*g.row, g.total), 0
}

// grain is the number of rows for which another thread pays off.
func (g *granularity) grain() int { return max(1, element.Grain/max(1, g.row)) }
