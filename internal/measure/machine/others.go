package machine

import (
	"context"
	"time"
)

// otherLimit is the number of processors that other programs may use before a measurement waits
// for them.
const otherLimit = 0.25

// otherWindow is the time over which their load is measured: the system counts in ticks of 10 ms.
const otherWindow = 200 * time.Millisecond

// Others watches the load of other programs: those that this process did not start.
type Others struct {
	// read returns the processor time in seconds that all programs have used, and the part of this
	// process and of its children that have ended; ok is false if the system does not provide it.
	read  func() (all, own float64, ok bool)
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration)

	at       time.Time
	all, own float64
}

// NewOthers begins to watch.
func NewOthers() *Others {
	o := &Others{read: processorTimes, now: time.Now, sleep: pause}
	o.load()
	return o
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// load returns how many processors other programs used since the last call; 0 if it is not known.
func (o *Others) load() float64 {
	all, own, ok := o.read()
	now := o.now()
	passed := now.Sub(o.at).Seconds()
	used := all - o.all - (own - o.own)
	first := o.at.IsZero()
	o.at, o.all, o.own = now, all, own
	if !ok || first || passed <= 0 {
		return 0
	}
	return max(0, used/passed)
}

// Wait waits while other programs use more than a quarter of a processor, at most for a time, and
// returns how long it waited. No child of this process may run meanwhile. It looks at the time
// since the last call first, so that it does not wait on a quiet machine.
func (o *Others) Wait(ctx context.Context, most time.Duration) time.Duration {
	if o.load() < otherLimit {
		return 0
	}
	began := o.now()
	for ctx.Err() == nil {
		waited := o.now().Sub(began)
		if waited >= most {
			return waited
		}
		o.sleep(ctx, min(otherWindow, most-waited))
		if o.load() < otherLimit {
			break
		}
	}
	return o.now().Sub(began)
}
