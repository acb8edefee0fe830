package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// pageBytes is the size of large pages where those of usual size have 4096 bytes. Elsewhere less or more is asked for, which does no harm.
	pageBytes = 2 << 20
	// heapStep is a multiple of what the heap grows to.
	heapStep = 4 << 20
	// cached is what a processor takes of the heap to make small pieces of, and leastOwn the size of some that lie alone.
	cached, leastOwn = 512 << 10, 40 << 10
	// worthLarge is for how many bytes a large page takes less time than usual ones do.
	worthLarge = 160 << 10
)

// enlarge asks for whole large pages: the heap grows in steps of several of them. Where the system has none nothing changes.
func enlarge(at, size uintptr) { advise(at, (at+size+pageBytes-1)&^(pageBytes-1)) }

// enlargeHeap asks for large pages up to where the heap grows again. It begins somewhere in a step, by chance, and has filled a part of a large page with
// usual ones when a model comes, which stay: what needs more than some goes behind that page.
func enlargeHeap(bytes int64) {
	at := block(leastBytes)
	behind := at + -at%pageBytes
	whole := bytes < worthLarge || behind-at < leastBytes || there(at)
	if !whole {
		block(behind - at - leastBytes) // where the first one ends
		at = block(leastBytes)
	}
	advise(at, at&^(heapStep-1)+heapStep)
	// Small pieces come from a part that the processor at work has taken of the page before.
	for n := cached / leastOwn; n > 0 && !whole && block(leastOwn) < behind; n-- {
	}
}

// advise asks for large pages from that of an address to the end of one.
func advise(from, to uintptr) {
	from &^= pageBytes - 1
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}

// block makes a block of the heap, from leastBytes on where there is room next, and tells where it lies. Nobody touches it before it is collected.
//
//go:noinline
func block(bytes uintptr) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(make([]byte, bytes))))
}

// there tells whether a page is where nobody has written: it is part of a large one.
func there(at uintptr) bool {
	var pages [leastBytes / 4096]byte
	_, _, e := unix.Syscall(unix.SYS_MINCORE, at, leastBytes, uintptr(unsafe.Pointer(&pages)))
	return e == 0 && pages[0]&1 != 0
}
