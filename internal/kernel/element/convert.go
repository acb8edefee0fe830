package element

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Floats rounds integers to float32; dst is as long as src.
func Floats(dst []float32, src []int32) {
	n := 0
	if e := simd.ElementKernels(); e != nil {
		n = e.ToFloats(dst, src)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
}

// Bound limits every element in place as min(max(x, lo), hi) does: what is no number
// stays, and of zeros of both signs the positive one is greater.
func Bound(v []float32, lo, hi float32) {
	if e := simd.ElementKernels(); e != nil {
		e.Clamp(v, v, lo, hi)
		return
	}
	// Without branches on the values, whose signs cannot be foretold.
	for i, x := range v {
		v[i] = min(max(x, lo), hi)
	}
}

// LookupGrain is the least number of bytes to look up that are worth giving to another thread.
func LookupGrain() int {
	if f := simd.IntKernels(); f != nil && f.LooksUp() {
		return workers.Grain(16)
	}
	return Grain
}

// Lookup replaces bytes by their entries in a table; dst may be src.
func Lookup(dst, src []uint8, table *[256]uint8) {
	src = src[:len(dst)]
	if f := simd.IntKernels(); f != nil {
		n := f.Lookup(dst, src, table)
		dst, src = dst[n:], src[n:]
	}
	for i, v := range src {
		dst[i] = table[v]
	}
}

// Scale writes src·f; dst may be src.
func Scale(dst, src []float32, f float32) {
	if e := simd.ElementKernels(); e != nil {
		e.MulScalar(dst, src, f)
		return
	}
	for i, v := range src {
		dst[i] = v * f
	}
}

// Top is the largest of v, what is no number if one is none, and minus infinity of nothing.
// Of zeros it may be either.
func Top(v []float32) float32 {
	top := float32(math.Inf(-1))
	if e := simd.ElementKernels(); e != nil {
		_, top = e.Extent(v, top, top)
		return top
	}
	for _, x := range v {
		top = max(top, x)
	}
	return top
}

// AddTo sets dst[i] = a[i] + b[i].
func AddTo[T tensor.Number](dst, a, b []T) {
	if d, ok := any(dst).([]float32); ok {
		if e := simd.ElementKernels(); e != nil {
			e.Add(d, any(a).([]float32)[:len(d)], any(b).([]float32)[:len(d)])
			return
		}
	}
	n := simd.Integers(simd.ElementKernels(), simd.IntAdd, dst, a, b)
	addVec(dst[n:], a[n:], b[n:])
}

// DivTo sets dst[i] = a[i] / b[i].
func DivTo(dst, a, b []float32) {
	if e := simd.ElementKernels(); e != nil {
		e.Div(dst, a, b)
		return
	}
	divVec(dst, a, b)
}

// DivAllTo sets dst[i] = a[i] / b.
func DivAllTo(dst, a []float32, b float32) {
	if e := simd.ElementKernels(); e != nil {
		e.DivScalar(dst, a, b)
		return
	}
	divScalar(dst, a, b)
}
