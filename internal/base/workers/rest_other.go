//go:build !linux

package workers

import (
	"runtime"
	"sync/atomic"
)

// systemSleeps says that threads can sleep on a word of memory.
const systemSleeps = false

// yield lets others run that wait for the processor.
func yield() { runtime.Gosched() }

func sleepWhile(*atomic.Uint32, uint32) {}

func wake(*atomic.Uint32) {}
