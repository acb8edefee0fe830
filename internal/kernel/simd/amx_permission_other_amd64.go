//go:build !linux

package simd

// amxAllowed returns false: the method to request tiles on other systems is not known.
func amxAllowed() bool { return false }
