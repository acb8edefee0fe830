//go:build !amd64

package simd

var relations = family[Relations]{}
