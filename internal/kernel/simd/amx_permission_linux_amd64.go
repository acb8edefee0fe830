package simd

import (
	"syscall"
	"unsafe"
)

// amxAllowed requests permission from Linux (5.16 or later) to use AMX tiles, and reports
// whether it was granted. From then on, the system saves the tiles of a thread when it interrupts
// the thread, also for signals. This takes 8 KiB of the 32 KiB stack of Go's signal handlers.
func amxAllowed() bool {
	const (
		getPermission = 0x1022 // ARCH_GET_XCOMP_PERM of asm/prctl.h
		askPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData      = 18     // state component of the processor
	)
	if _, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, askPermission, tileData, 0); e != 0 {
		return false
	}
	var has uint64
	_, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, getPermission, uintptr(unsafe.Pointer(&has)), 0)
	return e == 0 && has&(1<<tileData) != 0
}
