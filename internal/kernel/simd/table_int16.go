package simd

// Tables16 holds kernels for functions of int16 values by tables of 513 points with linear
// interpolation. Two such tables give softmax.
type Tables16 struct {
	Set       Set
	table     func(dst, src *int16, n int, table *int16)
	exps      func(dst, src *int16, n int, table *int16, top, left, mul, add, down int32) int32
	quotients func(dst *int16, n int, recip, half, shift int32)
}

// TableKernels16 returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func TableKernels16() *Tables16 { return tableKernels16.pick() }

// Table interpolates between point 256 + x>>7 and the next point, by the lower seven bits of x.
// Ties are rounded up.
func (f *Tables16) Table(dst, src []int16, t *[513]int16) {
	if n := len(dst); n > 0 {
		_ = src[n-1]
		f.table(&dst[0], &src[0], n, &t[0])
	}
}

// Scale16 is (x << Left)·Mul / 2^31, ties up, divided by 2^Down, ties down, in 32-bit arithmetic
// that wraps.
type Scale16 struct{ Left, Mul, Down int32 }

// Exps writes the table value of the scaled difference of each value from top, plus 32767,
// clamped to int16. It returns the sum of the results. Differences are not positive.
func (f *Tables16) Exps(dst, src []int16, t *[513]int16, top int16, s *Scale16) (sum int32) {
	if n := len(dst); n > 0 {
		_ = src[n-1]
		return f.exps(&dst[0], &src[0], n, &t[0], int32(top), s.Left, s.Mul, halfPower(s.Down)-min(s.Down, 1), s.Down)
	}
	return 0
}

// Quotients sets v[i] = (v[i]·recip + 2^shift/2) / 2^shift, at most 32767. recip and the values
// of v are not negative; shift is at most 31.
func (f *Tables16) Quotients(v []int16, recip int16, shift uint) {
	if len(v) > 0 {
		f.quotients(&v[0], len(v), int32(recip), halfPower(int32(shift)), int32(shift))
	}
}

// halfPower returns 2^n/2, rounded down; n is at most 31.
func halfPower(n int32) int32 { return int32(uint32(1) << n >> 1) }
