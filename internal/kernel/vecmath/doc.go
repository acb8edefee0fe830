// Package vecmath computes elementary functions of float32, for scalars and slices, faster than
// the standard library.
//
// All functions reduce their argument with a small table and evaluate a short polynomial in
// float64, so that rounding to float32 at the end is nearly the only error. The largest errors
// against math.* over the whole float32 range, in units in the last place (ulp) of the result,
// are:
//
//	Exp, Sigmoid, Tanh, Log, Erf   0.51
//	Pow                            0.6
//	GeluTanh, Silu                 0.6
//	Gelu                           0.6, below x = -2 about 2^-30 absolute
//
// With SIMD kernels SigmoidTo and ErfTo compute in float32, as other inference engines do: up to
// 2.5 ulp, several times faster.
//
// NaN returns NaN. Infinities, overflow, underflow to subnormals and signed zeros follow the
// standard library. Slice functions take dst and src of the same length; they may be the same
// slice.
package vecmath
