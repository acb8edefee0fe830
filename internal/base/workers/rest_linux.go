package workers

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// systemSleeps says that threads can sleep on a memory word (futex).
const systemSleeps = true

// Operations of futex(2), on words of one process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// yield lets waiting threads use the processor.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// sleepWhile sleeps while the word has a value, until wake, or returns spuriously.
func sleepWhile(word *atomic.Uint32, is uint32) {
	_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(is), 0, 0, 0)
}

// wake wakes the thread that sleeps on a word.
func wake(word *atomic.Uint32) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}
