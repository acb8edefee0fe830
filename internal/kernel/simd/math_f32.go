package simd

import (
	"math"
	"sync"
)

// SingleTable is what functions compute with that stay in float32, in the order in which the
// assembly knows it.
type SingleTable [54][8]float32

// Coefficients fitted to erf(x)/x - 1 in x² up to 0.93, to ln(1-erf(x))/x + 1 in x from 0.9 to 4 and to
// (tanh(x)/x - 1)/x² in x² up to 0.4, at Chebyshev's nodes: relative errors of erf 6e-10 and 4e-9, of tanh 7e-10,
// the rounding of float32 being 6e-8.
var singles = func() (t SingleTable) {
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
		leastExp,
		2. / 15, 2. / 13, 2. / 11, 2. / 9, 2. / 7, 2. / 5, 2. / 3, 2,
		104, 0x1p-126, 1 << 23, 23, math.Float32frombits(0x3f3504f3), math.Float32frombits(0x007fffff), float32(math.Inf(1)),
	} {
		for k := range t[i] {
			t[i][k] = v
		}
	}
	return t
}()

// leastExp is the least number whose exponential ExpSum writes.
const leastExp = -87.33

// single computes all of dst: what is left of the last register takes the same way, so that
// equal numbers have equal results.
func (c *Curves) single(dst, src []float32, loop func(dst, src *float32, n int, t *SingleTable)) {
	n := whole(len(dst))
	if c.every {
		n = len(dst)
	}
	if n > 0 {
		_ = src[n-1]
		loop(&dst[0], &src[0], n, &singles)
	}
	if rest := len(dst) - n; rest > 0 {
		room := singleRooms.Get().(*[8]float32)
		copy(room[:], src[n:len(dst)])
		loop(&room[0], &room[0], 8, &singles)
		copy(dst[n:], room[:rest])
		singleRooms.Put(room)
	}
}

var singleRooms = sync.Pool{New: func() any { return new([8]float32) }}

// Sigmoid writes 1/(1+e^-src), all of it, to within 2.5 units in the last place.
func (c *Curves) Sigmoid(dst, src []float32) { c.single(dst, src, c.sigmoid) }

// Erf writes the error function, all of it, to within 2.5 units in the last place.
func (c *Curves) Erf(dst, src []float32) { c.single(dst, src, c.erf) }

// Tanh writes the hyperbolic tangent, all of it, to within 2.5 units in the last place.
func (c *Curves) Tanh(dst, src []float32) { c.single(dst, src, c.tanh) }

// Silu writes src/(1+e^-src), all of it, to within 3 units in the last place of normal numbers.
func (c *Curves) Silu(dst, src []float32) { c.single(dst, src, c.silu) }

// Gelu writes src/2·(1+erf(src/√2)), all of it, to within 3 units in the last place of what is above -1; below,
// to within 1e-7.
func (c *Curves) Gelu(dst, src []float32) { c.single(dst, src, c.gelu) }

// GeluTanh writes the approximation src/2·(1+tanh(√(2/π)(src+0.044715·src³))), as exact as Gelu.
func (c *Curves) GeluTanh(dst, src []float32) { c.single(dst, src, c.geluTanh) }

// HardSwish writes src·min(max(src/6 + 1/2, 0), 1), all of it, to within 2.5 units in the last place above -1, and
// 1e-6 below.
func (c *Curves) HardSwish(dst, src []float32) { c.single(dst, src, c.hardSwish) }

// Exp writes e^src, all of it, to within 2 units in the last place.
func (c *Curves) Exp(dst, src []float32) { c.single(dst, src, c.exponential) }

// Log writes natural logarithms, all of them, to within 3 units in the last place.
func (c *Curves) Log(dst, src []float32) { c.single(dst, src, c.logarithm) }

// Softplus writes ln(1+e^src), all of it, to within 4 units in the last place of normal numbers.
func (c *Curves) Softplus(dst, src []float32) { c.single(dst, src, c.softplus) }

// Mish writes src·tanh(ln(1+e^src)), all of it, to within 5 units in the last place of normal numbers.
func (c *Curves) Mish(dst, src []float32) { c.single(dst, src, c.mish) }

// Sin writes sines of numbers up to 2^30 in size, all of it, to within a unit in the last place.
func (c *Curves) Sin(dst, src []float32) { c.single(dst, src, c.sin) }

// Cos writes cosines, as exact as Sin.
func (c *Curves) Cos(dst, src []float32) { c.single(dst, src, c.cos) }

// Tan writes tangents of numbers up to 2^30 in size, all of it, to within a unit in the last place, as the following do.
func (c *Curves) Tan(dst, src []float32) { c.single(dst, src, c.tan) }

// Asin writes the angles whose sines are src.
func (c *Curves) Asin(dst, src []float32) { c.single(dst, src, c.asin) }

// Acos writes the angles whose cosines are src.
func (c *Curves) Acos(dst, src []float32) { c.single(dst, src, c.acos) }

// Atan writes the angles whose tangents are src.
func (c *Curves) Atan(dst, src []float32) { c.single(dst, src, c.atan) }

// Sinh writes hyperbolic sines.
func (c *Curves) Sinh(dst, src []float32) { c.single(dst, src, c.sinh) }

// Cosh writes hyperbolic cosines.
func (c *Curves) Cosh(dst, src []float32) { c.single(dst, src, c.cosh) }

// Asinh writes the numbers whose hyperbolic sines are src.
func (c *Curves) Asinh(dst, src []float32) { c.single(dst, src, c.asinh) }

// Acosh writes the numbers whose hyperbolic cosines are src.
func (c *Curves) Acosh(dst, src []float32) { c.single(dst, src, c.acosh) }

// Atanh writes the numbers whose hyperbolic tangents are src.
func (c *Curves) Atanh(dst, src []float32) { c.single(dst, src, c.atanh) }

// Pow writes a^b, as exact as Tan, with the special cases of C; it returns for how many numbers it did so: the caller does the rest.
func (c *Curves) Pow(dst, a, b []float32) int {
	n := whole(len(dst))
	if c.every {
		n = len(dst)
	}
	if n > 0 {
		_, _ = a[n-1], b[n-1]
		c.powers(&dst[0], &a[0], &b[0], n)
	}
	return n
}

// LeastOfRow is the shortest row of SoftmaxRows, a register.
const LeastOfRow = 16

// MostOfRow is the longest row of SoftmaxRows: each of 16 sums in float32 is one of 16 sums of 16 terms.
const MostOfRow = 4096

// HasSoftmaxRows tells whether SoftmaxRows takes rows of n.
func (c *Curves) HasSoftmaxRows(n int) bool {
	return c != nil && c.softmaxRows != nil && n >= LeastOfRow && n <= MostOfRow
}

// SoftmaxRows writes the softmax of rows of n, from [LeastOfRow] to [MostOfRow], with exponentials as those of ExpSum and zero for what is less
// than the least normal number; dst may be src. It returns false where
// there is no loop for that.
func (c *Curves) SoftmaxRows(dst, src []float32, n int) bool {
	if !c.HasSoftmaxRows(n) {
		return false
	}
	if rows := len(dst) / n; rows > 0 {
		_ = src[rows*n-1]
		c.softmaxRows(&dst[0], &src[0], rows, n, &singles)
	}
	return true
}

// ExpSum writes e^(src-shift), all of it, and returns the sum of the results; shift is not below any of src. What is less
// than e^-87.33, a little above the least normal number, is zero.
func (c *Curves) ExpSum(dst, src []float32, shift float32) (sum float64) {
	n := whole(len(dst))
	if c.every {
		n = len(dst)
	}
	if n > 0 {
		_ = src[n-1]
		sum = c.expSum(&dst[0], &src[0], n, shift, &singles)
	}
	if rest := len(dst) - n; rest > 0 {
		room := singleRooms.Get().(*[8]float32)
		copy(room[:], src[n:len(dst)])
		c.expSum(&room[0], &room[0], 8, shift, &singles)
		for i, e := range room[:rest] {
			dst[n+i] = e
			sum += float64(e)
		}
		singleRooms.Put(room)
	}
	return sum
}
