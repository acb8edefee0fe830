package loop

import "math"

// Limits for a sample whose threads waited for a processor: by the first or by the fraction of
// the time that follows, whichever is longer. Usage is known to the microsecond.
const (
	waitNanoseconds = 20_000
	waitLimit       = 0.02
)

// Disturbed reports whether other programs disturbed work that took a time and a CPU time in
// nanoseconds, while the system took the processor from its threads so many times. Several threads
// wait for each other: their CPU time shows nothing.
func Disturbed(took, cpu float64, preemptions int64, parallel bool) bool {
	return preemptions > 0 || !parallel && took-cpu > max(waitNanoseconds, waitLimit*took)
}

// usage watches consecutive samples for disturbances.
type usage struct {
	m *measurer
	// plain says that the samples are those of the plain pass. every is the least time of watched
	// samples in nanoseconds, 0 for each one.
	plain bool
	every float64
	open  bool
	// Values at the start of the samples that are watched.
	wall, cpu, preemptions int64
	// samples is their number.
	samples int
}

// begin starts watching, unless samples are watched already.
func (u *usage) begin() {
	if u.open || u.m.o.Usage == nil {
		return
	}
	u.open = true
	u.cpu, u.preemptions = u.m.o.Usage()
	u.wall = u.m.clock.Now()
}

// end counts a sample and reports whether it was disturbed. When the watched samples took long
// enough, it closes them; a sample of an open watch is not known to be disturbed.
func (u *usage) end() (disturbed bool) {
	u.samples++
	if u.m.o.Usage != nil && float64(u.m.clock.Now()-u.wall) < u.every {
		return false
	}
	return u.close()
}

// close stops watching and reports whether the samples were disturbed. For those of the plain pass
// it stores that and their CPU time. Without usage each sample is undisturbed.
func (u *usage) close() (disturbed bool) {
	n := u.samples
	if n == 0 {
		return false
	}
	u.open, u.samples = false, 0
	work := math.NaN()
	if read := u.m.o.Usage; read != nil {
		took := float64(u.m.clock.Now() - u.wall)
		now, preemptions := read()
		cpu := float64(now - u.cpu)
		disturbed = Disturbed(took, cpu, preemptions-u.preemptions, u.m.o.Parallel)
		if !u.m.o.Parallel {
			work = cpu / float64(n*u.m.res.Batch) / 1e9
		}
	}
	if !u.plain {
		return disturbed
	}
	for range n {
		u.m.res.Disturbed, u.m.res.Work = append(u.m.res.Disturbed, disturbed), append(u.m.res.Work, work)
	}
	if !disturbed {
		u.m.calm += n
	}
	return disturbed
}
