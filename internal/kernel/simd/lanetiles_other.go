//go:build !amd64

package simd

var laneTiles = family[LaneTiles]{}
