//go:build !amd64

package simd

var tables16 = family[Tables16]{}
