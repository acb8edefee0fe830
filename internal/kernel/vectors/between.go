package vectors

import "github.com/opmeter/opmeter/internal/kernel/simd"

// Between interpolates lines of values in vectors: each result is the sum of two values times their weights.
type Between struct {
	f      *simd.Resizes
	n, m   int // values and results of a line
	blocks []simd.Between
}

// NewBetween prepares it for lines of n values: result i is that of the values at[2*i] and at[2*i+1] with the weights of these places.
// It returns nil where there are no kernels in vectors, or neighbours lie too far apart for them.
func NewBetween(n int, at []int, weights []float32) *Between {
	const lanes, window = 16, 32
	b := &Between{f: simd.ResizeKernels(), n: n, m: len(at) / 2}
	if b.f == nil || b.m < lanes/2 {
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

// Lines interpolates as many lines as dst has, which follow each other.
func (b *Between) Lines(dst, src []float32) {
	const near = 1 << 12 // values that stay in the first-level cache while the blocks of these lines go by
	all := len(dst) / b.m
	src = src[:all*b.n]
	for i := 0; i < all; {
		lines := min(max(1, near/(b.n+b.m)), all-i)
		b.f.Between(dst[i*b.m:], b.m, src[i*b.n:], b.n, lines, b.blocks)
		i += lines
	}
}
