package kernel

import "github.com/opmeter/opmeter/internal/kernel/simd"

// WeightedSum adds vectors. Each goroutine needs its own; the zero value is ready.
type WeightedSum struct {
	window simd.Window
	offs   []int
}

// Of writes to dst the sum of the vectors that begin at some places of x, each times its weight.
func (s *WeightedSum) Of(dst, x []float32, from []int, weights []float32) {
	s.Lines(dst, 0, x, 0, len(dst), 1, from, weights)
}

// Lines writes several lines of n such sums, stepDst values apart; their vectors are stepX values further in x from line to line.
func (s *WeightedSum) Lines(dst []float32, stepDst int, x []float32, stepX, n, lines int, from []int, weights []float32) {
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
	t.Dst, t.Src, t.W, t.Bias = &dst[0], &x[0], &weights[0], &zeroBias
	t.StepDst, t.StepSrc = 4*stepDst, 4*stepX
	t.SetTaps(s.offs)
	t.SetClamp(false, 0, 0)
	f.Spread(t, lines, n)
}
