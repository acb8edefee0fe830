package simd

import (
	"syscall"
	"unsafe"
)

// tilesAllowed asks Linux, from 5.16 on, to let this process use tiles, and tells whether it does. From then on
// the system saves the tiles of a thread that uses them where it interrupts the thread, for signals, too: that takes 8 KiB of
// the 32 that Go's handlers of signals have.
func tilesAllowed() bool {
	const (
		getPermission = 0x1022 // ARCH_GET_XCOMP_PERM of asm/prctl.h
		askPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData      = 18     // of the processor's kinds of state
	)
	if _, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, askPermission, tileData, 0); e != 0 {
		return false
	}
	var has uint64
	_, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, getPermission, uintptr(unsafe.Pointer(&has)), 0)
	return e == 0 && has&(1<<tileData) != 0
}
