package element

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Int32ToFloat32 converts integers to float32, rounded to nearest; dst is as long as src.
func Int32ToFloat32(dst []float32, src []int32) {
	n := 0
	if e := simd.ElementKernels(); e != nil {
		n = e.ToFloats(dst, src)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
}

// Bound limits every element in place as min(max(x, lo), hi) does: NaN stays, and +0 is greater
// than -0.
func Bound(v []float32, lo, hi float32) {
	if e := simd.ElementKernels(); e != nil {
		e.Clamp(v, v, lo, hi)
		return
	}
	// Branch-free: the signs are unpredictable.
	for i, x := range v {
		v[i] = min(max(x, lo), hi)
	}
}

// LookupGrain returns the minimum number of bytes to look up per thread.
func LookupGrain() int {
	if f := simd.IntKernels(); f != nil && f.LooksUp() {
		return workers.Grain(16)
	}
	return Grain
}

// Lookup replaces bytes by their table entries; dst may be src.
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

// Scale computes src·f; dst may be src.
func Scale(dst, src []float32, f float32) {
	if e := simd.ElementKernels(); e != nil {
		e.MulScalar(dst, src, f)
		return
	}
	for i, v := range src {
		dst[i] = v * f
	}
}

// MaxOf returns the maximum of v: NaN if v contains one, -Inf if v is empty. Between zeros of both
// signs it may return either.
func MaxOf(v []float32) float32 {
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
