//go:build !amd64

package simd

var pairs = family[Pairs]{}
