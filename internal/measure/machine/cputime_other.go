//go:build !darwin && !freebsd && !linux

package machine

// ThreadTime returns nil: this system's CPU time clocks are too coarse.
func ThreadTime() func() int64 { return nil }

// ProcessTime returns nil for the same reason.
func ProcessTime() func() int64 { return nil }
