//go:build !amd64

package simd

var (
	expand     = family[Expand]{}
	expandInts = family[ExpandInts]{}
)
