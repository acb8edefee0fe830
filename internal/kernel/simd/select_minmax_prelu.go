package simd

// PRelu writes a, or a·b if a is negative. As Max and Min do, it returns the number of elements
// written; the caller computes the rest.
func (e *Elements) PRelu(dst, a, b []float32) int {
	if e.preluVV == nil {
		return 0
	}
	return vectorVector(dst, a, b, e.preluVV)
}

// PReluScalar writes a, or a·b if a is negative.
func (e *Elements) PReluScalar(dst, a []float32, b float32) int {
	if e.preluVS == nil {
		return 0
	}
	return vectorScalar(dst, a, b, e.preluVS)
}

// Max writes a if it is greater than b or NaN, else b.
func (e *Elements) Max(dst, a, b []float32) int {
	if e.maxVV == nil {
		return 0
	}
	return vectorVector(dst, a, b, e.maxVV)
}

// Min writes a if it is less than b or NaN, else b.
func (e *Elements) Min(dst, a, b []float32) int {
	if e.minVV == nil {
		return 0
	}
	return vectorVector(dst, a, b, e.minVV)
}

// AddScaled adds ((w·x)·scales)·scale to dst, for each value of x in order. Each step is rounded.
// The weights of x[i] start at w[places[i]*step]. It returns false, and does nothing, if no
// kernel is available.
func (e *Elements) AddScaled(dst, w []float32, step int, x []float32, places []int32, scales []float32, scale float32) bool {
	if e == nil || e.addScaled == nil {
		return false
	}
	if n := len(dst); n > 0 && len(x) > 0 {
		_, _, _ = w[int(places[len(x)-1])*step+n-1], scales[n-1], places[len(x)-1]
		e.addScaled(&dst[0], &w[0], &scales[0], n, &x[0], &places[0], len(x), step, scale)
	}
	return true
}

// NonzerosPadding is the number of elements that [Nonzeros] may write past its results.
const NonzerosPadding = 16

// Nonzeros writes the nonzero values and their indices, in ascending order, and returns their
// number. values and places have at least len(x) + [NonzerosPadding] elements.
func (e *Elements) Nonzeros(values []float32, places []int32, x []float32) (count int) {
	if e != nil && e.nonzeros != nil && len(x) > 0 {
		_, _ = values[len(x)+NonzerosPadding-1], places[len(x)+NonzerosPadding-1]
		return e.nonzeros(&values[0], &places[0], &x[0], len(x))
	}
	for i, v := range x {
		if v != 0 {
			values[count], places[count] = v, int32(i)
			count++
		}
	}
	return count
}

// Curve16 is a function of int16 values in 256 linear segments. For v = (x·Mul + Round) >> Shift,
// the bits of |v| from Bits on select the segment, at most the last one. The bits below, selected
// by Mask, are the position in the segment.
//
// An entry of Table holds the value in its lower 16 bits and the slope in its upper 16 bits. The
// result is (value << Bits + slope·position + Above) >> Out, or (Below - that sum) >> Out if v is
// negative, in 32-bit arithmetic that wraps.
type Curve16 struct {
	Table                                            [256]uint32
	Mul, Round, Shift, Bits, Mask, Above, Below, Out int32
}

// Curve16 writes the results of c. It returns the number of values written.
func (e *Elements) Curve16(dst, src []int16, c *Curve16) int {
	n := len(dst)
	if n == 0 || e == nil || e.curve16 == nil {
		return 0
	}
	_ = src[n-1]
	e.curve16(&dst[0], &src[0], n, &c.Table[0], c.Mul, c.Round, c.Shift, c.Bits, c.Mask, c.Above, c.Below, c.Out)
	return n
}

// QuantiseRow quantises src·mul to 8 bits: rounded to float32, limited to the integers lo and hi,
// rounded to the nearest, ties away from zero, plus zero. It returns false if no kernel is
// available.
func (e *Elements) QuantiseRow(dst []uint8, src []float32, mul, lo, hi float32, zero int32) bool {
	if e == nil || e.quantiseRow == nil {
		return false
	}
	if n := len(dst); n > 0 {
		_ = src[n-1]
		e.quantiseRow(&dst[0], &src[0], n, mul, lo, hi, zero)
	}
	return true
}

// QuantiseRows quantises rows of n values to 8 bits, one row for each element of scales. It
// writes the scale and the zero point of each row, for quantised values from -128 on, and adds
// plus to the quantised values. The scale is the range of a row, extended to include zero,
// divided by 255. If even is set, it is the symmetric range from -m to m divided by 254.
//
// QuantiseRows returns the number of rows written. It stops at a row whose range is zero or not
// finite, or whose scale has no finite inverse. It returns 0 if no kernel is available.
func (e *Elements) QuantiseRows(dst []uint8, src []float32, n int, even bool, scales []float32, zeros []int32, plus int32) int {
	rows := len(scales)
	if e == nil || e.quantiseRows == nil || rows == 0 || n == 0 {
		return 0
	}
	_, _, _ = dst[rows*n-1], src[rows*n-1], zeros[rows-1]
	kernel := e.quantiseRows
	if even {
		kernel = e.quantiseEvenRows
	}
	return kernel(&dst[0], &src[0], rows, n, &scales[0], &zeros[0], plus)
}

// SubScaled subtracts b·by from dst. It returns the number of values written.
func (e *Elements) SubScaled(dst, b []int32, by int32) int {
	n := len(dst)
	if n == 0 || e == nil || e.lessTimes == nil {
		return 0
	}
	_ = b[n-1]
	e.lessTimes(&dst[0], &b[0], n, by)
	return n
}
