package loadgen

import (
	"math"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loop"
)

// Bounds of what may be asked for.
const (
	// MaxStreams is the most streams.
	MaxStreams = 1024
	// MaxRate is the most inferences a second.
	MaxRate = 1e7
)

// Options says how streams are driven. The zero value runs each as fast as it can for
// two seconds after half a second of warm-up.
type Options struct {
	// Clock to use; nil makes a new one.
	Clock *loop.Clock
	// Rate is the number of inferences a second that are due, of all streams together; 0
	// lets each stream begin the next inference when its last one ended.
	Rate float64
	// Runs is the number of inferences of all streams together, more where one of them has not
	// had MinRuns by then, 0 for as many as fit Time. With a rate it is the number of those that
	// are due.
	Runs int
	// Time is the length of the window; 0 means 2 s, or no bound where Runs is set. It grows
	// until each stream has MinRuns where there is no rate.
	Time time.Duration
	// MinRuns is the least number of inferences of each stream where there is no rate; 0 means
	// 3, or 1 where Runs is set.
	MinRuns int
	// Warmup is the least time for which each stream warms up; 0 means half a second,
	// negative one inference. WarmupRuns is the least number of inferences, 0 means 3.
	Warmup     time.Duration
	WarmupRuns int
	// Before runs before each inference of a stream, on its thread and outside the timed
	// region: to make it a cold one. May be nil.
	Before func(stream int) error
	// Bind binds the calling thread to a processor and returns what undoes it. A failure is
	// reported and does not keep from measuring. May be nil.
	Bind func(stream int) (restore func(), err error)
	// Around calls body on the stream's thread, for what is to be in force all the while
	// that a stream runs. May be nil.
	Around func(stream int, body func() error) error
	// Keep is the most times that are kept of a stream; 0 means 4096.
	Keep int
	// Spans is the most bars that are kept of a stream, the first ones; 0 keeps none.
	Spans int
	// ProcessTime reads the time for which processors worked for the process, in
	// nanoseconds; nil where the system does not tell.
	ProcessTime func() int64
	// HeapRoom is by how many bytes memory may grow while the collector is off, 0 for 2 GiB.
	HeapRoom int64
	// Leased says that the caller holds the lease of internal/measure/loop.
	Leased bool
	// Over is called when the last stream has ended, before what was measured is judged. May be
	// nil.
	Over func()
	// Progress is told how far the window is, from 0 to 1, ten times a second, on a goroutine
	// of its own. May be nil.
	Progress func(fraction float64)

	// awake is how long before an inference is due nobody sleeps any more, less than 0 for
	// tests in which sleeping is exact.
	awake time.Duration
}

// Span is when an inference ran, in nanoseconds of the clock.
type Span struct{ Start, End int64 }

// Stream is what one stream did.
type Stream struct {
	// Inferences is how many it computed within the window, parts of those at the edges
	// included.
	Inferences float64
	// Latency describes the times from start to end of the inferences that began in the
	// window, in seconds.
	Latency stats.Summary
	// Samples holds times of it in order, all or a choice.
	Samples []float64
	// Stability judges Samples.
	Stability stats.Stability
	// Spans holds the first inferences of the window.
	Spans []Span
	// WarmupRuns is the number of inferences before the window.
	WarmupRuns int
	// Pinned says whether its thread was bound as asked, PinError why not.
	Pinned   bool
	PinError error
}

// Result is what [Run] found. Times are seconds. What nothing is known of is NaN, or a
// summary of no samples.
type Result struct {
	Streams []Stream
	// Open and Close bound the window, in nanoseconds of the clock; Window is its length.
	Open, Close int64
	Window      float64
	// Inferences is how many lie within it, in parts where they cross an edge.
	Inferences float64
	// PerSecond is Inferences divided by Window, NaN without a window.
	PerSecond float64
	// Rates are inferences a second in up to 20 equal parts of the window, in order of time; nil
	// where the parts would be too short to tell.
	Rates []float64
	// Fairness is what the slowest stream computed divided by what the fastest one did,
	// 0 to 1; NaN for one stream, and with a rate: streams then take what comes.
	Fairness float64
	// Latency describes the times from start to end, Samples holds some of all streams, in
	// the order of streams.
	Latency stats.Summary
	Samples []float64
	// Response describes times from when an inference was due to its end, Waiting those until
	// it began; with a rate only.
	Response, Waiting stats.Summary
	ResponseSamples   []float64
	// Due is the number of inferences that were due in the window, Late that of those
	// that began when a stream became free after that, Unstarted that of those that never
	// began.
	Due, Late, Unstarted int64
	// Busy is the number of processors that worked for the process, on average; NaN where
	// the system does not tell. Busy divided by PerSecond is the processor time of an
	// inference.
	Busy float64
	// WarmupTime is the time before the window.
	WarmupTime float64
	// GC is the number of garbage collections in the window.
	GC int
	// Clock that was used.
	Clock *loop.Clock
}

func (o *Options) defaults() {
	if o.Clock == nil {
		o.Clock = loop.NewClock()
	}
	if o.MinRuns <= 0 {
		o.MinRuns = 3
		if o.Runs > 0 {
			o.MinRuns = 1
		}
	}
	if o.Time <= 0 {
		o.Time = loop.DefaultTime
		if o.Runs > 0 {
			o.Time = math.MaxInt64
		}
	}
	if o.Warmup == 0 {
		o.Warmup = 500 * time.Millisecond
	}
	if o.WarmupRuns <= 0 {
		o.WarmupRuns = 3
	}
	if o.Warmup < 0 {
		o.Warmup, o.WarmupRuns = 0, 1
	}
	switch {
	case o.awake == 0:
		o.awake = usualAwake
	case o.awake < 0:
		o.awake = 0
	}
	if o.Keep <= 0 {
		o.Keep = 4096
	}
}
