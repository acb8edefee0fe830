//go:build !linux

package workers

import "runtime"

// yield lets others run that wait for the processor.
func yield() { runtime.Gosched() }
