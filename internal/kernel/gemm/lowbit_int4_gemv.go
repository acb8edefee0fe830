package gemm

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Int4Matrix is an [n, k] matrix of signed 4-bit weights with a scale per block of a row. A
// single float row multiplies them without widening. The result is bit-exact with a plain loop
// over float32 weights, and the kernel reads an eighth of the memory.
type Int4Matrix struct {
	f      *simd.Int4Gemv
	k, n   int
	words  []uint32  // column panels: one word per column for each eight steps
	scales []float32 // per block, one for each column
}

// NewInt4Matrix takes rows of quantised weights, the lower half of each byte first, and their
// scales [n, k/block]. It returns nil if no kernels exist for the matrix.
func NewInt4Matrix(k, n, block int, codes []uint8, scales []float32) *Int4Matrix {
	f := simd.Int4GemvKernels()
	if f == nil || simd.ElementKernels() == nil || n <= 0 || k <= 0 || block <= 0 || block%simd.Int4GemvSteps != 0 || k%block != 0 || len(codes) != n*k/2 || len(scales) != n*k/block {
		return nil
	}
	// A kernel needs eight times a scale to be finite.
	if slices.ContainsFunc(scales, func(s float32) bool { return max(s, -s) > 1<<124 }) {
		return nil
	}
	const cols = simd.Int4GemvColumns
	m := &Int4Matrix{f: f, k: k, n: n, words: hugepages.Make[uint32](scratch.RoundUp(n, cols) * k / simd.Int4GemvSteps), scales: hugepages.Make[float32](scratch.RoundUp(n, cols) * k / block)}
	transposePanels(m.words, wordsIn(codes), n, k/simd.Int4GemvSteps, cols)
	transposePanels(m.scales, scales, n, k/block, cols)
	return m
}

// transposePanels writes n rows of words as column panels: one row of cols words for each place of
// a row of src.
func transposePanels[T move.Word](dst, src []T, n, row, cols int) {
	for j := 0; j < n; j += cols {
		move.Transpose(dst[j*row:], cols, src[j*row:], row, row, min(cols, n-j))
	}
}

// Name returns the kernel name.
func (m *Int4Matrix) Name() string { return "nibbles/" + m.f.Set.String() }

// int4Args holds the arguments of a work item of Run.
type int4Args struct {
	m          *Int4Matrix
	x, y, bias []float32
	act        activation.Clamp
}

// Run computes the row y[n] from the row x[k]: plus bias if present, clamped.
func (m *Int4Matrix) Run(p *workers.Pool, x, y, bias []float32, act activation.Clamp) {
	const cols = simd.Int4GemvColumns
	workers.Do(p, (m.n+cols-1)/cols, max(1, workers.Grain(8)/(cols*m.k)), int4Args{m, x, y, bias, act}, func(q int4Args, lo, hi int) {
		m, e := q.m, simd.ElementKernels()
		words, scales := len(m.words)/scratch.RoundUp(m.n, cols)*cols, len(m.scales)/scratch.RoundUp(m.n, cols)*cols
		sc, workspace := scratch.Borrow(cols)
		for i := lo; i < hi; i++ {
			width := min(cols, m.n-i*cols)
			out := q.y[i*cols:][:width]
			sums := out
			if width < cols {
				sums = workspace
			}
			m.f.Row(sums, q.x, m.words[i*words:][:words], m.scales[i*scales:][:scales])
			if width < cols {
				copy(out, sums)
			}
			if q.bias != nil {
				e.Add(out, out, q.bias[i*cols:])
			}
			if q.act.On {
				e.Clamp(out, out, q.act.Min, q.act.Max)
			}
		}
		scratch.Float32s.Put(sc)
	})
}
