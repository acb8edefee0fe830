package simd

import (
	"math"
	"sync"
	"unsafe"
)

// Curves are elementary functions. Those that take a table of packages vecmath or libm go
// through their arithmetic, operation by operation, and give their bits.
type Curves struct {
	Set             Set
	wide            int  // how many values libmExp takes at a time
	every           bool // sigmoid and erf take any number of values
	exp, silu, tanh func(dst, src *float32, n int, t *ExpTable)
	sigmoid, erf    func(dst, src *float32, n int, t *SingleTable)
	expSum          func(dst, src *float32, n int, shift float32, t *ExpTable) float64
	libmExp         func(dst, src *float32, n int, top, beta float32, t *LibmTable)
	libmSigmoid     func(dst, src *float32, n int, t *LibmTable)
	libmTanh        func(dst, src *float32, n int) // nil for none
}

// CurveKernels of the current set; nil where plain Go is all there is.
func CurveKernels() *Curves { return curves.pick() }

// curveLanes is the number of values that curves take at a time.
const curveLanes = 4

// ExpTable is what the exponential of package vecmath computes with, in the order in
// which the assembly knows it.
type ExpTable struct {
	numbers [12][4]float64
	table   [64]uint64
}

// NewExpTable takes the scale that makes whole numbers of x, the number whose addition
// rounds, the way back, the limits of x, and the powers of two between 1 and 2.
func NewExpTable(scale, shift, step, limit float64, table [64]uint64) *ExpTable {
	t := &ExpTable{table: table}
	for i, v := range []float64{scale, shift, step, limit, -limit, 1, 0.5, 1.0 / 6, 1.0 / 24, 2, math.Copysign(0, -1), math.Float64frombits(63)} {
		t.numbers[i] = [4]float64{v, v, v, v}
	}
	return t
}

// LibmTable is what the exponential of package libm computes with.
type LibmTable struct {
	numbers [7][4]float64
	singles [7][8]float32
	table   [32]uint64
}

// NewLibmTable takes scale and shift as NewExpTable does, the coefficients of the
// polynomial, the limits above which the result is infinite and below which it is zero,
// those of the sigmoid (1 above top, e^x below bottom) and the powers of two.
func NewLibmTable(scale, shift float64, c [3]float64, above, below, top, bottom float32, table [32]uint64) *LibmTable {
	t := &LibmTable{table: table}
	for i, v := range []float64{scale, shift, c[0], c[1], c[2], 1, math.Float64frombits(31)} {
		t.numbers[i] = [4]float64{v, v, v, v}
	}
	for i, v := range []float32{above, below, float32(math.Inf(1)), float32(math.Copysign(0, -1)), 1, top, bottom} {
		for k := range t.singles[i] {
			t.singles[i][k] = v
		}
	}
	return t
}

func curve(dst, src []float32, t *ExpTable, loop func(dst, src *float32, n int, t *ExpTable)) int {
	n := len(dst) / curveLanes * curveLanes
	if n > 0 {
		_ = src[n-1]
		loop(&dst[0], &src[0], n, t)
	}
	return n
}

// Exp writes e^src. It returns for how many it did so, as all do here: the caller does
// the rest.
func (c *Curves) Exp(dst, src []float32, t *ExpTable) int { return curve(dst, src, t, c.exp) }

// SingleTable is what functions compute with that stay in float32, in the order in which the
// assembly knows it.
type SingleTable [28][8]float32

// Coefficients fitted to erf(x)/x - 1 in x² up to 0.93 and to ln(1-erf(x))/x + 1 in x from 0.9 to 4, at
// Chebyshev's nodes: relative errors of erf 6e-10 and 4e-9, the rounding of float32 being 6e-8.
var singles = func() (t SingleTable) {
	for i, v := range []float32{
		float32(math.Copysign(0, -1)), -104, math.Log2E, 0.693359375, -2.12194440e-4, math.Float32frombits(127), 1,
		1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 0.5,
		4, 0.921875,
		8.386572272486102e-05, -0.0008148713341563786, 0.005201804838697068, -0.026859844275598368, 0.11283707186756987, -0.3761263492281994, 0.1283791669036708,
		0.000216702686378924, -0.00323599479318612, 0.02295331619018578, -0.1053546562130947, -0.6356520940327292, -0.12853279184742972,
	} {
		for k := range t[i] {
			t[i][k] = v
		}
	}
	return t
}()

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

// Silu writes src/(1+e^-src).
func (c *Curves) Silu(dst, src []float32, t *ExpTable) int { return curve(dst, src, t, c.silu) }

// Tanh writes the hyperbolic tangent.
func (c *Curves) Tanh(dst, src []float32, t *ExpTable) int { return curve(dst, src, t, c.tanh) }

// ExpSum writes e^(src-shift) and returns the sum of the results before they are rounded.
func (c *Curves) ExpSum(dst, src []float32, shift float32, t *ExpTable) (n int, sum float64) {
	n = len(dst) / curveLanes * curveLanes
	if n > 0 {
		_ = src[n-1]
		sum = c.expSum(&dst[0], &src[0], n, shift, t)
	}
	return n, sum
}

// LibmExp writes the exponential of (src-top)·beta with the bits of package libm.
func (c *Curves) LibmExp(dst, src []float32, top, beta float32, t *LibmTable) int {
	n := len(dst) / c.wide * c.wide
	if n > 0 {
		_ = src[n-1]
		c.libmExp(&dst[0], &src[0], n, top, beta, t)
	}
	return n
}

// LibmSigmoid writes 1/(1+e^-src) with the bits of package libm.
func (c *Curves) LibmSigmoid(dst, src []float32, t *LibmTable) int {
	n := len(dst) / curveLanes * curveLanes
	if n > 0 {
		_ = src[n-1]
		c.libmSigmoid(&dst[0], &src[0], n, t)
	}
	return n
}

// The assembly knows the places of the tables by number.
var _ = [1]struct{}{}[unsafe.Offsetof(ExpTable{}.table)-12*32+unsafe.Offsetof(LibmTable{}.table)-14*32]

// LibmTanh writes Tanh of package libm; it returns for how many values it did so.
func (c *Curves) LibmTanh(dst, src []float32) int {
	n := len(dst)
	if n == 0 || c.libmTanh == nil {
		return 0
	}
	_ = src[n-1]
	c.libmTanh(&dst[0], &src[0], n)
	return n
}
