//go:build !linux

package mapped

// release does nothing: the system decides which pages it keeps.
func release([]byte) {}
