package simd

import "unsafe"

// PRelu writes a, times b where a is negative. It returns for how many it did so, as Max and Min do: the caller does the rest.
func (e *Elements) PRelu(dst, a, b []float32) int {
	if e.preluVV == nil {
		return 0
	}
	return both(dst, a, b, e.preluVV)
}

// PReluScalar writes a, times b where a is negative.
func (e *Elements) PReluScalar(dst, a []float32, b float32) int {
	if e.preluVS == nil {
		return 0
	}
	return withScalar(dst, a, b, e.preluVS)
}

// Max writes a where it is greater than b or no number, and b elsewhere.
func (e *Elements) Max(dst, a, b []float32) int {
	if e.maxVV == nil {
		return 0
	}
	return both(dst, a, b, e.maxVV)
}

// Min writes a where it is less than b or no number, and b elsewhere.
func (e *Elements) Min(dst, a, b []float32) int {
	if e.minVV == nil {
		return 0
	}
	return both(dst, a, b, e.minVV)
}

// AddInts sets dst[i] = a[i] + b[i]; it returns for how many numbers it did so.
func (e *Elements) AddInts(dst, a, b []int32) int {
	n := whole(len(dst))
	if e.addInts == nil || n == 0 {
		return 0
	}
	_, _ = a[n-1], b[n-1]
	e.addInts((*float32)(unsafe.Pointer(&dst[0])), (*float32)(unsafe.Pointer(&a[0])), (*float32)(unsafe.Pointer(&b[0])), n)
	return n
}

// AddScaled adds ((w·by)·scales)·scale, rounded after each step, to dst. It does nothing and returns false where there is no such loop.
func (e *Elements) AddScaled(dst, w, scales []float32, by, scale float32) bool {
	if e == nil || e.addScaled == nil {
		return false
	}
	if n := len(dst); n > 0 {
		_, _ = w[n-1], scales[n-1]
		e.addScaled(&dst[0], &w[0], &scales[0], n, by, scale)
	}
	return true
}
