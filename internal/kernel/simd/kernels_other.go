//go:build !amd64 && !arm64

package simd

// Kernels that exist only for amd64 and arm64.
var (
	intKernels     = family[Ints]{}
	elementKernels = family[Elements]{}
	floatKernels   = family[Floats]{}
	windowKernels  = family[Windows]{}
)

func detected(Set) bool { return false }
