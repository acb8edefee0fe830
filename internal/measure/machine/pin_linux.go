package machine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Bind binds the calling thread, which the caller must have locked to its goroutine, to
// processors until restore is called on the same thread. Threads that it starts inherit the
// binding. On error nothing has changed.
func Bind(cpus ...int) (restore func(), err error) {
	var old, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return nil, err
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("processors %v: %w", cpus, err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &old) }, nil
}

// Pin is [Bind] without a way to restore.
func Pin(cpus ...int) error {
	_, err := Bind(cpus...)
	return err
}

// Affinity lists the processors that the calling thread may use, nil if the system does not
// provide them.
func Affinity() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var out []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}
