//go:build !amd64

package simd

var sparseInts = family[SparseInts]{}
