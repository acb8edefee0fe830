//go:build !amd64

package simd

var sifted = family[Sifted]{}
