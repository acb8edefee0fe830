package simd

import "math"

// Rows holds kernels over rows of float32 that add in float64, and kernels of normalisations.
type Rows struct {
	Set        Set
	sum        func(src *float32, n int) float64
	squares    func(src *float32, n int, mean float64) float64
	normalise  func(dst, src *float32, n int, mean, inv float64)
	addSquares func(dst, src *float32, n int)
	quarters   func(dst, x, sum *float32, n int, bias, scale float32)
	roots      func(dst, src *float32, n int)
	ordered    func(sums, src *float32, step, n int)
	layers     func(dst, src, gamma, beta *float32, rows, n int, per, eps float64) // nil if absent
	squared    func(dst, src, gamma *float32, rows, n int, per, eps float64)       // nil if absent
}

// RowKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func RowKernels() *Rows { return rowKernels.pick() }

// Sum returns the sum of src.
func (r *Rows) Sum(src []float32) (sum float64) {
	n := wholeRegisters(len(src))
	if n > 0 {
		sum = r.sum(&src[0], n)
	}
	for _, v := range src[n:] {
		sum += float64(v)
	}
	return sum
}

// OrderedSums writes the sums of len(sums) adjacent rows of n elements, in float32 and in the
// order of the elements. Exact.
func (r *Rows) OrderedSums(sums, src []float32, n int) {
	src = src[:len(sums)*n]
	fours := n / 4 * 4
	for ; len(sums) >= 8 && fours > 0; sums, src = sums[8:], src[8*n:] {
		r.ordered(&sums[0], &src[0], 4*n, fours)
		for i := range 8 {
			for _, v := range src[i*n:][fours:n] {
				sums[i] += v
			}
		}
	}
	for i := range sums {
		sums[i] = 0
		for _, v := range src[i*n:][:n] {
			sums[i] += v
		}
	}
}

// Squares returns the sum of (src - mean)².
func (r *Rows) Squares(src []float32, mean float64) (sum float64) {
	n := wholeRegisters(len(src))
	if n > 0 {
		sum = r.squares(&src[0], n, mean)
	}
	for _, v := range src[n:] {
		d := float64(v) - mean
		sum += d * d
	}
	return sum
}

// LayerRows normalises rows of src, each as long as gamma and beta: (src - mean) / standard
// deviation, times gamma, plus beta. eps is added to the variance. The value before gamma is
// computed in float64 and rounded once. It returns false if no kernel is available for rows of
// this length.
func (r *Rows) LayerRows(dst, src, gamma, beta []float32, eps float64) bool {
	n := len(gamma)
	if r.layers == nil || n == 0 || n%16 != 0 || len(beta) != n || len(dst)%n != 0 || len(src) < len(dst) {
		return false
	}
	if len(dst) > 0 {
		r.layers(&dst[0], &src[0], &gamma[0], &beta[0], len(dst)/n, n, 1/float64(n), eps)
	}
	return true
}

// MeanSquareRows is LayerRows without mean and beta: rows are divided by the root of their mean
// square plus eps, and multiplied by gamma.
func (r *Rows) MeanSquareRows(dst, src, gamma []float32, eps float64) bool {
	n := len(gamma)
	if r.squared == nil || n == 0 || n%16 != 0 || len(dst)%n != 0 || len(src) < len(dst) {
		return false
	}
	if len(dst) > 0 {
		r.squared(&dst[0], &src[0], &gamma[0], len(dst)/n, n, 1/float64(n), eps)
	}
	return true
}

// Normalise writes (src - mean)·inv, computed in float64 and rounded once. dst may be src.
func (r *Rows) Normalise(dst, src []float32, mean, inv float64) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		r.normalise(&dst[0], &src[0], n, mean, inv)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32((float64(src[i]) - mean) * inv)
	}
}

// AddSquares adds src² to dst, rounded once or twice.
func (r *Rows) AddSquares(dst, src []float32) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		r.addSquares(&dst[0], &src[0], n)
	}
	for i := n; i < len(dst); i++ {
		dst[i] += src[i] * src[i]
	}
}

// ThreeQuarters writes x / (bias + scale·sum)^(3/4). The error is at most 3 units in the last
// place.
func (r *Rows) ThreeQuarters(dst, x, sum []float32, bias, scale float32) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_, _ = x[n-1], sum[n-1]
		r.quarters(&dst[0], &x[0], &sum[0], n, bias, scale)
	}
	for i := n; i < len(dst); i++ {
		t := math.Sqrt(float64(bias) + float64(scale)*float64(sum[i]))
		dst[i] = float32(float64(x[i]) / (t * math.Sqrt(t)))
	}
}

// Roots writes square roots.
func (r *Rows) Roots(dst, src []float32) {
	n := wholeRegisters(len(dst))
	if n > 0 {
		_ = src[n-1]
		r.roots(&dst[0], &src[0], n)
	}
	for i := n; i < len(dst); i++ {
		dst[i] = float32(math.Sqrt(float64(src[i])))
	}
}
