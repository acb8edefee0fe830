//go:build !amd64

package simd

var ints = family[Ints]{}
