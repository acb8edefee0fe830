//go:build !amd64

package simd

var quotients = family[Divisions]{}
