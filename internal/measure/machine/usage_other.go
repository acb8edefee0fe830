//go:build !linux

package machine

// ThreadUsage reads the CPU time of the calling thread in nanoseconds; the system does not count
// preemptions of a thread. Nil if it has no such clock.
func ThreadUsage() func() (cpu, preemptions int64) {
	read := ThreadTime()
	if read == nil {
		return nil
	}
	return func() (cpu, preemptions int64) { return read(), 0 }
}

// ProcessUsage returns nil: without a count of preemptions it says nothing.
func ProcessUsage() func() (cpu, preemptions int64) { return nil }
