package simd

// Int4Gemv holds GEMV kernels for 4-bit weights that keep the order of the steps.
type Int4Gemv struct {
	Set Set
	row func(y, x *float32, w *uint32, scales *float32, groups, blocks int, values *float32)
}

// Int4GemvColumns is the number of columns that [Int4Gemv.Row] computes. Int4GemvSteps is the
// number of steps in a word.
const (
	Int4GemvColumns = 64
	Int4GemvSteps   = 8
)

// Int4GemvKernels returns the kernels of the current instruction set, or nil if they are not
// available.
func Int4GemvKernels() *Int4Gemv { return int4GemvKernels.pick() }

// int4Values holds the values of 4-bit two's complement.
var int4Values = [16]float32{0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1}

// Row multiplies a row x by [Int4GemvColumns] columns of signed 4-bit weights. Group i of
// [Int4GemvSteps] steps of column j is w[i*64+j], with the first step in the lowest bits. The
// steps are split into blocks; block b has scales[b*64+j]. Weights, products and sums are
// rounded, in this order.
func (f *Int4Gemv) Row(y, x []float32, w []uint32, scales []float32) {
	groups, blocks := len(w)/Int4GemvColumns, len(scales)/Int4GemvColumns
	if blocks == 0 || groups == 0 || groups%blocks != 0 {
		panic("simd: groups of weights do not divide into blocks")
	}
	_, _ = y[Int4GemvColumns-1], x[groups*Int4GemvSteps-1]
	f.row(&y[0], &x[0], &w[0], &scales[0], groups/blocks, blocks, &int4Values[0])
}
