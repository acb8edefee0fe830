//go:build !amd64

package simd

var fourBitLoops = family[FourBits]{}
