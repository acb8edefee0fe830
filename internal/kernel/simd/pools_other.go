//go:build !amd64

package simd

var pools = family[Pools]{}
