//go:build !amd64

package simd

var windows = family[Windows]{}
