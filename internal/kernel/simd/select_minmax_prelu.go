package simd

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

// AddScaled adds ((w·x)·scales)·scale, rounded after each step, to dst for each value of x in order; the weights of x[i] begin at w[places[i]*step].
// It does nothing and returns false where there is no such loop.
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

// Spare is how many elements more than it writes [Nonzeros] needs room for.
const Spare = 16

// Nonzeros writes the values that are not zero, and their places in rising order, and returns how many there are. values and places have room for
// [Spare] more than x has.
func (e *Elements) Nonzeros(values []float32, places []int32, x []float32) (count int) {
	if e != nil && e.nonzeros != nil && len(x) > 0 {
		_, _ = values[len(x)+Spare-1], places[len(x)+Spare-1]
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

// Curve16 is a function of 16-bit numbers by 256 lines: of v = (x·Mul + Round) >> Shift the size's bits from Bits on choose the line, at most the last,
// those below, which Mask takes out, say how far along. A line's value is in the lower 16 bits, its rise in the upper ones. The result is
// (value << Bits + rise·rest + Above) >> Out, or (Below - that sum) >> Out where v is negative, in 32 bits that wrap.
type Curve16 struct {
	Table                                            [256]uint32
	Mul, Round, Shift, Bits, Mask, Above, Below, Out int32
}

// Curve16 returns for how many numbers it wrote results.
func (e *Elements) Curve16(dst, src []int16, c *Curve16) int {
	n := len(dst)
	if n == 0 || e == nil || e.curve16 == nil {
		return 0
	}
	_ = src[n-1]
	e.curve16(&dst[0], &src[0], n, &c.Table[0], c.Mul, c.Round, c.Shift, c.Bits, c.Mask, c.Above, c.Below, c.Out)
	return n
}

// QuantiseRow writes the 8-bit codes of src·mul, rounded to float32, limited to the whole numbers lo and hi and rounded to the nearest, ties away from
// zero, plus zero. It returns false where there is no such loop.
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

// QuantiseRows writes the 8-bit codes of rows, as many as there are scales, n numbers each: a row's range, with zero in it, over 255 steps, or that
// of even rows, from -m to m, over 254, whose scale and zero point, for codes from -128 on, it writes too. To codes it adds plus. It returns for
// how many rows it did so: it stops at one whose range is nothing, or not finite, or whose scale has no inverse, and does none where the set has
// no loop.
func (e *Elements) QuantiseRows(dst []uint8, src []float32, n int, even bool, scales []float32, zeros []int32, plus int32) int {
	rows := len(scales)
	if e == nil || e.quantiseRows == nil || rows == 0 || n == 0 {
		return 0
	}
	_, _, _ = dst[rows*n-1], src[rows*n-1], zeros[rows-1]
	loop := e.quantiseRows
	if even {
		loop = e.quantiseEvenRows
	}
	return loop(&dst[0], &src[0], rows, n, &scales[0], &zeros[0], plus)
}

// LessTimes takes b times by from dst. It returns for how many numbers it did so.
func (e *Elements) LessTimes(dst, b []int32, by int32) int {
	n := len(dst)
	if n == 0 || e == nil || e.lessTimes == nil {
		return 0
	}
	_ = b[n-1]
	e.lessTimes(&dst[0], &b[0], n, by)
	return n
}
