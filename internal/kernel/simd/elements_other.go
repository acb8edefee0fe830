//go:build !amd64

package simd

var elements = family[Elements]{}
