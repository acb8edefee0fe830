package simd

import (
	"math"
	"unsafe"
)

// Curves holds kernels of elementary functions. The functions with a table of package libm follow
// its arithmetic step by step and are bit-exact.
type Curves struct {
	Set         Set
	libmExp     func(dst, src *float32, n int, top, beta float32, t *LibmTable)
	libmSigmoid func(dst, src *float32, n int, t *LibmTable)
	// The following kernels are nil if absent.
	libmExpDivide  func(dst, src *float32, n int, top, beta float32, t *LibmTable, others *float32, by float32)
	softmaxColumns func(dst, src *float32, lines, step int, beta float32, t *LibmTable, before, sums *float32)
	quotients      func(dst *float32, lines, step int, sums *float32)

	libmTanh func(dst, src *float32, n int)
	libmElu  func(dst, src *float32, n int)
	libmLog  func(dst, src *float32, n int, t *float64)
	libmWave func(dst, src *float32, n int, turn int32, t *float64) (done int)
	shares   func(dst, src *float32, n int, by *float32, rows int)

	// Functions in float32 arithmetic. With anyLength they take any number of values, else a multiple
	// of 8.
	anyLength                                bool
	hardSwish, libmHardSwish                 func(dst, src *float32, n int, t *SingleTable)
	sigmoid, erf, tanh, silu, gelu, geluTanh func(dst, src *float32, n int, t *SingleTable)
	exponential, logarithm                   func(dst, src *float32, n int, t *SingleTable)
	softplus, mish, sin, cos                 func(dst, src *float32, n int, t *SingleTable)
	tan, asin, acos, atan                    func(dst, src *float32, n int, t *SingleTable)
	sinh, cosh, asinh, acosh, atanh          func(dst, src *float32, n int, t *SingleTable)
	powers                                   func(dst, a, b *float32, n int)
	expSum                                   func(dst, src *float32, n int, shift float32, t *SingleTable) float64
	softmaxRows                              func(dst, src *float32, rows, n int, t *SingleTable)

	// Functions of float64; nil if absent.
	expDoubles                              func(dst, src *float64, n int, shift float64) float64
	sigmoidDoubles, tanhDoubles, logDoubles func(dst, src *float64, n int)
	sinDoubles, cosDoubles                  func(dst, src *float64, n int) (done int)
	powDoubles                              func(dst, a, b *float64, n int)
}

// CurveKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func CurveKernels() *Curves { return curveKernels.pick() }

// HasDoubles reports whether float64 kernels are available.
func (c *Curves) HasDoubles() bool { return c != nil && c.expDoubles != nil }

// ExpDoubles writes e^(src-shift) and returns the sum of the results. The error is at most one
// unit in the last place. As all float64 functions, it requires [Curves.HasDoubles]. dst may be
// src.
func (c *Curves) ExpDoubles(dst, src []float64, shift float64) float64 {
	n := len(dst)
	if n == 0 {
		return 0
	}
	_ = src[n-1]
	return c.expDoubles(&dst[0], &src[0], n, shift)
}

// SigmoidDoubles writes 1/(1+e^-src). dst may be src.
func (c *Curves) SigmoidDoubles(dst, src []float64) { apply(dst, src, len(dst), c.sigmoidDoubles) }

// TanhDoubles writes hyperbolic tangents.
func (c *Curves) TanhDoubles(dst, src []float64) { apply(dst, src, len(dst), c.tanhDoubles) }

// LogDoubles writes natural logarithms.
func (c *Curves) LogDoubles(dst, src []float64) { apply(dst, src, len(dst), c.logDoubles) }

// SinDoubles writes sines. It returns the number of values written: it stops at a group of 8
// values of which one has a magnitude above 2^30.
func (c *Curves) SinDoubles(dst, src []float64) int { return sinCosF64(dst, src, c.sinDoubles) }

// CosDoubles is [Curves.SinDoubles] for cosines.
func (c *Curves) CosDoubles(dst, src []float64) int { return sinCosF64(dst, src, c.cosDoubles) }

func sinCosF64(dst, src []float64, f func(dst, src *float64, n int) int) int {
	n := len(dst)
	if n == 0 {
		return 0
	}
	_ = src[n-1]
	return f(&dst[0], &src[0], n)
}

// PowDoubles writes a^b with the special cases of C. dst may be a or b.
func (c *Curves) PowDoubles(dst, a, b []float64) {
	if n := len(dst); n > 0 {
		_, _ = a[n-1], b[n-1]
		c.powDoubles(&dst[0], &a[0], &b[0], n)
	}
}

// LibmTable holds the constants of the exponential of package libm.
type LibmTable struct {
	numbers [7][4]float64
	singles [9][8]float32
	table   [32]uint64
	halves  [2][32]uint32 // of table: the lower halves, then the upper halves
}

// NewLibmTable takes the constants of the exponential: the scale that maps x to integers, the
// number whose addition rounds, the coefficients of the polynomial, and the powers of two. The
// result is infinite above above, and zero below below. The sigmoid is 1 above top and e^x below
// bottom.
func NewLibmTable(scale, shift float64, c [3]float64, above, below, top, bottom float32, table [32]uint64) *LibmTable {
	t := &LibmTable{table: table}
	for i, v := range []float64{scale, shift, c[0], c[1], c[2], 1, math.Float64frombits(31)} {
		t.numbers[i] = [4]float64{v, v, v, v}
	}
	// e^89 is infinite and e^-104 is zero in float32, so clamping x to these limits changes no
	// result.
	for i, v := range []float32{above, below, float32(math.Inf(1)), float32(math.Copysign(0, -1)), 1, top, bottom, 89, -104} {
		for k := range t.singles[i] {
			t.singles[i][k] = v
		}
	}
	for i, v := range table {
		t.halves[0][i], t.halves[1][i] = uint32(v), uint32(v>>32)
	}
	return t
}

// LibmExp writes e^((src-top)·beta), bit-exact to package libm. As all Libm methods, it returns
// the number of values written; the caller computes the rest.
func (c *Curves) LibmExp(dst, src []float32, top, beta float32, t *LibmTable) int {
	n := len(dst)
	if n > 0 {
		_ = src[n-1]
		c.libmExp(&dst[0], &src[0], n, top, beta, t)
	}
	return n
}

// HasLibmExpDivide reports whether LibmExpDivide is available.
func (c *Curves) HasLibmExpDivide() bool { return c != nil && c.libmExpDivide != nil }

// LibmExpDivide is LibmExp, and divides as many others in place by a number at the same time. It
// requires [Curves.HasLibmExpDivide].
func (c *Curves) LibmExpDivide(dst, src []float32, top, beta float32, t *LibmTable, others []float32, by float32) {
	if n := len(dst); n > 0 {
		_, _ = src[n-1], others[n-1]
		c.libmExpDivide(&dst[0], &src[0], n, top, beta, t, &others[0], by)
	}
}

// SoftmaxColumns is the number of columns that LibmSoftmaxColumns computes together.
const SoftmaxColumns = 8

// HasLibmSoftmaxColumns reports whether LibmSoftmaxColumns is available.
func (c *Curves) HasLibmSoftmaxColumns() bool { return c != nil && c.softmaxColumns != nil }

// LibmSoftmaxColumns writes the softmax of columns of blocks of lines, with the exponential of
// package libm and sums in order. A line has inner values, a multiple of [SoftmaxColumns]; the
// columns of all blocks, that many together, are counted from lo to hi. It requires
// [Curves.HasLibmSoftmaxColumns]. dst may be src.
func (c *Curves) LibmSoftmaxColumns(dst, src []float32, lines, inner, lo, hi int, beta float32, t *LibmTable) {
	if lines == 0 {
		return
	}
	sums := registerBuffers.Get().(*[SoftmaxColumns]float32)
	defer registerBuffers.Put(sums)
	for i := range sums {
		sums[i] = 1
	}
	each := inner / SoftmaxColumns
	var before *float32
	for i := lo; i < hi; i++ {
		at := i/each*lines*inner + i%each*SoftmaxColumns
		last := at + (lines-1)*inner + SoftmaxColumns - 1
		_, _ = dst[last], src[last]
		if before == nil {
			before = &dst[at] // divided by ones, then overwritten
		}
		c.softmaxColumns(&dst[at], &src[at], lines, 4*inner, beta, t, before, &sums[0])
		before = &dst[at]
	}
	if before != nil {
		c.quotients(before, lines, 4*inner, &sums[0])
	}
}

// Shares divides each of the adjacent rows of n values by its value in by, bit-exact to division.
// It returns false, and does nothing, if no kernel is available or a divisor is outside 2^-60 to
// 2^60. dst may be src.
func (c *Curves) Shares(dst, src, by []float32, n int) bool {
	const most = 1 << 60
	if c == nil || c.shares == nil {
		return false
	}
	for _, v := range by {
		if !(v >= 1./most && v <= most) {
			return false
		}
	}
	if len(by) > 0 && n > 0 {
		_, _ = dst[n*len(by)-1], src[n*len(by)-1]
		c.shares(&dst[0], &src[0], n, &by[0], len(by))
	}
	return true
}

// LibmSigmoid writes 1/(1+e^-src), bit-exact to package libm.
func (c *Curves) LibmSigmoid(dst, src []float32, t *LibmTable) int {
	n := len(dst)
	if n > 0 {
		_ = src[n-1]
		c.libmSigmoid(&dst[0], &src[0], n, t)
	}
	return n
}

// The assembly accesses the tables at fixed offsets.
var _ = [1]struct{}{}[unsafe.Offsetof(LibmTable{}.table)-16*32+unsafe.Offsetof(LibmTable{}.halves)-24*32]

// LibmTanh writes Tanh of package libm. It returns the number of values written.
func (c *Curves) LibmTanh(dst, src []float32) int { return apply(dst, src, len(dst), c.libmTanh) }

// LogTable holds the constants of the logarithm of package libm: factors and logarithms of 16
// intervals, ln 2, the coefficients of the polynomial with the highest power first, and 1.
type LogTable [16 + 16 + 5]float64

// LibmLog writes Log of package libm. It returns the number of values written.
func (c *Curves) LibmLog(dst, src []float32, t *LogTable) int {
	n := len(dst)
	if n == 0 || c.libmLog == nil {
		return 0
	}
	_ = src[n-1]
	c.libmLog(&dst[0], &src[0], n, &t[0])
	return n
}

// WaveTable holds the constants of the sine and the cosine of package libm: 2/π times 2^24, π/2,
// the terms of the sine, and the terms of the cosine.
type WaveTable [2 + 3 + 5]float64

// LibmWave writes Sin of package libm, or Cos if turn is 1. It returns the number of values
// written: it stops at a group of 16 values of which one is NaN or has a magnitude of 120 or
// more.
func (c *Curves) LibmWave(dst, src []float32, turn int32, t *WaveTable) int {
	n := len(dst)
	if n == 0 || c.libmWave == nil {
		return 0
	}
	_ = src[n-1]
	return c.libmWave(&dst[0], &src[0], n, turn, &t[0])
}

// LibmElu writes Expm1 of package libm for negative values, and copies the other values. It
// returns the number of values written.
func (c *Curves) LibmElu(dst, src []float32) int { return apply(dst, src, len(dst), c.libmElu) }
