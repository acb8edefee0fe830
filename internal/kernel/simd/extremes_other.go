//go:build !amd64

package simd

var extremeLoops = family[Extremes]{}
