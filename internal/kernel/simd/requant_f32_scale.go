package simd

import "sync"

// rescaleKernel is a kernel of [Elements.RescaleRows] or [Elements.RescaleColumns]. Limits and zero
// point are those of signed values. sign is the XOR mask that converts the results to unsigned
// values.
type rescaleKernel func(dst *byte, stepDst int, src *int32, stepSrc, rows, n int, scales *float32, bias *int32, most float32, zero, lo, hi, sign int32)

// Rescaling holds the parameters of quantised results: limits, zero point and signedness. Small
// reports that all scales are between -1/2 and 1/2.
type Rescaling struct {
	Lo, Hi, Zero  int32
	Signed, Small bool
}

// run calls the kernel for these parameters.
func (q *Rescaling) run(kernels *[2]rescaleKernel, dst []uint8, stepDst int, src []int32, stepSrc, rows, n int, scales []float32, bias []int32) {
	_, _ = dst[(rows-1)*stepDst+n-1], src[(rows-1)*stepSrc+n-1]
	kernel, less, flip := kernels[boolIndex(q.Small)], int32(0), int32(0)
	if !q.Signed {
		less, flip = 128, 0x80
	}
	kernel(&dst[0], stepDst, &src[0], 4*stepSrc, rows, n, &scales[0], &bias[0], 1<<30, q.Zero-less, q.Lo-less, q.Hi-less, flip)
}

// RescaleRows is Rescale for rows of n sums, each with its own scale and bias. Rows are stepDst
// and stepSrc elements apart. It returns the number of elements written in each row.
func (e *Elements) RescaleRows(dst []uint8, stepDst int, src []int32, stepSrc, rows, n int, scales []float32, bias []int32, q Rescaling) int {
	if rows <= 0 || n <= 0 {
		return n
	}
	_, _ = scales[rows-1], bias[rows-1]
	if e.rescaleRows[0] == nil {
		for r := range rows {
			e.Rescale(dst[r*stepDst:][:n], src[r*stepSrc:], scales[r], float32(q.Lo-q.Zero), float32(q.Hi-q.Zero), q.Zero, bias[r])
		}
		return wholeRegisters(n)
	}
	q.run(&e.rescaleRows, dst, stepDst, src, stepSrc, rows, n, scales, bias)
	return n
}

// RescaleColumns is RescaleRows with a scale and a bias for each column. It returns false, and
// does nothing, if no kernel is available.
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

// HasRescaleColumns reports whether [Elements.RescaleColumns] and [Elements.Transpose8] are
// available.
func (e *Elements) HasRescaleColumns() bool {
	return e != nil && e.rescaleColumns[0] != nil && e.transpose8 != nil
}

// transposeBlock is the number of bytes of a block of rows of [Elements.Transpose8]: the block
// stays in the L1 cache.
const transposeBlock = 1 << 14

// MinTransposeColumns is the minimum number of columns of [Elements.Transpose8].
const MinTransposeColumns = 16

// Transpose8 is [Elements.Transpose] for bytes, for any number of rows. It returns false, and
// does nothing, for fewer than MinTransposeColumns columns or if no kernel is available. Rows of
// dst are written in order, so with exactly MinTransposeColumns columns a row may start before
// the end of the previous row.
func (e *Elements) Transpose8(dst []uint8, stepDst int, src []uint8, stepSrc, rows, cols int) bool {
	if e == nil || e.transpose8 == nil || cols < MinTransposeColumns {
		return false
	}
	if rows <= 0 {
		return true
	}
	_, _ = dst[(rows-1)*stepDst+cols-1], src[(cols-1)*stepSrc+rows-1]
	near := max(64, transposeBlock/cols/64*64)
	for i := 0; i < rows; i += near {
		for j := 0; j < cols; j += 16 {
			// If fewer than 16 columns remain, the last block overlaps the one before.
			c := min(j, cols-16)
			e.transposeBlock8(dst[i*stepDst+c:], stepDst, src[c*stepSrc+i:], stepSrc, min(near, rows-i))
		}
	}
	return true
}

// transposeColumns is the number of columns that transpose8 transposes together.
const transposeColumns = 16

// transposeTail is scratch memory for fewer rows than a kernel takes.
type transposeTail struct {
	in, out [transposeColumns * transposeColumns]uint8
}

var transposeTails = sync.Pool{New: func() any { return new(transposeTail) }}

// transposeBlock8 transposes 16 columns of n rows.
func (e *Elements) transposeBlock8(dst []uint8, stepDst int, src []uint8, stepSrc, n int) {
	const block = transposeColumns
	whole := n
	if !e.transpose8Tail {
		whole = n / block * block
	}
	if whole > 0 {
		e.transpose8(&dst[0], stepDst, &src[0], stepSrc, whole)
	}
	switch {
	case whole == n:
	case n >= block:
		// The last block overlaps the one before.
		e.transpose8(&dst[(n-block)*stepDst], stepDst, &src[n-block], stepSrc, block)
	default:
		t := transposeTails.Get().(*transposeTail)
		for c := range block {
			copy(t.in[c*block:], src[c*stepSrc:][:n])
		}
		e.transpose8(&t.out[0], block, &t.in[0], block, block)
		for r := range n {
			copy(dst[r*stepDst:][:block], t.out[r*block:])
		}
		transposeTails.Put(t)
	}
}
