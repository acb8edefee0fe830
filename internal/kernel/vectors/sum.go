package vectors

import "github.com/opmeter/opmeter/internal/kernel/simd"

// Sum adds vectors. It is not safe for concurrent use; the zero value is ready.
type Sum struct {
	window simd.Window
	offs   []int
}

// Of writes the weighted sum of the vectors at offsets from of x to dst.
func (s *Sum) Of(dst, x []float32, from []int, weights []float32) {
	s.Lines(dst, 0, x, 0, len(dst), 1, from, weights)
}

// Lines writes several rows of n such sums, stepDst values apart; their vectors advance by stepX
// values per row.
func (s *Sum) Lines(dst []float32, stepDst int, x []float32, stepX, n, lines int, from []int, weights []float32) {
	if n == 0 || lines == 0 {
		return
	}
	f := simd.WindowKernels()
	if f == nil || len(from) == 0 {
		for l := range lines {
			line := dst[l*stepDst:][:n]
			clear(line)
			for i, at := range from {
				w := weights[i]
				for k, v := range x[l*stepX+at:][:n] {
					line[k] += w * v
				}
			}
		}
		return
	}
	_ = dst[(lines-1)*stepDst:][:n]
	s.offs = s.offs[:0]
	for _, at := range from {
		_ = x[(lines-1)*stepX+at:][:n]
		s.offs = append(s.offs, 4*at)
	}
	_ = weights[len(from)-1]
	t := &s.window
	t.Dst, t.Src, t.W, t.Bias = &dst[0], &x[0], &weights[0], &zero
	t.StepDst, t.StepSrc = 4*stepDst, 4*stepX
	t.SetTaps(s.offs)
	t.SetClamp(false, 0, 0)
	f.Spread(t, lines, n)
}

// zero is the initial value of sums.
var zero float32

// HasMax reports whether SIMD kernels for [Max] exist.
func HasMax() bool { return simd.HasExtremes[float32](simd.ExtremeKernels()) }

// Max computes the element-wise maximum of weighted vectors. It requires [HasMax] and is not safe
// for concurrent use; the zero value is ready.
type Max struct {
	parts    []float32
	n, count int
}

// maxParts is the number of vectors whose maximum is computed together.
const maxParts = 64

// Start resets m to zero vectors of n elements.
func (m *Max) Start(n int) {
	if m.n, m.count = n, 0; len(m.parts) < maxParts*n {
		m.parts = make([]float32, maxParts*n)
	}
}

// Add adds a vector.
func (m *Max) Add(v []float32, weight float32) {
	if m.count == maxParts {
		simd.ExtremeLines(simd.ExtremeKernels(), false, m.parts[:m.n], m.parts, m.n, m.count)
		m.count = 1
	}
	simd.ElementKernels().MulScalar(m.parts[m.count*m.n:][:m.n], v[:m.n], weight)
	m.count++
}

// Done writes the maxima to dst; it returns false without any vectors.
func (m *Max) Done(dst []float32) bool {
	if m.count > 0 {
		simd.ExtremeLines(simd.ExtremeKernels(), false, dst[:m.n], m.parts, m.n, m.count)
	}
	return m.count > 0
}
