//go:build !linux

package workers

import (
	"runtime"
	"sync/atomic"
)

// systemSleeps says that threads can sleep on a memory word.
const systemSleeps = false

// yield lets waiting goroutines use the processor.
func yield() { runtime.Gosched() }

func sleepWhile(*atomic.Uint32, uint32) {}

func wake(*atomic.Uint32) {}
