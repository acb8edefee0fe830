//go:build !amd64 && !arm64

package simd

var windows = family[Windows]{}
