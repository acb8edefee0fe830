package simd

import "math"

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

// Folds fold float32 in float64, in an order of their own.
type Folds struct {
	Set                 Set
	each                int // columns of [Folds.Lines] are a multiple of this
	row                 int // numbers of rows are a multiple of this
	lines               [folds]func(dst *float64, src *float32, step, lines, n int)
	sum, sizes, product func(src *float32, n int) float64
	squares             func(src *float32, n int, mean float64) float64
	addProducts         func(dst, x *float64, stepX int, lines *float64, step, k, n int) // nil for none
}

// FoldKernels of the current set; nil where plain Go is all there is.
func FoldKernels() *Folds { return foldLoops.pick() }

// AddProducts adds to dst the products of k numbers, stepX elements apart, with as many lines of a matrix, step apart, in their order. It returns
// false where there is no such loop.
func (f *Folds) AddProducts(dst, x []float64, stepX int, lines []float64, step, k int) bool {
	if f == nil || f.addProducts == nil {
		return false
	}
	if n := len(dst); n > 0 && k > 0 {
		_, _ = x[(k-1)*stepX], lines[(k-1)*step+n-1]
		f.addProducts(&dst[0], &x[0], 8*stepX, &lines[0], 8*step, k, n)
	}
	return true
}

// One folds a number into acc.
func (k Fold) One(acc float64, x float32) float64 {
	switch v := float64(x); k {
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
