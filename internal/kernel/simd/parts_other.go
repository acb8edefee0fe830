//go:build !amd64

package simd

var partLoops = family[Parts]{}

func partsWork() bool { return false }
