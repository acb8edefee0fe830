package gemm

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vectors"
)

// shortGemv is the row length up to which dot products use scalar code: a SIMD call costs more.
const shortGemv = 16

// Gemv computes the matrix-vector product y = a·x. a has len(y) rows of len(x) values, stored
// without gaps.
func Gemv(p *workers.Pool, y, a, x []float32) {
	workers.Do(p, len(y), max(1, 1<<15/max(1, len(x))), gemvArgs{y, a, x}, gemvArgs.rows)
}

// GemvName returns the name of the kernel that [Gemv] uses.
func GemvName() string { return ISAName("column", simd.FloatKernels()) }

// gemvArgs holds the arguments of a work item of [Gemv].
type gemvArgs struct{ y, a, x []float32 }

// rows computes rows lo to hi of y.
func (q gemvArgs) rows(lo, hi int) {
	n := len(q.x)
	if n <= shortGemv {
		clear(q.y[lo:hi])
		dotRows(q.y[lo:hi], q.x, q.a[min(lo*n, len(q.a)):], n)
		return
	}
	for i := lo; i < hi; i++ {
		q.y[i] = vectors.Dot(q.a[i*n:][:n], q.x)
	}
}
