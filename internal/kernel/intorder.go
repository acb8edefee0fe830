package kernel

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Sets with tiles read rows fastest in an order of their own: of some rows one step lies beside the other. Where many panels of
// weights read the rows they are written in this order before.

// orderedPanels is the least number of panels that make up for writing rows in the order of the set.
const orderedPanels = 8

// ordered computes rows m0 to m1 of whole panels, if the set has an order of its own for rows; it returns the first panel that is left.
func (q *intArgs) ordered(t *simd.IntTile, m0, m1, n0, n1 int) int {
	f, k := q.p.panels.f, q.p.panels.pairs()
	size := f.OrderedBytes(min(m1-m0, f.Rows), k)
	if size == 0 || m1-m0 < orderedRows || n1 <= n0 {
		return n0
	}
	sc, room := borrow8(size)
	t.RowC, t.PanelB = 4*q.p.n, 4*k*f.Cols
	for r := m0; r < m1; r += f.Rows {
		rows := min(f.Rows, m1-r)
		f.Order(room, q.a[r*q.line:], rows, q.line, k)
		t.A, t.B = unsafe.Pointer(&room[0]), q.p.panels.at(n0, 0)
		t.C, t.Start = &q.y[r*q.p.n+n0*f.Cols], &q.start[n0*f.Cols]
		f.RunOrdered(t, rows, n1-n0)
	}
	scratch.Put(sc)
	return n1
}

// orderedRows is half the rows of a block of the set.
const orderedRows = 16
