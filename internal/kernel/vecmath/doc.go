// Package vecmath computes elementary functions of float32 faster than the
// standard library does, over scalars and slices.
//
// All functions reduce their argument with a small table and evaluate a short
// polynomial in float64, so that rounding to float32 at the end is nearly the
// only error. Measured against math.* over the whole float32 range the largest
// errors, in units in the last place of the result, are:
//
//	Exp, Sigmoid, Tanh, Log, Erf   0.51
//	Pow                            0.6
//	GeluTanh, Silu                 0.6
//	Gelu                           0.6, below x = -2 about 2^-30 absolute
//
// In vectors SigmoidTo and ErfTo stay in float32, as engines do: up to 2.5 units for several times
// the speed.
//
// NaN gives NaN; infinities, overflow, underflow to subnormals and signed zeros
// follow the standard library. Slice functions take dst and src of the same
// length; they may be the same slice.
package vecmath
