package reduce

import (
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Sum adds all elements in the type of the accumulator.
func Sum[T, A tensor.Number](done func(A, int) T) Reducer[T, A] {
	r := Reducer[T, A]{Row: sumRow[T, A], Cols: sumCols[T, A], Lines: addLines[T, A](), Merge: plus[A], Done: done}
	if four, ok := any(addFour).(func(acc []A, src []T, step, n int)); ok {
		r.Lines = four
	}
	if _, whole := any(A(0)).(int32); whole { // the order matters for types that round
		r.More = moreRows[T, A]
	}
	return inVectors(r, simd.FoldSum)
}

// addVec adds partial sums.
func addVec(acc, parts []float64) { sumCols(acc, parts) }

// shortRow is the length below which a row takes less time than a SIMD kernel call.
const shortRow = 16

// inVectors adds the available SIMD kernels to a reducer of float32 in float64.
func inVectors[T, A tensor.Number](r Reducer[T, A], k simd.Fold) Reducer[T, A] {
	f := simd.FoldKernels()
	if f == nil {
		return r
	}
	r.Join, _ = any(addVec).(func(acc, parts []A))
	if k == simd.FoldProduct {
		r.Join = nil
	}
	if f.HasDoubles() {
		if rows, ok := any(func(acc, src []float64, n int) {
			for i := range acc {
				acc[i] = f.DoubleRow(k, src[i*n:][:n])
			}
		}).(func(acc []A, src []T, n int)); ok {
			r.Rows = rows
			r.Lines, _ = any(func(acc, src []float64, step, n int) { f.DoubleLines(k, acc, src, step, n) }).(func(acc []A, src []T, step, n int))
			return r
		}
	}
	merge, _ := any(r.Merge).(func(a, b float64) float64)
	row, ok := any(func(acc float64, src []float32) float64 { return merge(acc, f.Row(k, src)) }).(func(acc A, src []T) A)
	if !ok {
		return r
	}
	short, _ := any(r.Row).(func(acc float64, src []float32) float64)
	r.Row = row
	r.Rows, _ = any(func(acc []float64, src []float32, n int) {
		if n < shortRow {
			for i := range acc {
				acc[i] = short(k.Start(), src[i*n:][:n])
			}
			return
		}
		for i := range acc {
			acc[i] = f.Row(k, src[i*n:][:n])
		}
	}).(func(acc []A, src []T, n int))
	r.Lines, _ = any(func(acc []float64, src []float32, step, n int) { f.Lines(k, acc, src, step, n) }).(func(acc []A, src []T, step, n int))
	return r
}

// SumPairs is [Sum] of two elements per result, which need only one rounding in any type.
func SumPairs[T tensor.Number]() Reducer[T, T] {
	r := Sum[T, T](same[T])
	r.All = func(dst, acc []T, _ int) { copy(dst, acc) }
	return r
}

// OrderedSum is [Sum] in the order of the elements, which determines how floating-point
// accumulators round.
func OrderedSum[T, A tensor.Number](done func(A, int) T) Reducer[T, A] {
	r := Reducer[T, A]{Row: orderedRow[T, A], More: moreRows[T, A], Cols: sumCols[T, A], Lines: addLines[T, A](), Done: done}
	r.Rows, _ = any(OrderedSums).(func(acc []A, src []T, n int))
	return r
}

func orderedRow[T, A tensor.Number](acc A, src []T) A {
	for _, x := range src {
		acc += A(x)
	}
	return acc
}

// moreRows adds rows to their sums, four rows at a time, so that the additions overlap.
func moreRows[T, A tensor.Number](acc []A, src []T, n int) {
	for ; len(acc) >= 4; acc, src = acc[4:], src[4*n:] {
		a, b, c, d := src[:n], src[n:][:n], src[2*n:][:n], src[3*n:][:n]
		s0, s1, s2, s3 := acc[0], acc[1], acc[2], acc[3]
		for i, x := range a {
			s0 += A(x)
			s1 += A(b[i])
			s2 += A(c[i])
			s3 += A(d[i])
		}
		acc[0], acc[1], acc[2], acc[3] = s0, s1, s2, s3
	}
	for i, s := range acc {
		for _, x := range src[i*n:][:n] {
			s += A(x)
		}
		acc[i] = s
	}
}

// OrderedSums writes the sums of the first len(sums) rows of src, n elements each, in the order
// of their elements.
func OrderedSums(sums, src []float32, n int) {
	if r := simd.RowKernels(); r != nil {
		r.OrderedSums(sums, src, n)
		return
	}
	for i := range sums {
		sums[i] = orderedRow(float32(0), src[i*n:][:n])
	}
}

// addFour adds lines in float64, four at a time, to read and write the sums less often.
func addFour(acc []float64, src []float32, step, n int) {
	clear(acc)
	for ; n >= 4; n -= 4 {
		a, b, c, d := src[:len(acc)], src[step:][:len(acc)], src[2*step:][:len(acc)], src[3*step:][:len(acc)]
		for i := range acc {
			acc[i] += (float64(a[i]) + float64(b[i])) + (float64(c[i]) + float64(d[i]))
		}
		src = src[min(4*step, len(src)):]
	}
	for ; n > 0; n-- {
		sumCols(acc, src[:len(acc)])
		src = src[min(step, len(src)):]
	}
}

// addLines returns nil if no SIMD kernel exists for the types.
func addLines[T, A tensor.Number]() func(acc []A, src []T, step, n int) {
	f := simd.PoolKernels()
	if f == nil {
		return nil
	}
	var all any
	switch any(T(0)).(type) {
	case float32:
		all = f.AddFloats
	case uint8:
		all = func(acc []int32, src []uint8, step, n int) { f.AddBytes(acc, src, step, n, false) }
	case int8:
		all = func(acc []int32, src []int8, step, n int) { f.AddBytes(acc, asBytes(src), step, n, true) }
	}
	lines, _ := all.(func(acc []A, src []T, step, n int))
	return lines
}

func asBytes(v []int8) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// SumAbs adds the absolute values of all elements.
func SumAbs[T, A tensor.Number](done func(A, int) T) Reducer[T, A] {
	return inVectors(Reducer[T, A]{Row: absRow[T, A], Cols: absCols[T, A], Merge: plus[A], Done: done}, simd.FoldMagnitudes)
}

// SumSquares adds the squares of all elements.
func SumSquares[T, A tensor.Number](done func(A, int) T) Reducer[T, A] {
	return inVectors(Reducer[T, A]{Row: squareRow[T, A], Cols: squareCols[T, A], Merge: plus[A], Done: done}, simd.FoldSquares)
}

func plus[A tensor.Number](a, b A) A { return a + b }

// sumRow keeps four partial sums so that additions overlap.
func sumRow[T, A tensor.Number](acc A, src []T) A {
	var a, b, d A
	for len(src) >= 4 {
		s := src[:4:4]
		acc += A(s[0])
		a += A(s[1])
		b += A(s[2])
		d += A(s[3])
		src = src[4:]
	}
	for _, x := range src {
		acc += A(x)
	}
	return acc + a + (b + d)
}

func sumCols[T, A tensor.Number](acc []A, src []T) {
	src = src[:len(acc)]
	for i, x := range src {
		acc[i] += A(x)
	}
}

func absRow[T, A tensor.Number](acc A, src []T) A {
	for _, x := range src {
		if x < 0 {
			acc -= A(x)
		} else {
			acc += A(x)
		}
	}
	return acc
}

func absCols[T, A tensor.Number](acc []A, src []T) {
	src = src[:len(acc)]
	for i, x := range src {
		if x < 0 {
			acc[i] -= A(x)
		} else {
			acc[i] += A(x)
		}
	}
}

func squareRow[T, A tensor.Number](acc A, src []T) A {
	var a, b, d A
	for len(src) >= 4 {
		s := src[:4:4]
		x, y, z, w := A(s[0]), A(s[1]), A(s[2]), A(s[3])
		acc += x * x
		a += y * y
		b += z * z
		d += w * w
		src = src[4:]
	}
	for _, x := range src {
		acc += A(x) * A(x)
	}
	return acc + a + (b + d)
}

func squareCols[T, A tensor.Number](acc []A, src []T) {
	src = src[:len(acc)]
	for i, x := range src {
		acc[i] += A(x) * A(x)
	}
}

// Product multiplies all elements in the type of the accumulator.
func Product[T, A tensor.Number](done func(A, int) T) Reducer[T, A] {
	return inVectors(Reducer[T, A]{
		Start: 1,
		Row: func(acc A, src []T) A {
			for _, x := range src {
				acc *= A(x)
			}
			return acc
		},
		Cols: func(acc []A, src []T) {
			src = src[:len(acc)]
			for i, x := range src {
				acc[i] *= A(x)
			}
		},
		Merge: func(a, b A) A { return a * b },
		Done:  done,
	}, simd.FoldProduct)
}

// Max is the maximum; NaN takes precedence. lowest is the result for empty reductions.
func Max[T tensor.Number](lowest T) Reducer[T, T] {
	return extreme(Reducer[T, T]{Start: lowest, Row: extremeRow(MaxRow[T], func(_, most float32) float32 { return most }), Cols: into(element.Max[T]()), Merge: func(a, b T) T { return MaxRow(a, []T{b}) }, Done: same[T]}, false)
}

// Min is the minimum; NaN takes precedence. highest is the result for empty reductions.
func Min[T tensor.Number](highest T) Reducer[T, T] {
	return extreme(Reducer[T, T]{Start: highest, Row: extremeRow(MinRow[T], func(least, _ float32) float32 { return least }), Cols: into(element.Min[T]()), Merge: func(a, b T) T { return MinRow(a, []T{b}) }, Done: same[T]}, true)
}

// extreme adds the available SIMD kernels to a reducer.
func extreme[T tensor.Number](r Reducer[T, T], least bool) Reducer[T, T] {
	r.Join, r.All = r.Cols, func(dst, acc []T, _ int) { copy(dst, acc) }
	if f := simd.ExtremeKernels(); simd.HasExtremes[T](f) {
		start := r.Start
		r.Rows = func(acc, src []T, n int) {
			if n == 0 {
				element.Fill(acc, start)
				return
			}
			simd.ExtremeRows(f, least, acc, src, n)
		}
		r.Lines = func(acc, src []T, step, n int) { simd.ExtremeLines(f, least, acc, src, step, n) }
	}
	return r
}

func same[T any](a T, _ int) T { return a }

// into combines src into acc.
func into[T tensor.Number](l element.Loops[T, T]) func(acc, src []T) {
	return func(acc, src []T) { l.Vec(acc, acc, src[:len(acc)]) }
}

// extremeRow returns a SIMD version of row if available; of selects the minimum or maximum.
func extremeRow[T tensor.Number](row func(acc T, src []T) T, of func(least, most float32) float32) func(acc T, src []T) T {
	if T(1)/2 == 0 { // integers
		most := of(0, 1) == 1
		return func(acc T, src []T) T { return intExtreme(acc, src, most) }
	}
	e := simd.ElementKernels()
	if e == nil {
		return row
	}
	vectors, ok := any(func(acc float32, src []float32) float32 { return of(e.Extent(src, acc, acc)) }).(func(acc T, src []T) T)
	if !ok {
		return row
	}
	return vectors
}

// intExtreme returns the maximum or minimum of integers without branches, which would be
// unpredictable: as words, which compile to conditional moves.
func intExtreme[T tensor.Number](acc T, src []T, most bool) T {
	if T(0)-1 > 0 {
		return T(wordExtreme(uint64(acc), src, most))
	}
	return T(wordExtreme(int64(acc), src, most))
}

func wordExtreme[W int64 | uint64, T tensor.Number](acc W, src []T, most bool) W {
	a, b := acc, acc
	if most {
		for ; len(src) >= 2; src = src[2:] {
			a, b = max(a, W(src[0])), max(b, W(src[1]))
		}
		if len(src) == 1 {
			a = max(a, W(src[0]))
		}
		return max(a, b)
	}
	for ; len(src) >= 2; src = src[2:] {
		a, b = min(a, W(src[0])), min(b, W(src[1]))
	}
	if len(src) == 1 {
		a = min(a, W(src[0]))
	}
	return min(a, b)
}

// MaxRow returns the maximum of acc and src; NaN takes precedence.
func MaxRow[T tensor.Number](acc T, src []T) T {
	a, b := acc, acc
	for len(src) >= 2 {
		if x := src[0]; x > a || x != x {
			a = x
		}
		if x := src[1]; x > b || x != x {
			b = x
		}
		src = src[2:]
	}
	if len(src) == 1 {
		if x := src[0]; x > a || x != x {
			a = x
		}
	}
	if a > b || a != a {
		return a
	}
	return b
}

// MinRow returns the minimum of acc and src; NaN takes precedence.
func MinRow[T tensor.Number](acc T, src []T) T {
	a, b := acc, acc
	for len(src) >= 2 {
		if x := src[0]; x < a || x != x {
			a = x
		}
		if x := src[1]; x < b || x != x {
			b = x
		}
		src = src[2:]
	}
	if len(src) == 1 {
		if x := src[0]; x < a || x != x {
			a = x
		}
	}
	if a < b || a != a {
		return a
	}
	return b
}
