package gemm

import (
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// RepackedB is a right-hand matrix that changes from run to run and that several multiplications
// of one run read. Pack copies it into a packed buffer that is reused. Multiplications use a
// range of its columns and of its K rows.
type RepackedB struct {
	packed PackedB
	// Without SIMD kernels the matrix is read in place.
	source []float32
	ld     int
	trans  bool
}

// Pack packs a K×N matrix (stored N×K when trans) with row stride ld.
func (w *RepackedB) Pack(k, n int, b []float32, ld int, trans bool) {
	w.source, w.ld, w.trans = b, ld, trans
	p := &w.packed
	if p.f = simd.FloatKernels(); p.f == nil {
		return
	}
	p.k, p.n = k, n
	if need := scratch.RoundUp(n, p.cols()) * k; cap(p.data) < need {
		p.data = make([]float32, need)
	} else {
		p.data = p.data[:need]
	}
	p.fill(b, ld, trans)
}

// Release drops the reference to the matrix and keeps the packed buffer.
func (w *RepackedB) Release() { w.source = nil }

// ColumnStep returns the panel width: the first column of a multiplication must be a multiple of
// it.
func (w *RepackedB) ColumnStep() int { return w.packed.cols() }

// Multiply is [Multiply] with g.N columns of the matrix from column col, a multiple of
// [RepackedB.ColumnStep], and g.K of its rows from row step. g.TransB and g.LDB are ignored.
func (w *RepackedB) Multiply(g Params, a []float32, col, step int, c []float32) {
	if g.M <= 0 || g.N <= 0 {
		return
	}
	p := &w.packed
	if p.f == nil || g.K <= 0 {
		g.TransB, g.LDB = w.trans, w.ld
		at := step*w.ld + col
		if w.trans {
			at = col*w.ld + step
		}
		Multiply(nil, g, a, w.source[at:], c)
		return
	}
	b := p.panels()
	b.Data = b.Data[col*p.k+step*p.cols():]
	gemmPanels(nil, p.f, &g, a, b, c)
}
