package hugepages

import "golang.org/x/sys/unix"

// pageBytes is the size of large pages where those of usual size have 4096 bytes. Elsewhere less or more is asked for, which does no harm.
const pageBytes = 2 << 20

// enlarge asks for whole large pages: the heap grows in steps of several of them. Where the system has none nothing changes.
func enlarge(at, size uintptr) {
	from := at &^ (pageBytes - 1)
	to := (at + size + pageBytes - 1) &^ (pageBytes - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}

// enlargeHeap asks for the large page of an address, and for those behind it up to where the heap grows again.
func enlargeHeap(at uintptr) {
	const step = 4 << 20
	from := at &^ (pageBytes - 1)
	to := (at + step) &^ (step - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}
