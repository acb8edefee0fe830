//go:build !amd64

package simd

var repeats = family[repeatLoops]{}
