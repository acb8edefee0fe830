package vectors

import "github.com/opmeter/opmeter/internal/kernel/simd"

// Dot returns the dot product of two slices; the shorter length counts. It adds partial sums,
// four in plain Go.
func Dot(a, b []float32) float32 {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	if e := simd.ElementKernels(); e != nil {
		return e.Dot(a, b)
	}
	var s0, s1, s2, s3 float32
	for len(a) >= 8 && len(b) >= 8 {
		p, q := (*[8]float32)(a), (*[8]float32)(b)
		s0 += p[0]*q[0] + p[4]*q[4]
		s1 += p[1]*q[1] + p[5]*q[5]
		s2 += p[2]*q[2] + p[6]*q[6]
		s3 += p[3]*q[3] + p[7]*q[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + (s2 + s3)
}

// Dots writes the dot products of a with the len(a) values of b from each offset in from. It
// computes eight or more offsets together.
func Dots(sums, a, b []float32, from []int) {
	e, n, many := simd.ElementKernels(), len(a), len(from)
	vec := n / 8 * 8
	sums = sums[:many]
	if many < 8 || e == nil || !e.Dots(sums, a[:vec], b, from) {
		for i, f := range from {
			sums[i] = Dot(a, b[f:][:n])
		}
		return
	}
	for i := 8; i < many; i += 8 {
		at := min(i, many-8) // the last ones may be computed twice
		e.Dots(sums[at:], a[:vec], b, from[at:])
	}
	for x := vec; x < n; x++ {
		for i, f := range from {
			sums[i] += a[x] * b[f+x]
		}
	}
}
