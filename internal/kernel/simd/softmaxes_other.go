//go:build !amd64

package simd

var softmaxLoops = family[Softmaxes]{}
