//go:build !linux

package hugepages

// enlarge leaves the size of pages to the system.
func enlarge(uintptr, uintptr) {}

// enlargeHeap leaves it to the system, too.
func enlargeHeap(uintptr) {}
