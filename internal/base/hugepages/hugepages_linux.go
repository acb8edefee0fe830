package hugepages

import "golang.org/x/sys/unix"

// pageBytes is the size of huge pages if base pages have 4096 bytes. On other systems the request
// covers more or less, which is harmless.
const pageBytes = 2 << 20

// enlarge requests whole huge pages: the heap grows in steps of several of them. Without support
// in the system nothing changes.
func enlarge(at, size uintptr) {
	from := at &^ (pageBytes - 1)
	to := (at + size + pageBytes - 1) &^ (pageBytes - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}

// enlargeHeap requests the huge page of an address, and those after it up to the next growth of
// the heap.
func enlargeHeap(at uintptr) {
	const step = 4 << 20
	from := at &^ (pageBytes - 1)
	to := (at + step) &^ (step - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}
