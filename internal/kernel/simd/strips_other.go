//go:build !amd64

package simd

var strips = family[Strips]{}
