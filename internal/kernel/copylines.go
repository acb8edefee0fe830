package kernel

import "github.com/opmeter/opmeter/internal/kernel/simd"

// LineCopier copies lines of numbers. Each goroutine needs its own; the zero value is ready.
type LineCopier struct{ window simd.Window }

// Copy writes lines of n values: those of dst are stepDst apart, those of src stepSrc, and neighbours of src step.
func (c *LineCopier) Copy(dst []float32, stepDst int, src []float32, stepSrc, step, n, lines int) {
	if f := simd.WindowKernels(); f != nil && f.CopyLines(&c.window, dst, stepDst, src, stepSrc, step, n, lines) {
		return
	}
	copyLines(dst, stepDst, src, stepSrc, step, n, lines)
}
