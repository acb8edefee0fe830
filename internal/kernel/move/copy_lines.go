package move

import "github.com/opmeter/opmeter/internal/kernel/simd"

// LineCopier copies lines of values. It is not safe for concurrent use; the zero value is ready.
type LineCopier struct{ window simd.Window }

// Copy copies lines of n values. Lines are stepDst apart in dst and stepSrc apart in src; values
// of src are step apart.
func (c *LineCopier) Copy(dst []float32, stepDst int, src []float32, stepSrc, step, n, lines int) {
	if f := simd.WindowKernels(); f != nil && f.CopyLines(&c.window, dst, stepDst, src, stepSrc, step, n, lines) {
		return
	}
	Lines(dst, stepDst, src, stepSrc, step, n, lines)
}

// Lines copies lines of n values. Lines are stepDst apart in dst and stepSrc apart in src; values
// of src are step apart.
func Lines[T any](dst []T, stepDst int, src []T, stepSrc, step, n, lines int) {
	for l := range lines {
		to, from := dst[l*stepDst:][:n], src[l*stepSrc:]
		if step == 1 {
			copy(to, from)
		} else {
			Strided(to, from, step)
		}
	}
}

// Strided copies every step-th value.
func Strided[T any](dst, src []T, step int) {
	if step == 2 {
		for len(dst) >= 4 && len(src) >= 8 {
			d, v := (*[4]T)(dst), (*[7]T)(src)
			d[0], d[1], d[2], d[3] = v[0], v[2], v[4], v[6]
			dst, src = dst[4:], src[8:]
		}
	}
	at := 0
	for i := range dst {
		dst[i] = src[at]
		at += step
	}
}
