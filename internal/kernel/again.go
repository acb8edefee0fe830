package kernel

import (
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Again is a right-hand matrix that changes from run to run and that several products of a run read: it is packed into memory that
// it keeps. Products take a range of its columns and of its steps.
type Again struct {
	packed PackedB
	// Where there is nothing but plain Go the matrix is read where it lies.
	lies  []float32
	ld    int
	trans bool
}

// Pack takes a K×N matrix (stored N×K when trans), whose rows lie ld apart.
func (w *Again) Pack(k, n int, b []float32, ld int, trans bool) {
	w.lies, w.ld, w.trans = b, ld, trans
	p := &w.packed
	if p.f = simd.FloatKernels(); p.f == nil {
		return
	}
	p.k, p.n = k, n
	if need := roundUp(n, p.cols()) * k; cap(p.data) < need {
		p.data = make([]float32, need)
	} else {
		p.data = p.data[:need]
	}
	p.fill(b, ld, trans)
}

// Forget lets go of the matrix, and keeps the memory.
func (w *Again) Forget() { w.lies = nil }

// Columns is what the first column of a product is a multiple of.
func (w *Again) Columns() int { return w.packed.cols() }

// Product is [Gemm] with g.N columns of the matrix from col on, a multiple of [Again.Columns], and g.K of its steps from step on;
// g.TransB and g.LDB are not looked at.
func (w *Again) Product(g GemmParams, a []float32, col, step int, c []float32) {
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
		Gemm(nil, g, a, w.lies[at:], c)
		return
	}
	b := p.panels()
	b.data = b.data[col*p.k+step*p.cols():]
	product(nil, p.f, &g, a, b, c)
}
