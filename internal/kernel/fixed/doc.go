// Package fixed implements the fixed-point arithmetic of quantised TFLite kernels: integer
// multipliers with their two roundings, transcendental functions of 32-bit fixed-point numbers,
// and the lookup tables of the 8- and 16-bit kernels.
//
// Every function is bit-exact, because quantised models are compared by equality. Unusual
// roundings (ties of a right shift go away from zero, ties of a doubling multiplication upwards)
// match the reference kernels and must not be "corrected".
package fixed
