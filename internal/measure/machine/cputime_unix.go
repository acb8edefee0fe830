//go:build darwin || freebsd || linux

package machine

import "golang.org/x/sys/unix"

// ThreadTime returns a clock of the nanoseconds for which a processor has worked for
// the calling thread, nil where the system has none. The caller is locked to its thread.
func ThreadTime() func() int64 { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime is the same for all threads of the process together.
func ProcessTime() func() int64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) func() int64 {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return nil
	}
	return func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(id, &t) // it did above
		return t.Nano()
	}
}
