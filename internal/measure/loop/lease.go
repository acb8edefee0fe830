package loop

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/opmeter/opmeter/internal/base/gcpolicy"
)

// lease has room for one: who put a value in holds it. Those who wait are served in
// the order in which they came.
var lease = make(chan struct{}, 1)

// ErrNotLeased is returned to a caller who says to hold the lease when nobody does.
var ErrNotLeased = errors.New("measure: the lease is not held")

// Lease waits until nothing else in this process measures and keeps others from it
// until release is called, which may be done more than once and on any goroutine.
// Measurements need the processors to themselves, and some change settings of the
// whole process, such as the collector's. The error is the context's when it ended
// first; release is nil then. Whoever holds the lease must not ask for it again:
// that would wait for ever. See [Options.Leased].
func Lease(ctx context.Context) (release func(), err error) {
	// Of several ways to go on select takes any: an ended context has to be first.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case lease <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return sync.OnceFunc(func() { <-lease }), nil
}

// leaseUnlessHeld is [Lease] for callers who may hold the lease already, which they say: what
// they get then releases nothing.
func leaseUnlessHeld(ctx context.Context, already bool) (release func(), err error) {
	if !already {
		return Lease(ctx)
	}
	if len(lease) == 0 {
		return nil, ErrNotLeased
	}
	return func() {}, nil
}

// Quiet switches the collector off for whoever holds the lease, with room for so many
// bytes of growth, 0 for 2 GiB, and returns what undoes it.
func Quiet(room int64) (restore func()) { return disableGC(room) }

// disableGC switches the collector off, with room in bytes so that a leak cannot eat the
// machine, and returns what undoes it. The settings are the process's: only who
// holds the lease may change them, or two that overlap would restore each other's.
func disableGC(room int64) (restore func()) {
	limit := int64(readMetric("/memory/classes/total:bytes")) + cmp.Or(room, 2<<30)
	oldLimit := debug.SetMemoryLimit(-1)
	if oldLimit > limit {
		debug.SetMemoryLimit(limit)
	}
	collect := gcpolicy.At(gcpolicy.Off)
	return func() {
		collect()
		debug.SetMemoryLimit(oldLimit)
	}
}
