package loop

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/opmeter/opmeter/internal/base/gcpolicy"
)

// lease has capacity for one value: whoever has sent it holds the lease. Waiting callers are
// served in order of arrival.
var lease = make(chan struct{}, 1)

// ErrNotLeased is returned to a caller that claims to hold the lease when nobody holds it.
var ErrNotLeased = errors.New("measure: the lease is not held")

// Lease waits until nothing else in this process measures, and keeps others from measuring until
// release is called. release may be called more than once and on any goroutine. Measurements need
// the processors to themselves, and some change settings of the whole process, such as garbage
// collection. The error is the context's if it ended first; release is nil then. The holder of
// the lease must not call Lease again, because that would wait forever. See [Options.Leased].
func Lease(ctx context.Context) (release func(), err error) {
	// Select chooses any ready case: check for an ended context first.
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

// leaseUnlessHeld is [Lease] for callers that may hold the lease already, as they state; then the
// returned function releases nothing.
func leaseUnlessHeld(ctx context.Context, already bool) (release func(), err error) {
	if !already {
		return Lease(ctx)
	}
	if len(lease) == 0 {
		return nil, ErrNotLeased
	}
	return func() {}, nil
}

// Quiet disables garbage collection for the holder of the lease, with the given number of bytes
// of growth, 0 for 2 GiB, and returns a function that restores the settings.
func Quiet(room int64) (restore func()) { return disableGC(room) }

// disableGC disables garbage collection, with a limit of growth in bytes so that a leak cannot
// exhaust the machine, and returns a function that restores the settings. The settings are
// process-wide: only the holder of the lease may change them, else two overlapping changes would
// restore each other's.
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
