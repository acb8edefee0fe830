package nn

import (
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// matrices describes c[M×N] = opA(a)·opB(b), added to c when accumulate is set.
type matrices struct {
	m, n, k        int
	transA, transB bool
	lda, ldb, ldc  int // 0 means tight
	accumulate     bool
}

// gemm multiplies matrices of either float type: float32 with the shared
// kernel, float64 directly.
func gemm[T tensor.Real](p *workers.Pool, g matrices, a, b, c []T) {
	if a32, ok := any(a).([]float32); ok {
		kernel.Gemm(p, kernel.GemmParams{
			M: g.m, N: g.n, K: g.k, TransA: g.transA, TransB: g.transB,
			LDA: g.lda, LDB: g.ldb, LDC: g.ldc, Accumulate: g.accumulate,
		}, a32, any(b).([]float32), any(c).([]float32))
		return
	}
	plainGemm(p, g, a, b, c)
}

// plainGemm is the product for float64 and integers, row by row of c.
func plainGemm[T tensor.Real | int32 | int64 | uint32 | uint64](p *workers.Pool, g matrices, a, b, c []T) {
	lda, ldb, ldc := g.lda, g.ldb, g.ldc
	if lda == 0 {
		lda = g.k
		if g.transA {
			lda = g.m
		}
	}
	if ldb == 0 {
		ldb = g.n
		if g.transB {
			ldb = g.k
		}
	}
	if ldc == 0 {
		ldc = g.n
	}
	si, sk := lda, 1
	if g.transA {
		si, sk = 1, lda
	}
	at := func(i, k int) T { return a[i*si+k*sk] }
	p.For(g.m, max(1, 1<<15/max(g.n*g.k, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := c[i*ldc:][:g.n]
			if !g.accumulate {
				clear(row)
			}
			if g.transB {
				for j := range row {
					line := b[j*ldb:][:g.k]
					var sum T
					for k, bv := range line {
						sum += at(i, k) * bv
					}
					row[j] += sum
				}
				continue
			}
			k := 0
			for ; k+4 <= g.k; k += 4 {
				a0, a1, a2, a3 := at(i, k), at(i, k+1), at(i, k+2), at(i, k+3)
				b0, b1 := b[k*ldb:][:len(row)], b[(k+1)*ldb:][:len(row)]
				b2, b3 := b[(k+2)*ldb:][:len(row)], b[(k+3)*ldb:][:len(row)]
				for j := range row {
					row[j] += a0*b0[j] + a1*b1[j] + a2*b2[j] + a3*b3[j]
				}
			}
			for ; k < g.k; k++ {
				av := at(i, k)
				for j, bv := range b[k*ldb:][:len(row)] {
					row[j] += av * bv
				}
			}
		}
	})
}
