//go:build !amd64

package simd

var curves = family[Curves]{}
