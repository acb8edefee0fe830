package kernel

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// shortColumn is up to how many values inner products are added up without vectors, whose calls would take longer.
const shortColumn = 16

// Column writes the product of a, len(y) rows as long as x, with the column x. Rows lie side by side.
func Column(p *workers.Pool, y, a, x []float32) {
	workers.Do(p, len(y), max(1, 1<<15/max(1, len(x))), columnArgs{y, a, x}, columnArgs.rows)
}

// ColumnName tells the way in which [Column] computes.
func ColumnName() string { return setName("column", simd.FloatKernels()) }

// columnArgs is what a piece of a product with a column needs.
type columnArgs struct{ y, a, x []float32 }

// rows computes rows lo to hi.
func (q columnArgs) rows(lo, hi int) {
	n := len(q.x)
	if n <= shortColumn {
		clear(q.y[lo:hi])
		dots(q.y[lo:hi], q.x, q.a[min(lo*n, len(q.a)):], n)
		return
	}
	for i := lo; i < hi; i++ {
		q.y[i] = vectors.Dot(q.a[i*n:][:n], q.x)
	}
}
