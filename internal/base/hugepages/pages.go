// Package hugepages makes memory that lies in large pages where the system has them on demand.
//
// Whatever touches fresh memory waits for the system to bring each of its pages: a model is opened some times as fast where one
// comes in place of 512, and fewer of them are to be found again in each run. The package imports nothing of opmeter.
package hugepages

import "unsafe"

// leastBytes is the size from which on memory is asked for in large pages: what is smaller would take more than it needs.
const leastBytes = 128 << 10

// Make is make([]T, n), for elements without pointers.
func Make[T any](n int) []T {
	v := make([]T, n)
	Enlarge(v)
	return v
}

// Enlarge asks that fresh memory, which nobody has written to, lie in large pages, with what is beside it in them.
func Enlarge[T any](v []T) {
	var z T
	if size := uintptr(len(v)) * unsafe.Sizeof(z); size >= leastBytes {
		enlarge(uintptr(unsafe.Pointer(unsafe.SliceData(v))), size)
	}
}

// EnlargeHeap asks that the heap grow in large pages from where it is about to: before a model is read and made ready, which takes many small pieces.
func EnlargeHeap() {
	v := make([]byte, leastBytes) // lies where there is room next, and is not touched
	enlargeHeap(uintptr(unsafe.Pointer(unsafe.SliceData(v))))
}
