//go:build !amd64

package simd

var minimal = family[Minimal]{}
