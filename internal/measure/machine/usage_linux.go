package machine

import "golang.org/x/sys/unix"

// ThreadUsage returns a function that reads the CPU time of the calling thread in nanoseconds and
// how often the system took the processor from it, nil if the system has none. The caller must be
// locked to its thread.
func ThreadUsage() func() (cpu, preemptions int64) { return usage(ThreadTime(), unix.RUSAGE_THREAD) }

// ProcessUsage is [ThreadUsage] for all threads of the process.
func ProcessUsage() func() (cpu, preemptions int64) { return usage(ProcessTime(), unix.RUSAGE_SELF) }

// usage reads the CPU time by a clock, since the system brings that of getrusage up to date only
// at its ticks.
func usage(time func() int64, who int) func() (cpu, preemptions int64) {
	var r unix.Rusage
	if time == nil || unix.Getrusage(who, &r) != nil {
		return nil
	}
	return func() (cpu, preemptions int64) {
		var r unix.Rusage
		_ = unix.Getrusage(who, &r) // it succeeded above
		return time(), r.Nivcsw
	}
}
