package move

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// repeatMinLines is the minimum number of adjacent lines for a separate kernel.
const repeatMinLines = 8

// wordsOf returns the number of 32-bit words of an element type, 0 if it is not an integer of
// words.
func wordsOf[T any]() int {
	var v T
	if _, text := any(v).(string); text {
		return 0
	}
	return int(unsafe.Sizeof(v)) / 4
}

// usesRepeat reports whether the lines of a plan fill the destination contiguously and are short
// enough for [simd.ShortRows].
func usesRepeat[T any](p *Plan) bool {
	last := len(p.dims) - 1
	if last == 0 || p.dims[last] <= shortLine || p.dims[last-1] < repeatMinLines {
		return false
	}
	return p.dst[last] == 1 && p.dst[last-1] == p.dims[last] && hasRepeatKernel[T](p.dims[last], p.src[last-1], p.src[last])
}

// hasRepeatKernel reports whether a kernel exists for lines of n elements, ss apart, with line
// stride sm.
func hasRepeatKernel[T any](n, sm, ss int) bool {
	w := wordsOf[T]()
	return w > 0 && n*w <= simd.MaxShortRow && sm >= 0 && (ss == 1 || ss == 0 && w == 1) && simd.ShortRowKernels() != nil
}

// repeatLines copies the first of m lines of n elements; if ss is 0, single elements fill lines.
// It returns the number of lines copied: kernels write beyond the end of a line, which must not
// reach beyond the last line, and kernels exist for short lines only.
func repeatLines[T any](dst, src []T, do, so, m, sm, n, ss int) int {
	w := wordsOf[T]()
	all := m * n * w
	if all < simd.MaxShortRow || !hasRepeatKernel[T](n, sm, ss) {
		return 0
	}
	rows := (all-simd.MaxShortRow)/(n*w) + 1
	to := dst[do : do+m*n]
	from := src[so : so+(m-1)*sm+1+(n-1)*ss]
	d, s := asFloats(Words(to)), asFloats(Words(from))
	if k := simd.ShortRowKernels(); ss == 0 {
		k.Fill(d, s, rows, n, sm)
	} else {
		k.Copy(d, s, rows, n*w, sm*w)
	}
	return rows
}

// rowMinWords and rowMaxWords bound the words of a line that is copied with its neighbours by a
// kernel of [simd.Windows]: shorter lines are copied element by element, and for longer ones a
// call per line costs little. rowMinCount is the minimum number of neighbours.
const rowMinWords, rowMaxWords, rowMinCount = 8, 256, 3

// rowDim returns the dimension whose lines are copied together, and whether these are lines of
// words as copyRows takes. It is then the longer one of the two dimensions before the last, else
// the last but one.
func rowDim[T any](p *Plan) (dim int, rows bool) {
	last, w := len(p.dims)-1, wordsOf[T]()
	n := p.dims[last] * w
	if last == 0 || n < rowMinWords || n > rowMaxWords || p.dst[last] != 1 || p.src[last] != 1 || rowKernels() == nil || usesRepeat[T](p) {
		return last - 1, false
	}
	dim = last - 1
	if last > 1 && p.dims[last-2] > p.dims[last-1] {
		dim = last - 2
	}
	if p.dims[dim] < rowMinCount || p.dst[dim] < 0 || p.src[dim] < 0 {
		return last - 1, false
	}
	return dim, true
}

func rowKernels() *simd.Windows {
	if f := simd.WindowKernels(); f != nil && f.CopiesLines() {
		return f
	}
	return nil
}

// copyRows copies m lines of n contiguous elements, dm and sm apart, which are not negative. It
// returns false without a kernel.
func copyRows[T any](dst, src []T, do, so, m, dm, sm, n int) bool {
	f, w := rowKernels(), wordsOf[T]()
	if f == nil || dm < 0 || sm < 0 {
		return false
	}
	to, from := dst[do:do+(m-1)*dm+n], src[so:so+(m-1)*sm+n]
	d, s := asFloats(Words(to)), asFloats(Words(from))
	return f.CopyLines(nil, d, dm*w, s, sm*w, 1, n*w, m)
}
