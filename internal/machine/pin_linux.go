package machine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Bind binds the calling thread, which the caller must have locked to its goroutine,
// to one processor until restore is called on the same thread. An error says why that
// is not possible, and then nothing has changed.
func Bind(cpu int) (restore func(), err error) {
	var old, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return nil, err
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, fmt.Errorf("processor %d: %w", cpu, err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &old) }, nil
}

// Pin is [Bind] for good.
func Pin(cpu int) error {
	_, err := Bind(cpu)
	return err
}

// Affinity lists the processors that the calling thread may use, nil when the
// system does not tell.
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
