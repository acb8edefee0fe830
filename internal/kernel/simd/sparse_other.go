//go:build !amd64

package simd

var sparse = family[Sparse]{}
