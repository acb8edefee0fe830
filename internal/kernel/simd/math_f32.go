package simd

import (
	"math"
	"sync"
)

// SingleTable holds the constants of functions in float32 arithmetic. The assembly depends on
// their order.
type SingleTable [56][8]float32

// singleTable holds coefficients that were fitted at Chebyshev nodes to three functions: erf(x)/x
// - 1 in x² up to 0.93, ln(1-erf(x))/x + 1 in x from 0.9 to 4, and (tanh(x)/x - 1)/x² in x² up to
// 0.4. The relative errors are 6e-10 and 4e-9 for erf and 7e-10 for tanh. The rounding error of
// float32 is 6e-8.
var singleTable = func() (t SingleTable) {
	for i, v := range []float32{
		float32(math.Copysign(0, -1)), -104, math.Log2E, 0.693359375, -2.12194440e-4, math.Float32frombits(127), 1,
		1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 0.5,
		4, 0.921875,
		8.386572272486102e-05, -0.0008148713341563786, 0.005201804838697068, -0.026859844275598368, 0.11283707186756987, -0.3761263492281994, 0.1283791669036708,
		0.000216702686378924, -0.00323599479318612, 0.02295331619018578, -0.1053546562130947, -0.6356520940327292, -0.12853279184742972,
		0.625,
		0.002273355153273761, -0.0083266628284295, 0.021763587800757257, -0.053958597893757614, 0.1333330073439775, -0.33333333153340294,
		math.Sqrt2 / 2,
		2 * 0.7978845608028654 * 0.044715, 2 * 0.7978845608028654,
		minExp,
		2. / 15, 2. / 13, 2. / 11, 2. / 9, 2. / 7, 2. / 5, 2. / 3, 2,
		104, 0x1p-126, 1 << 23, 23, math.Float32frombits(0x3f3504f3), math.Float32frombits(0x007fffff), float32(math.Inf(1)), 3, 6,
	} {
		for k := range t[i] {
			t[i][k] = v
		}
	}
	return t
}()

// minExp is the least number whose exponential ExpSum writes.
const minExp = -87.33

// unary computes all of dst. The last values that do not fill a register use the same kernel, so
// that equal inputs have equal results.
func (c *Curves) unary(dst, src []float32, kernel func(dst, src *float32, n int, t *SingleTable)) {
	n := wholeRegisters(len(dst))
	if c.anyLength {
		n = len(dst)
	}
	if n > 0 {
		_ = src[n-1]
		kernel(&dst[0], &src[0], n, &singleTable)
	}
	if rest := len(dst) - n; rest > 0 {
		buf := registerBuffers.Get().(*[8]float32)
		copy(buf[:], src[n:len(dst)])
		kernel(&buf[0], &buf[0], 8, &singleTable)
		copy(dst[n:], buf[:rest])
		registerBuffers.Put(buf)
	}
}

var registerBuffers = sync.Pool{New: func() any { return new([8]float32) }}

// Sigmoid writes 1/(1+e^-src) for all elements. The error is at most 2.5 units in the last place.
func (c *Curves) Sigmoid(dst, src []float32) { c.unary(dst, src, c.sigmoid) }

// Erf writes the error function for all elements. The error is at most 2.5 units in the last
// place.
func (c *Curves) Erf(dst, src []float32) { c.unary(dst, src, c.erf) }

// Tanh writes the hyperbolic tangent for all elements. The error is at most 2.5 units in the last
// place.
func (c *Curves) Tanh(dst, src []float32) { c.unary(dst, src, c.tanh) }

// Silu writes src/(1+e^-src) for all elements. The error is at most 3 units in the last place of
// normal numbers.
func (c *Curves) Silu(dst, src []float32) { c.unary(dst, src, c.silu) }

// Gelu writes src/2·(1+erf(src/√2)) for all elements. The error is at most 3 units in the last
// place above -1, and 1e-7 below.
func (c *Curves) Gelu(dst, src []float32) { c.unary(dst, src, c.gelu) }

// GeluTanh writes the approximation src/2·(1+tanh(√(2/π)(src+0.044715·src³))), with the accuracy
// of Gelu.
func (c *Curves) GeluTanh(dst, src []float32) { c.unary(dst, src, c.geluTanh) }

// HardSwish writes src·min(max(src/6 + 1/2, 0), 1) for all elements. The error is at most 2.5
// units in the last place above -1, and 1e-6 below.
func (c *Curves) HardSwish(dst, src []float32) { c.unary(dst, src, c.hardSwish) }

// LibmHardSwish writes src·min(max(src+3, 0), 6)/6 for all elements, rounded after each step.
func (c *Curves) LibmHardSwish(dst, src []float32) { c.unary(dst, src, c.libmHardSwish) }

// Exp writes e^src for all elements. The error is at most 2 units in the last place.
func (c *Curves) Exp(dst, src []float32) { c.unary(dst, src, c.exponential) }

// Log writes natural logarithms of all elements. The error is at most 3 units in the last place.
func (c *Curves) Log(dst, src []float32) { c.unary(dst, src, c.logarithm) }

// Softplus writes ln(1+e^src) for all elements. The error is at most 4 units in the last place of
// normal numbers.
func (c *Curves) Softplus(dst, src []float32) { c.unary(dst, src, c.softplus) }

// Mish writes src·tanh(ln(1+e^src)) for all elements. The error is at most 5 units in the last
// place of normal numbers.
func (c *Curves) Mish(dst, src []float32) { c.unary(dst, src, c.mish) }

// Sin writes sines of all elements, whose magnitudes are up to 2^30. The error is at most one
// unit in the last place.
func (c *Curves) Sin(dst, src []float32) { c.unary(dst, src, c.sin) }

// Cos writes cosines, with the accuracy of Sin.
func (c *Curves) Cos(dst, src []float32) { c.unary(dst, src, c.cos) }

// Tan writes tangents of all elements, whose magnitudes are up to 2^30. As for the following
// functions, the error is at most one unit in the last place.
func (c *Curves) Tan(dst, src []float32) { c.unary(dst, src, c.tan) }

// Asin writes arc sines.
func (c *Curves) Asin(dst, src []float32) { c.unary(dst, src, c.asin) }

// Acos writes arc cosines.
func (c *Curves) Acos(dst, src []float32) { c.unary(dst, src, c.acos) }

// Atan writes arc tangents.
func (c *Curves) Atan(dst, src []float32) { c.unary(dst, src, c.atan) }

// Sinh writes hyperbolic sines.
func (c *Curves) Sinh(dst, src []float32) { c.unary(dst, src, c.sinh) }

// Cosh writes hyperbolic cosines.
func (c *Curves) Cosh(dst, src []float32) { c.unary(dst, src, c.cosh) }

// Asinh writes inverse hyperbolic sines.
func (c *Curves) Asinh(dst, src []float32) { c.unary(dst, src, c.asinh) }

// Acosh writes inverse hyperbolic cosines.
func (c *Curves) Acosh(dst, src []float32) { c.unary(dst, src, c.acosh) }

// Atanh writes inverse hyperbolic tangents.
func (c *Curves) Atanh(dst, src []float32) { c.unary(dst, src, c.atanh) }

// Pow writes a^b with the accuracy of Tan and the special cases of C. It returns the number of
// values written; the caller computes the rest.
func (c *Curves) Pow(dst, a, b []float32) int {
	n := wholeRegisters(len(dst))
	if c.anyLength {
		n = len(dst)
	}
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		c.powers(&dst[0], &a[0], &b[0], n)
	}
	return n
}

// MinSoftmaxRow is the minimum row length of SoftmaxRows: a register.
const MinSoftmaxRow = 16

// MaxSoftmaxRow is the maximum row length of SoftmaxRows: 16 float32 sums, each of 16 sums of 16
// terms.
const MaxSoftmaxRow = 4096

// HasSoftmaxRows reports whether SoftmaxRows takes rows of n values.
func (c *Curves) HasSoftmaxRows(n int) bool {
	return c != nil && c.softmaxRows != nil && n >= MinSoftmaxRow && n <= MaxSoftmaxRow
}

// SoftmaxRows writes the softmax of rows of n values, from [MinSoftmaxRow] to [MaxSoftmaxRow].
// Exponentials are those of ExpSum; results below the least normal number are zero. dst may be
// src. It returns false if no kernel is available for such rows.
func (c *Curves) SoftmaxRows(dst, src []float32, n int) bool {
	if !c.HasSoftmaxRows(n) {
		return false
	}
	if rows := len(dst) / n; rows > 0 {
		_ = src[rows*n-1]
		c.softmaxRows(&dst[0], &src[0], rows, n, &singleTable)
	}
	return true
}

// ExpSum writes e^(src-shift) for all elements and returns the sum of the results. shift is at
// least the maximum of src. Results below e^-87.33, a little above the least normal number, are
// zero.
func (c *Curves) ExpSum(dst, src []float32, shift float32) (sum float64) {
	n := wholeRegisters(len(dst))
	if c.anyLength {
		n = len(dst)
	}
	if n > 0 {
		_ = src[n-1]
		sum = c.expSum(&dst[0], &src[0], n, shift, &singleTable)
	}
	if rest := len(dst) - n; rest > 0 {
		buf := registerBuffers.Get().(*[8]float32)
		copy(buf[:], src[n:len(dst)])
		c.expSum(&buf[0], &buf[0], 8, shift, &singleTable)
		for i, e := range buf[:rest] {
			dst[n+i] = e
			sum += float64(e)
		}
		registerBuffers.Put(buf)
	}
	return sum
}
