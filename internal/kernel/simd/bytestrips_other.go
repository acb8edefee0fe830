//go:build !amd64

package simd

var byteStrips = family[ByteStrips]{}
