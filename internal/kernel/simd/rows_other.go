//go:build !amd64

package simd

var rowLoops = family[Rows]{}
