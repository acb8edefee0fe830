//go:build !amd64

package simd

var floats = family[Floats]{}
