//go:build !linux

package simd

// tilesAllowed returns false: the method to request tiles on other systems is not known.
func tilesAllowed() bool { return false }
