//go:build !amd64

package simd

var castLoops = family[Casts]{}
