package simd

import (
	"math"
	"unsafe"
)

// Fold is a reduction in float64.
type Fold uint8

// The reductions: sums of values, of squares and of magnitudes, and products.
const (
	FoldSum Fold = iota
	FoldSquares
	FoldMagnitudes
	FoldProduct

	foldKinds = iota
)

// Folds holds reduction kernels that compute in float64, for float32 and float64 inputs. The
// order of the operations is that of the kernel.
type Folds struct {
	Set                 Set
	lineMultiple        int // columns of [Folds.Lines] are a multiple of this
	rowMultiple         int // values of [Folds.Row] are a multiple of this
	lines               [foldKinds]func(dst *float64, src *float32, step, lines, n int)
	sum, sizes, product func(src *float32, n int) float64
	squares             func(src *float32, n int, mean float64) float64
	// The kernels for float64 inputs are nil if absent.
	doubleLines [foldKinds]func(dst, src *float64, step, lines, n int)
	doubleRows  [foldKinds]func(src *float64, n int) float64
	// The following kernels are nil if absent.
	addDoubles func(dst, x *float64, stepX int, lines *float64, step, k, n int)
	addWords   func(dst, x *int32, stepX int, lines *int32, step, k, n int)
	addLongs   func(dst, x *int64, stepX int, lines *int64, step, k, n int)
	dotDoubles func(a, b *float64, n int) float64
	dotWords   func(a, b *int32, n int) int32
	dotLongs   func(a, b *int64, n int) int64
}

// FoldKernels returns the kernels of the current instruction set, or nil if only plain Go is
// available.
func FoldKernels() *Folds { return foldKernels.pick() }

// HasDoubles reports whether kernels for float64 inputs are available.
func (f *Folds) HasDoubles() bool { return f != nil && f.doubleRows[0] != nil }

// DoubleLines is [Folds.Lines] for float64.
func (f *Folds) DoubleLines(k Fold, dst, src []float64, step, lines int) {
	if n := len(dst); n > 0 {
		_ = src[(lines-1)*step+n-1]
		f.doubleLines[k](&dst[0], &src[0], 8*step, lines, n)
	}
}

// DoubleRow is [Folds.Row] for float64.
func (f *Folds) DoubleRow(k Fold, src []float64) float64 {
	if len(src) == 0 {
		return k.Start()
	}
	return f.doubleRows[k](&src[0], len(src))
}

// AddProducts adds to dst, in order, the products of k values of x with k lines of a matrix.
// Values of x are stepX elements apart, lines step elements. The elements are float64, or
// integers of 32 or 64 bits with wrapping arithmetic. It returns false if no kernel is available.
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

func addProducts[T, N any](kernel func(dst, x *N, stepX int, lines *N, step, k, n int), dst, x []T, stepX int, lines []T, step, k int) bool {
	if kernel == nil {
		return false
	}
	if n, size := len(dst), int(unsafe.Sizeof(*new(N))); n > 0 && k > 0 {
		_, _ = x[(k-1)*stepX], lines[(k-1)*step+n-1]
		kernel(dataPointer[N](dst), dataPointer[N](x), size*stepX, dataPointer[N](lines), size*step, k, n)
	}
	return true
}

// Dot returns the dot product of float64 values, in the order of the kernel, or of integers of 32
// or 64 bits with wrapping arithmetic. It returns false if no kernel is available.
func Dot[T any](f *Folds, a, b []T) (sum T, ok bool) {
	if f == nil || len(a) == 0 {
		return sum, false
	}
	n := len(a)
	_ = b[n-1]
	switch to := any(&sum).(type) {
	case *float64:
		if f.dotDoubles != nil {
			*to, ok = f.dotDoubles(dataPointer[float64](a), dataPointer[float64](b), n), true
		}
	case *int32:
		if f.dotWords != nil {
			*to, ok = f.dotWords(dataPointer[int32](a), dataPointer[int32](b), n), true
		}
	case *uint32:
		if f.dotWords != nil {
			*to, ok = uint32(f.dotWords(dataPointer[int32](a), dataPointer[int32](b), n)), true
		}
	case *int64:
		if f.dotLongs != nil {
			*to, ok = f.dotLongs(dataPointer[int64](a), dataPointer[int64](b), n), true
		}
	case *uint64:
		if f.dotLongs != nil {
			*to, ok = uint64(f.dotLongs(dataPointer[int64](a), dataPointer[int64](b), n)), true
		}
	}
	return sum, ok
}

// dataPointer converts a slice to a pointer of the type that a kernel takes: elements of the same
// size, or bytes.
func dataPointer[N, T any](v []T) *N { return (*N)(unsafe.Pointer(unsafe.SliceData(v))) }

// One folds a value into acc.
func (k Fold) One(acc float64, x float32) float64 { return k.OneDouble(acc, float64(x)) }

// OneDouble is One for a float64.
func (k Fold) OneDouble(acc, v float64) float64 {
	switch k {
	case FoldSquares:
		return acc + v*v
	case FoldMagnitudes:
		return acc + math.Abs(v)
	case FoldProduct:
		return acc * v
	default:
		return acc + v
	}
}

// Start returns the result of an empty reduction.
func (k Fold) Start() float64 {
	if k == FoldProduct {
		return 1
	}
	return 0
}

// Lines writes the reductions of len(dst) columns of lines. There is at least one line; lines are
// step elements apart.
func (f *Folds) Lines(k Fold, dst []float64, src []float32, step, lines int) {
	n := len(dst) / f.lineMultiple * f.lineMultiple
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

// Row returns the reduction of a row.
func (f *Folds) Row(k Fold, src []float32) float64 {
	n, acc := len(src)/f.rowMultiple*f.rowMultiple, k.Start()
	if n > 0 {
		switch k {
		case FoldSquares:
			acc = f.squares(&src[0], n, 0)
		case FoldMagnitudes:
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
