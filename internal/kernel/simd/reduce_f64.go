package simd

import (
	"math"
	"unsafe"
)

// Fold is what float32 become in float64.
type Fold uint8

// The folds: sums of numbers, of their squares and of their magnitudes, and products.
const (
	FoldSum Fold = iota
	FoldSquares
	FoldSizes
	FoldProduct

	folds = iota
)

// Folds fold float32 in float64, and float64, in an order of their own.
type Folds struct {
	Set                 Set
	each                int // columns of [Folds.Lines] are a multiple of this
	row                 int // numbers of rows are a multiple of this
	lines               [folds]func(dst *float64, src *float32, step, lines, n int)
	sum, sizes, product func(src *float32, n int) float64
	squares             func(src *float32, n int, mean float64) float64
	doubleLines         [folds]func(dst, src *float64, step, lines, n int) // nil for none, as doubleRows
	doubleRows          [folds]func(src *float64, n int) float64
	addDoubles          func(dst, x *float64, stepX int, lines *float64, step, k, n int) // nil for none
	addWords            func(dst, x *int32, stepX int, lines *int32, step, k, n int)     // nil for none
	addLongs            func(dst, x *int64, stepX int, lines *int64, step, k, n int)     // nil for none
	dotDoubles          func(a, b *float64, n int) float64                               // nil for none
	dotWords            func(a, b *int32, n int) int32                                   // nil for none
	dotLongs            func(a, b *int64, n int) int64                                   // nil for none
}

// FoldKernels of the current set; nil where plain Go is all there is.
func FoldKernels() *Folds { return foldLoops.pick() }

// HasDoubles tells whether there are loops over float64.
func (f *Folds) HasDoubles() bool { return f != nil && f.doubleRows[0] != nil }

// DoubleLines is [Folds.Lines] of float64.
func (f *Folds) DoubleLines(k Fold, dst, src []float64, step, lines int) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.doubleLines[k](&dst[0], &src[0], 8*step, lines, n)
	}
}

// DoubleRow is [Folds.Row] of float64.
func (f *Folds) DoubleRow(k Fold, src []float64) float64 {
	if len(src) == 0 {
		return k.Start()
	}
	return f.doubleRows[k](&src[0], len(src))
}

// AddProducts adds to dst the products of k numbers, stepX elements apart, with as many lines of a matrix, step apart, in their order, of float64
// or of integers of 32 or 64 bits, modulo their range. It returns false where there is no such loop.
func AddProducts[T any](f *Folds, dst, x []T, stepX int, lines []T, step, k int) bool {
	if f == nil {
		return false
	}
	switch any(*new(T)).(type) {
	case float64:
		return addProducts(f.addDoubles, dst, x, stepX, lines, step, k)
	case int32, uint32:
		return addProducts(f.addWords, dst, x, stepX, lines, step, k)
	case int64, uint64:
		return addProducts(f.addLongs, dst, x, stepX, lines, step, k)
	}
	return false
}

func addProducts[T, N any](loop func(dst, x *N, stepX int, lines *N, step, k, n int), dst, x []T, stepX int, lines []T, step, k int) bool {
	if loop == nil {
		return false
	}
	if n, size := len(dst), int(unsafe.Sizeof(*new(N))); n > 0 && k > 0 {
		_, _ = x[(k-1)*stepX], lines[(k-1)*step+n-1]
		loop(numbers[N](dst), numbers[N](x), size*stepX, numbers[N](lines), size*step, k, n)
	}
	return true
}

// Dot is the sum of the products of float64, in an order of its own, or of integers of 32 or 64 bits, modulo their range. It returns false where there is
// no such loop.
func Dot[T any](f *Folds, a, b []T) (sum T, ok bool) {
	if f == nil || len(a) == 0 {
		return sum, false
	}
	n := len(a)
	_ = b[n-1]
	switch to := any(&sum).(type) {
	case *float64:
		if f.dotDoubles != nil {
			*to, ok = f.dotDoubles(numbers[float64](a), numbers[float64](b), n), true
		}
	case *int32:
		if f.dotWords != nil {
			*to, ok = f.dotWords(numbers[int32](a), numbers[int32](b), n), true
		}
	case *uint32:
		if f.dotWords != nil {
			*to, ok = uint32(f.dotWords(numbers[int32](a), numbers[int32](b), n)), true
		}
	case *int64:
		if f.dotLongs != nil {
			*to, ok = f.dotLongs(numbers[int64](a), numbers[int64](b), n), true
		}
	case *uint64:
		if f.dotLongs != nil {
			*to, ok = uint64(f.dotLongs(numbers[int64](a), numbers[int64](b), n)), true
		}
	}
	return sum, ok
}

// numbers are elements as a loop takes them, of their size or as bytes.
func numbers[N, T any](v []T) *N { return (*N)(unsafe.Pointer(unsafe.SliceData(v))) }

// One folds a number into acc.
func (k Fold) One(acc float64, x float32) float64 { return k.OneDouble(acc, float64(x)) }

// OneDouble is One of a float64.
func (k Fold) OneDouble(acc, v float64) float64 {
	switch k {
	case FoldSquares:
		return acc + v*v
	case FoldSizes:
		return acc + math.Abs(v)
	case FoldProduct:
		return acc * v
	default:
		return acc + v
	}
}

// Start is what nothing folds to.
func (k Fold) Start() float64 {
	if k == FoldProduct {
		return 1
	}
	return 0
}

// Lines writes the folds of len(dst) columns of lines, at least one, that lie step elements apart.
func (f *Folds) Lines(k Fold, dst []float64, src []float32, step, lines int) {
	n := len(dst) / f.each * f.each
	if n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.lines[k](&dst[0], &src[0], 4*step, lines, n)
	}
	for i := n; i < len(dst); i++ {
		acc := k.Start()
		for l := range lines {
			acc = k.One(acc, src[l*step+i])
		}
		dst[i] = acc
	}
}

// Row is the fold of a row.
func (f *Folds) Row(k Fold, src []float32) float64 {
	n, acc := len(src)/f.row*f.row, k.Start()
	if n > 0 {
		switch k {
		case FoldSquares:
			acc = f.squares(&src[0], n, 0)
		case FoldSizes:
			acc = f.sizes(&src[0], n)
		case FoldProduct:
			acc = f.product(&src[0], n)
		default:
			acc = f.sum(&src[0], n)
		}
	}
	for _, x := range src[n:] {
		acc = k.One(acc, x)
	}
	return acc
}
