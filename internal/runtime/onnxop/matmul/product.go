package matmul

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Matrices describes c[M×N] = opA(a)·opB(b), added to c when accumulate is set.
type Matrices struct {
	M, N, K        int
	TransA, TransB bool
	lda, ldb, Ldc  int // 0 means tight
	Accumulate     bool
}

// Gemm multiplies matrices of either float type: float32 with the shared kernel, float64
// directly.
func Gemm[T tensor.Real](p *workers.Pool, g Matrices, a, b, c []T) {
	if a32, ok := any(a).([]float32); ok {
		gemm.Multiply(p, gemm.Params{
			M: g.M, N: g.N, K: g.K, TransA: g.TransA, TransB: g.TransB,
			LDA: g.lda, LDB: g.ldb, LDC: g.Ldc, Accumulate: g.Accumulate,
		}, a32, any(b).([]float32), any(c).([]float32))
		return
	}
	PlainGemm(p, g, a, b, c)
}

// PlainGemm is the GEMM for float64 and integers, row by row of c.
func PlainGemm[T tensor.Real | int32 | int64 | uint32 | uint64](p *workers.Pool, g Matrices, a, b, c []T) {
	lda, ldb, ldc := g.lda, g.ldb, g.Ldc
	if lda == 0 {
		lda = g.K
		if g.TransA {
			lda = g.M
		}
	}
	if ldb == 0 {
		ldb = g.N
		if g.TransB {
			ldb = g.K
		}
	}
	if ldc == 0 {
		ldc = g.N
	}
	si, sk := lda, 1
	if g.TransA {
		si, sk = 1, lda
	}
	q := plainProduct[T]{m: g, a: a, b: b, c: c, si: si, sk: sk, ldb: ldb, ldc: ldc, lines: g.TransB || g.N == 1 && ldb == 1, folds: simd.FoldKernels()}
	workers.Each(p, g.M, max(1, 1<<15/max(g.N*g.K, 1)), q)
}

// plainProduct holds the arguments of a work item of [PlainGemm].
type plainProduct[T tensor.Real | int32 | int64 | uint32 | uint64] struct {
	m        Matrices
	a, b, c  []T
	si, sk   int // from row to row and from element to element of a
	ldb, ldc int
	lines    bool // columns of b are lines of memory
	folds    *simd.Folds
}

// Piece computes rows lo to hi.
func (q plainProduct[T]) Piece(lo, hi int) {
	g, a, b, si, sk, ldb := &q.m, q.a, q.b, q.si, q.sk, q.ldb
	for i := lo; i < hi; i++ {
		row := q.c[i*q.ldc:][:g.N]
		if !g.Accumulate {
			clear(row)
		}
		if q.lines {
			for j := range row {
				line := b[j*ldb:][:g.K]
				if sk == 1 {
					if sum, ok := simd.Dot(q.folds, a[i*si:][:g.K], line); ok {
						row[j] += sum
						continue
					}
				}
				var sum T
				for k, bv := range line {
					sum += a[i*si+k*sk] * bv
				}
				row[j] += sum
			}
			continue
		}
		if g.K > 0 && simd.AddProducts(q.folds, row, a[i*si:], sk, b, ldb, g.K) {
			continue
		}
		k := 0
		for ; k+4 <= g.K; k += 4 {
			at := i*si + k*sk
			a0, a1, a2, a3 := a[at], a[at+sk], a[at+2*sk], a[at+3*sk]
			b0, b1 := b[k*ldb:][:len(row)], b[(k+1)*ldb:][:len(row)]
			b2, b3 := b[(k+2)*ldb:][:len(row)], b[(k+3)*ldb:][:len(row)]
			for j := range row {
				row[j] += a0*b0[j] + a1*b1[j] + a2*b2[j] + a3*b3[j]
			}
		}
		for ; k < g.K; k++ {
			av := a[i*si+k*sk]
			for j, bv := range b[k*ldb:][:len(row)] {
				row[j] += av * bv
			}
		}
	}
}

// Inner computes a dot product of either float type.
func Inner[T tensor.Real](a, b []T) T { return productOf(a, b) }
