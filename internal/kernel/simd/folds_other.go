//go:build !amd64

package simd

var foldLoops = family[Folds]{}
