package kernel

import "github.com/opmeter/opmeter/internal/kernel/simd"

// WeightedSum adds vectors. Each goroutine needs its own; the zero value is ready.
type WeightedSum struct {
	window simd.Window
	offs   []int
}

// Of writes to dst the sum of the vectors that begin at some places of x, each times its weight.
func (s *WeightedSum) Of(dst, x []float32, from []int, weights []float32) {
	n := len(dst)
	f := simd.WindowKernels()
	if f == nil || n == 0 || len(from) == 0 {
		clear(dst)
		for i, at := range from {
			w := weights[i]
			for k, v := range x[at:][:n] {
				dst[k] += w * v
			}
		}
		return
	}
	s.offs = s.offs[:0]
	for _, at := range from {
		_ = x[at:][:n]
		s.offs = append(s.offs, 4*at)
	}
	_ = weights[len(from)-1]
	t := &s.window
	t.Dst, t.Src, t.W, t.Bias = &dst[0], &x[0], &weights[0], &zeroBias
	t.SetTaps(s.offs)
	t.SetClamp(false, 0, 0)
	f.Spread(t, 1, n)
}
