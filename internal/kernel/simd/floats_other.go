//go:build !amd64 && !arm64

package simd

var floats = family[Floats]{}
