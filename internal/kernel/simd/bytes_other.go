//go:build !amd64 && !arm64

package simd

var ints = family[Ints]{}
