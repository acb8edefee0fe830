//go:build !amd64

package simd

var resizeLoops = family[Resizes]{}
