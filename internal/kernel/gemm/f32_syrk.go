package gemm

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Syrk adds the dot products of n vectors of length k with each other to c (symmetric rank-k
// update): c[i*ldc+j] for j ≤ i, and some values beyond, up to the end of a panel, if ldc allows.
// The vectors are rows of a with stride lda, or its columns if columns is set. ldc is a multiple
// of [SyrkStride].
func Syrk(p *workers.Pool, n, k int, a []float32, lda int, columns bool, c []float32, ldc int) {
	if n <= 0 || k <= 0 {
		return
	}
	f := simd.FloatKernels()
	if f == nil {
		const rows = 32
		for lo := 0; lo < n; lo += rows {
			hi, from := min(lo+rows, n), lo*lda
			if columns {
				from = lo
			}
			Multiply(p, Params{M: hi - lo, N: hi, K: k, LDA: lda, LDB: lda, LDC: ldc, TransA: columns, TransB: !columns, Accumulate: true}, a[from:], a, c[lo*ldc:])
		}
		return
	}
	s := syrk{f: f, n: n, a: a, lda: lda, columns: columns, c: c, ldc: ldc}
	panels := (n + f.Cols - 1) / f.Cols
	// Split K so that all packed vectors stay in the L2 cache.
	step := max(32, min(KBlock, scratch.Block*3/(panels*f.Cols)))
	buf, data := scratch.Borrow(panels * f.Cols * min(step, k))
	s.packed = data
	tilesM := (n + f.Rows - 1) / f.Rows
	for s.k0 = 0; s.k0 < k; s.k0 += step {
		s.k1 = min(s.k0+step, k)
		workers.Do(p, panels, max(1, 1<<14/(f.Cols*(s.k1-s.k0))), &s, func(s *syrk, lo, hi int) {
			for i := lo; i < hi; i++ {
				s.pack(i)
			}
		})
		// Later rows have more work: workers take few at a time.
		workers.Do(p, tilesM, max(1, 1<<18/(f.Rows*n*(s.k1-s.k0)+1)), &s, func(s *syrk, lo, hi int) {
			t := Tiles.Get().(*simd.Tile)
			s.rows(t, lo*s.f.Rows, min(hi*s.f.Rows, s.n))
			ReleaseTile(t)
		})
	}
	scratch.Float32s.Put(buf)
}

// SyrkStride divides the row stride of the output of [Syrk].
const SyrkStride = 32

// syrk holds the arguments of a work item of [Syrk].
type syrk struct {
	f       *simd.Floats
	n       int
	a       []float32
	lda     int
	columns bool
	c       []float32
	ldc     int
	packed  []float32
	k0, k1  int
}

// pack packs a panel of vectors, one row for each of the elements k0 to k1.
func (s *syrk) pack(panel int) {
	w, k := s.f.Cols, s.k1-s.k0
	dst := s.packed[panel*w*k:][:w*k]
	j0 := panel * w
	if s.columns {
		Pack(dst, s.a[s.k0*s.lda+j0:], min(w, s.n-j0), k, w, 1, s.lda)
		return
	}
	src := s.a[j0*s.lda+s.k0:]
	if s.n-j0 < w {
		Pack(dst, src, s.n-j0, k, w, s.lda, 1)
		return
	}
	move.Transpose(dst, w, src, s.lda, k, w)
}

// rows computes rows r0 to r1 up to the panel that contains the diagonal.
func (s *syrk) rows(t *simd.Tile, r0, r1 int) {
	f, k := s.f, s.k1-s.k0
	vec, elem := s.lda, 1
	if s.columns {
		vec, elem = 1, s.lda
	}
	t.Segs, t.StepA, t.RowA, t.RowC, t.K = 1, 4*elem, 4*vec, 4*s.ldc, k
	t.BiasN, t.BiasM, t.StepB = nil, nil, 4*f.Cols
	t.SetStart(simd.Accumulate)
	t.SetClamp(false, 0, 0)
	for q0 := r0; q0 < r1; q0 += 4 * f.Rows { // a few row tiles, which stay in the L1 cache
		q1 := min(q0+4*f.Rows, r1)
		for p := 0; p*f.Cols < q1; p++ {
			t.B = &s.packed[p*f.Cols*k]
			for r := q0; r < q1; r += f.Rows {
				m := min(f.Rows, q1-r)
				if p*f.Cols >= r+m {
					continue // beyond the diagonal
				}
				t.A = &s.a[r*vec+s.k0*elem]
				t.C = &s.c[r*s.ldc+p*f.Cols]
				width := min(f.Cols, s.ldc-p*f.Cols)
				if r+m <= p*f.Cols+f.Half {
					width = f.Half // the rest lies beyond the diagonal
				}
				f.Run(t, m, width, false)
			}
		}
	}
}
