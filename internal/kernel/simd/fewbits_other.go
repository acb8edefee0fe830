//go:build !amd64

package simd

var fewBits = family[FewBits]{}
