package simd

// rescaleLoop is a loop of [Elements.RescaleRows] or [Elements.RescaleColumns]: limits and zero point are those of codes with a sign, which
// sign takes away.
type rescaleLoop func(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, most float32, zero, lo, hi, sign int32)

// Rescaling says what rescaled sums become: codes between lo and hi, signed or not, with a zero point. Small says that
// all scales lie between -1/2 and 1/2.
type Rescaling struct {
	Lo, Hi, Zero  int32
	Signed, Small bool
}

// run calls the loop for such scales.
func (q *Rescaling) run(loops *[2]rescaleLoop, dst []uint8, stepDst int, src []int32, stepSrc, rows, n int, scales []float32, bias []int32) {
	_, _ = dst[(rows-1)*stepDst+n-1], src[(rows-1)*stepSrc+n-1]
	loop, less, turn := loops[sign(q.Small)], int32(0), int32(0)
	if !q.Signed {
		less, turn = 128, 0x80
	}
	loop(&dst[0], stepDst, &src[0], 4*stepSrc, rows, n, &scales[0], &bias[0], 1<<30, q.Zero-less, q.Lo-less, q.Hi-less, turn)
}

// RescaleRows is Rescale for rows of n sums, each with its scale and bias; rows are stepDst and stepSrc elements
// apart. It returns for how many of each row it did so.
func (e *Elements) RescaleRows(dst []uint8, stepDst int, src []int32, stepSrc, rows, n int, scales []float32, bias []int32, q Rescaling) int {
	if rows <= 0 || n <= 0 {
		return n
	}
	_, _ = scales[rows-1], bias[rows-1]
	if e.rescaleRows[0] == nil {
		for r := range rows {
			e.Rescale(dst[r*stepDst:][:n], src[r*stepSrc:], scales[r], float32(q.Lo-q.Zero), float32(q.Hi-q.Zero), q.Zero, bias[r])
		}
		return whole(n)
	}
	q.run(&e.rescaleRows, dst, stepDst, src, stepSrc, rows, n, scales, bias)
	return n
}

// RescaleColumns is RescaleRows for rows whose columns have a scale and a bias each. It does nothing and returns false where the set has no such loop.
func (e *Elements) RescaleColumns(dst []uint8, stepDst int, src []int32, stepSrc, rows, n int, scales []float32, bias []int32, q Rescaling) bool {
	if e == nil || e.rescaleColumns[0] == nil {
		return false
	}
	if rows <= 0 || n <= 0 {
		return true
	}
	_, _ = scales[n-1], bias[n-1]
	q.run(&e.rescaleColumns, dst, stepDst, src, stepSrc, rows, n, scales, bias)
	return true
}

// Columns tells whether there are [Elements.RescaleColumns] and [Elements.TurnBytes].
func (e *Elements) Columns() bool {
	return e != nil && e.rescaleColumns[0] != nil && e.turnBytes != nil
}

// turnNear is the number of bytes that [Elements.TurnBytes] writes to before it goes on: they stay in the first-level cache.
const turnNear = 1 << 14

// TurnLeast is the least number of columns for [Elements.TurnBytes].
const TurnLeast = 16

// TurnBytes is [Elements.Turn] for bytes and all rows and columns. It does nothing and returns false for fewer than
// TurnLeast columns, and where the set has no such loop. With as many, rows of dst may begin before the last ones end: they are written in order.
func (e *Elements) TurnBytes(dst []uint8, stepDst int, src []uint8, stepSrc, rows, cols int) bool {
	if e == nil || e.turnBytes == nil || cols < TurnLeast {
		return false
	}
	if rows <= 0 {
		return true
	}
	_, _ = dst[(rows-1)*stepDst+cols-1], src[(cols-1)*stepSrc+rows-1]
	near := max(64, turnNear/cols/64*64)
	for i := 0; i < rows; i += near {
		for j := 0; j < cols; j += 16 {
			// The last columns are turned once more where there are fewer than 16.
			c := min(j, cols-16)
			e.turnBytes(&dst[i*stepDst+c], stepDst, &src[c*stepSrc+i], stepSrc, min(near, rows-i))
		}
	}
	return true
}
