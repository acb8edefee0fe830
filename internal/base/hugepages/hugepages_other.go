//go:build !linux

package hugepages

// enlarge leaves the page size to the system.
func enlarge(uintptr, uintptr) {}

// enlargeHeap leaves the page size to the system.
func enlargeHeap(uintptr) {}
