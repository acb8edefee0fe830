package simd

// Tables16 are functions of 16-bit numbers by tables of 513 points with straight lines between them, and the softmax that is made of two of them.
type Tables16 struct {
	Set       Set
	table     func(dst, src *int16, n int, table *int16)
	exps      func(dst, src *int16, n int, table *int16, top, left, mul, add, down int32) int32
	quotients func(dst *int16, n int, recip, half, shift int32)
}

// TableKernels16 of the current set; nil where plain Go is all there is.
func TableKernels16() *Tables16 { return tables16.pick() }

// Table writes what a table has for numbers: point 256 + x>>7, and as much of the way to the next as the lower seven bits say, rounded with ties up.
func (f *Tables16) Table(dst, src []int16, t *[513]int16) {
	if n := len(dst); n > 0 {
		_ = src[n-1]
		f.table(&dst[0], &src[0], n, &t[0])
	}
}

// Scale16 is (x << Left)·Mul / 2^31, ties up, divided by 2^Down, ties down, in 32 bits that wrap.
type Scale16 struct{ Left, Mul, Down int32 }

// Exps writes what a table has for how far numbers are from the row's top, scaled, plus 32767, as 16-bit numbers with limits, and returns the sum
// of that. Differences are not above zero.
func (f *Tables16) Exps(dst, src []int16, t *[513]int16, top int16, s *Scale16) (sum int32) {
	if n := len(dst); n > 0 {
		_ = src[n-1]
		return f.exps(&dst[0], &src[0], n, &t[0], int32(top), s.Left, s.Mul, halfOf(s.Down)-min(s.Down, 1), s.Down)
	}
	return 0
}

// Quotients sets v[i] = (v[i]·recip + 2^shift/2) / 2^shift, at most 32767. None of v, nor recip, is negative; shift is at most 31.
func (f *Tables16) Quotients(v []int16, recip int16, shift uint) {
	if len(v) > 0 {
		f.quotients(&v[0], len(v), int32(recip), halfOf(int32(shift)), int32(shift))
	}
}

// halfOf is 2^n/2, rounded down; n is at most 31.
func halfOf(n int32) int32 { return int32(uint32(1) << n >> 1) }
