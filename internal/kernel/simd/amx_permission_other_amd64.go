//go:build !linux

package simd

// tilesAllowed: how to ask other systems for tiles is not known.
func tilesAllowed() bool { return false }
