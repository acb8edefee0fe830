//go:build !amd64

package simd

var placeLoops = family[Places]{}
