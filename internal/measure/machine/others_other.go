//go:build !linux

package machine

// processorTimes is not implemented for this system: nothing waits for other programs.
func processorTimes() (all, own float64, ok bool) { return 0, 0, false }
