// Package fixed is the fixed-point arithmetic of quantised TFLite kernels:
// integer multipliers with their two roundings, the transcendental functions on
// 32-bit fixed-point numbers, and the lookup tables of the 8- and 16-bit kernels.
//
// Every function is defined to the last bit, because quantised models are
// compared by equality. Where a rounding looks odd (ties of a right shift go away
// from zero, ties of a doubling product upwards) it is what the reference
// kernels do, and a "better" one would be wrong.
package fixed
