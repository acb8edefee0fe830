//go:build !amd64

package simd

var pickLoops = family[Picks]{}
