// Package recipe describes in plain numbers what prepared integer operators of TFLite compute:
// geometry, multipliers, ranges. An operator's Prepare stores a recipe in its call, from which
// internal/device/firmware generates C. The multipliers of a generated program are therefore
// those of the engine, not a second computation of them.
//
// Weights are not part of a recipe: they are the inputs of the call.
package recipe

import (
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
)

// Sums describes the requantisation of accumulators to integers of an output: bias, multiplier,
// zero point, range.
type Sums struct {
	Bias []int64            // one a channel, nil for none
	Mul  []fixed.Multiplier // one a channel, or a single one for all
	Zero int32              // zero point of the output
	// Min and Max bound the output, zero point included.
	Min, Max int32
	// Wide sums have 64 bits and are scaled with one rounding ([fixed.Multiplier.Apply64]),
	// others with two.
	Wide bool
}

// Conv is CONV_2D or DEPTHWISE_CONV_2D over [N,H,W,C].
type Conv struct {
	Shape     conv.Shape
	Depthwise bool
	Zero      int32 // zero point of the input
	Sums      Sums
}

// Dense is FULLY_CONNECTED: [Rows, In] times [Out, In] transposed.
type Dense struct {
	Rows, In, Out int
	Zero          int32 // zero point of the input
	Sums          Sums
}

// Pool is AVERAGE_POOL_2D or MAX_POOL_2D over [N,H,W,C].
type Pool struct {
	conv.Shape
	Max    bool // the largest, not the mean
	Lo, Hi int32
}

// Softmax is SOFTMAX of 8-bit rows. Exps[d] is the exponential of a value d below the maximum of
// its row in Q0.31; for values further below than Span it is zero.
type Softmax struct {
	Rows, Depth int
	Exps        [256]int32
	Span        int32
	Lo, Hi      int32 // range of the output's type
	Bits        int   // of the output's type
}

// WideSoftmax is SOFTMAX of int16 rows; Mul scales differences for [fixed.Exp16].
type WideSoftmax struct {
	Rows, Depth int
	Mul         fixed.Multiplier
}

// SumKind distinguishes additions of two inputs.
type SumKind uint8

// Kinds of [Sum].
const (
	Add SumKind = iota
	Sub
	SquaredDifference
)

// Sum is ADD, SUB or SQUARED_DIFFERENCE of two quantised inputs, which broadcast: both differences
// to their zero points are shifted left by Shift and scaled, the result is scaled by MulOut.
type Sum struct {
	Kind           SumKind
	A, B           []int // shapes of the inputs
	Shift          int
	ZeroA, ZeroB   int32
	MulA, MulB     fixed.Multiplier
	MulOut         fixed.Multiplier
	Zero, Min, Max int32 // of the output
}

// Product is MUL of two quantised inputs, which broadcast.
type Product struct {
	A, B           []int
	ZeroA, ZeroB   int32
	Mul            fixed.Multiplier
	Zero, Min, Max int32
}

// Total is SUM or MEAN of a quantised input over axes: the sum minus Offset, scaled.
type Total struct {
	Shape          []int
	Drop           []bool // axes that go, by dimension of Shape
	Offset         int32
	Mul            fixed.Multiplier
	Zero, Min, Max int32
}

// Extreme is REDUCE_MAX or REDUCE_MIN.
type Extreme struct {
	Shape []int
	Drop  []bool
	Least bool
}

// Rescale is QUANTIZE of an integer input: difference to the zero point, scaled.
type Rescale struct {
	ZeroIn   int32
	Mul      fixed.Multiplier
	Zero     int32
	Min, Max int32
}

// Quantise is QUANTIZE of float32: the quotient with Scale, rounded with ties away from zero,
// plus Zero, clamped.
type Quantise struct {
	Scale          float32
	Zero, Min, Max int32
}

// Dequantise is DEQUANTIZE of an integer input: Scale times the difference to Zero in float64,
// rounded to float32.
type Dequantise struct {
	Scale float32
	Zero  int32
}

// Curve16 is LOGISTIC or TANH of int16 by table and interpolation.
type Curve16 struct {
	Tanh  bool
	Mul   int32
	Shift int
}

// PRelu is PRELU of 8-bit values; the slopes broadcast.
type PRelu struct {
	A, B           []int
	ZeroA, ZeroB   int32
	Up, Down       fixed.Multiplier
	Zero, Min, Max int32
}

// Bilinear is RESIZE_BILINEAR of int8 or int16: lower and upper neighbour of each row and column,
// and the weight of the upper one in 1/1024.
type Bilinear struct {
	N, H, W, C int
	Rows, Cols []Tap
}

// Tap is a pair of neighbours; F is the weight of Hi in 1/1024.
type Tap struct{ Lo, Hi, F int }

// TransposeConv is TRANSPOSE_CONV; input Data is the image, input Filter the filter [OC,KH,KW,C].
type TransposeConv struct {
	conv.TransposedShape
	Data, Filter int
	Zero         int32 // zero point of the input
	Sums         Sums
}

// MatMul is BATCH_MATMUL of integers: products of M×K by K×N, one for each pair of offsets in X
// and Y, in elements.
type MatMul struct {
	M, N, K      int
	AdjX, AdjY   bool
	X, Y         []int
	ZeroX, ZeroY int32
	Sums         Sums // a single multiplier
}

// SVDF is a singular-value-decomposition filter over int8 with a memory of int8 or int16.
type SVDF struct {
	Batch, In, Filters, Memory, Units, Rank int
	ZeroIn, ZeroState, Zero                 int32
	Feature, Time                           fixed.Multiplier
	StateMin, StateMax                      int32
}

// Gate is one matrix product of an integer LSTM: weights of input Weights, [N, K].
type Gate struct {
	Weights int     // number of the input
	N, K    int     // rows and columns
	Fold    []int64 // bias less the input's zero point, one a row
	Mul     fixed.Multiplier
}

// LSTM is UNIDIRECTIONAL_SEQUENCE_LSTM of int8 or int16 with an int16 cell state. Gates are in
// the order input, forget, cell, output.
type LSTM struct {
	Batch, Steps, In, Cells int
	TimeMajor               bool
	Inputs, Recurrent       [4]Gate
	Forget, Input, Output   fixed.Multiplier
	Clip                    int32 // 0 for none
	// TanhMul and TanhShift scale the cell for [fixed.Tanh16].
	TanhMul      int32
	TanhShift    int
	ZeroHidden   int32
	Lo, Hi       int32
	Hidden, Cell int  // inputs that hold the state
	Wide         bool // int16 input: 64-bit sums
}

// PlainKind distinguishes operators on integers without scales.
type PlainKind uint8

// Kinds of [Plain].
const (
	PlainAdd PlainKind = iota
	PlainSub
	PlainMul
	PlainDiv
	PlainMax
	PlainMin
	PlainSquaredDifference
)

// Plain is an operator of two integer inputs without scales, which broadcast. Sums wrap.
type Plain struct {
	Kind    PlainKind
	A, B    []int
	Clamped bool // an activation follows
}

// Join is a CONCATENATION whose inputs are requantised to the output by a table each, nil for
// inputs that have its quantisation already.
type Join struct{ Tables []*[256]uint8 }

// Arg is ARG_MAX or ARG_MIN over [Outer, N, Inner]: the first of the largest or smallest elements.
type Arg struct {
	Outer, N, Inner int
	Least           bool
}

// Leaky is LEAKY_RELU of int16: differences to the zero point are scaled by Up, negative ones by
// Down.
type Leaky struct {
	ZeroIn   int32
	Up, Down fixed.Multiplier
	Zero     int32
}
