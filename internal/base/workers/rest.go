package workers

import "sync/atomic"

// rest is a place where one thread sleeps until another one wakes it.
type rest struct {
	asleep atomic.Uint32
	// one signal for each time that others took back asleep where it was inScheduler
	wake chan struct{}
}

// Nonzero values of asleep.
const (
	// inScheduler frees the processor for other goroutines at once. Waking takes about 100 µs,
	// until Go has found a thread.
	inScheduler = iota + 1
	// inSystem wakes in about 10 µs. Other goroutines get the processor when Go retakes it, a few
	// ms later.
	inSystem
)

func (r *rest) init() { r.wake = make(chan struct{}, 1) }

// sleep returns when another thread has called rouse after ready became true, or earlier.
func (r *rest) sleep(ready func() bool, crowded bool) {
	how := uint32(inScheduler)
	if systemSleeps && !crowded {
		how = inSystem
	}
	r.asleep.Store(how)
	// An event before the line above did not see asleep set. Whoever resets asleep decides who
	// wakes: if it is not this thread, a signal is on its way.
	switch {
	case ready() && r.asleep.CompareAndSwap(how, 0):
	case how == inScheduler:
		<-r.wake
	default:
		for r.asleep.Load() == how {
			sleepWhile(&r.asleep, how)
		}
	}
}

// rouse wakes the sleeping thread.
func (r *rest) rouse() {
	how := r.asleep.Load()
	if how == 0 || !r.asleep.CompareAndSwap(how, 0) {
		return
	}
	if how == inScheduler {
		r.wake <- struct{}{}
		return
	}
	wake(&r.asleep)
}
