//go:build linux || darwin

package main

import (
	"syscall"
	"time"
)

// spent is the time that the processor has worked for this process: what other processes take
// does not count.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
