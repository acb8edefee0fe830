package main

import "syscall"

// maxBytes of address space that tests of a change may take: a loop that no longer
// ends must not take the machine's memory.
const maxBytes = 12 << 30

// bound limits this process and those it starts.
func bound() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &l); err != nil {
		return err
	}
	l.Cur = min(l.Cur, maxBytes)
	return syscall.Setrlimit(syscall.RLIMIT_AS, &l)
}
