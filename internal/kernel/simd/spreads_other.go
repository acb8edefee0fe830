//go:build !amd64

package simd

var spreadLoops = family[Spreads]{}
