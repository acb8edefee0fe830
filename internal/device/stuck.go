package device

import (
	"errors"
	"fmt"
	"time"

	"github.com/opmeter/opmeter/internal/base/port"
)

// patience is how many timeouts a device that sends something may take without coming further:
// without an inference, or before a protocol is recognised.
const patience = 6

// ErrStuck says that a device sends without coming further.
var ErrStuck = errors.New("the device does not come further")

// StuckError is an [ErrStuck] with the time waited.
type StuckError struct {
	Port   port.Address
	Waited time.Duration
	// Bytes is the number of bytes that arrived meanwhile, Runs that of inferences before.
	Bytes int64
	Runs  int
}

// Error returns what arrived and what did not.
func (e *StuckError) Error() string {
	what := "no inference"
	if e.Runs > 0 {
		what = "no further inference"
	}
	return fmt.Sprintf("%s: %d bytes came within %s, and %s was complete: check what the device sends, or set a longer timeout", e.Port, e.Bytes, seconds(e.Waited), what)
}

// Is makes it match [ErrStuck].
func (e *StuckError) Is(target error) bool { return target == ErrStuck }

// Waiting is the state of a measurement that has received bytes, and no inference for a while.
type Waiting struct {
	// Bytes is the number of bytes since the last inference, Since the time.
	Bytes int64
	Since time.Duration
	// Limit is when the measurement is given up, 0 for never.
	Limit time.Duration
}

// watch notices a device that does not come further. A nil value watches nothing.
type watch struct {
	r       *Recorder
	limit   time.Duration
	endless bool // what follows the first inference has no limit
	told    func(Waiting)
	moves   int // of the recorder, at that time
	since   time.Time
	bytes   int64
	last    time.Time // when the state was told
}

// came notes that bytes arrived, got of them since the beginning.
func (w *watch) came(at time.Time, got int64, from port.Address) error {
	if w == nil {
		return nil
	}
	if w.since.IsZero() || w.moves != w.r.moves {
		w.moves, w.since, w.bytes, w.last = w.r.moves, at, got, at
		return nil
	}
	limit := w.limit
	if w.endless && w.r.seen > 0 {
		limit = 0
	}
	x := Waiting{Bytes: got - w.bytes, Since: at.Sub(w.since), Limit: limit}
	if limit > 0 && x.Since > limit {
		return &StuckError{Port: from, Waited: x.Since, Bytes: x.Bytes, Runs: w.r.kept}
	}
	if w.told != nil && at.Sub(w.last) >= time.Second {
		w.last = at
		w.told(x)
	}
	return nil
}
