package vectors

import "github.com/opmeter/opmeter/internal/kernel/simd"

// Interpolator interpolates rows of values with SIMD kernels: each result is a weighted sum of two
// values.
type Interpolator struct {
	f      *simd.Resizes
	n, m   int // input and output values of a row
	blocks []simd.Between
}

// NewInterpolator prepares the interpolation of rows of n values: result i is the sum of the values
// at[2*i] and at[2*i+1] times the weights with these indices. It returns nil without SIMD
// kernels, or if neighbours are too far apart for them.
func NewInterpolator(n int, at []int, weights []float32) *Interpolator {
	const lanes, window = 16, 32
	b := &Interpolator{f: simd.ResizeKernels(), n: n, m: len(at) / 2}
	if !b.f.HasBetween() || b.m < lanes/2 {
		return nil
	}
	for o := 0; o < b.m; o += lanes {
		here := min(lanes, b.m-o)
		base, end := n, 0
		for _, p := range at[2*o : 2*(o+here)] {
			base, end = min(base, p), max(end, p+1)
		}
		if end-base > window {
			return nil
		}
		q := simd.Between{Base: int64(4 * base), In: uint32(1<<(end-base) - 1), Out: 1<<here - 1}
		for i := range here {
			q.Lo[i], q.Hi[i] = int32(at[2*(o+i)]-base), int32(at[2*(o+i)+1]-base)
			q.Left[i], q.Right[i] = weights[2*(o+i)], weights[2*(o+i)+1]
		}
		b.blocks = append(b.blocks, q)
	}
	return b
}

// Lines interpolates as many consecutive rows as fit dst.
func (b *Interpolator) Lines(dst, src []float32) {
	const near = 1 << 12 // values that stay in the L1 cache while the blocks of these rows pass
	all := len(dst) / b.m
	src = src[:all*b.n]
	for i := 0; i < all; {
		lines := min(max(1, near/(b.n+b.m)), all-i)
		b.f.Between(dst[i*b.m:], b.m, src[i*b.n:], b.n, lines, b.blocks)
		i += lines
	}
}
