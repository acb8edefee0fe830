package mapped

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// release drops the whole pages of b. They are never written to, so nothing is lost.
func release(b []byte) {
	page := uintptr(os.Getpagesize())
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := -at & (page - 1)
	if n := uintptr(len(b)); n >= skip+page {
		_ = unix.Madvise(b[skip:skip+(n-skip)&^(page-1)], unix.MADV_DONTNEED)
	}
}
