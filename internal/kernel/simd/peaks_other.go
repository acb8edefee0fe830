//go:build !amd64

package simd

var peaks = family[Peak]{}
