//go:build darwin || freebsd || linux

package machine

import "golang.org/x/sys/unix"

// ThreadTime returns a clock of the CPU time of the calling thread in nanoseconds, nil if the
// system has none. The caller must be locked to its thread.
func ThreadTime() func() int64 { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime returns a clock of the CPU time of all threads of the process.
func ProcessTime() func() int64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) func() int64 {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return nil
	}
	return func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(id, &t) // it succeeded above
		return t.Nano()
	}
}
