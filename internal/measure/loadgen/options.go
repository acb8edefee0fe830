package loadgen

import (
	"math"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loop"
)

// Limits of the options.
const (
	// MaxStreams is the maximum number of streams.
	MaxStreams = 1024
	// MaxRate is the maximum number of inferences per second.
	MaxRate = 1e7
)

// Options says how streams are run. The zero value runs each at full speed for two seconds after
// half a second of warm-up.
type Options struct {
	// Clock to use; nil makes a new one.
	Clock *loop.Clock
	// Rate is the number of inferences per second that are scheduled for all streams together.
	// With 0 each stream starts the next inference when its last one has ended.
	Rate float64
	// Runs is the number of inferences of all streams together, more if one of them has not had
	// MinRuns by then, 0 for as many as fit Time. With a rate it is the number of scheduled
	// inferences.
	Runs int
	// Time is the length of the window; 0 means 2 s, or no bound if Runs is set. Without a rate
	// the window grows until each stream has MinRuns.
	Time time.Duration
	// MinRuns is the minimum number of inferences of each stream without a rate; 0 means 3, or 1
	// if Runs is set.
	MinRuns int
	// Warmup is the minimum warm-up time of each stream; 0 means half a second, negative one
	// inference. WarmupRuns is the minimum number of inferences, 0 means 3.
	Warmup     time.Duration
	WarmupRuns int
	// Before runs before each inference of a stream, on its thread and outside the timed region,
	// for example to flush caches. May be nil.
	Before func(stream int) error
	// Bind binds the calling thread to a processor and returns a function that restores it. A
	// failure is reported and does not stop the measurement. May be nil.
	Bind func(stream int) (restore func(), err error)
	// Around wraps body on the stream's thread, for settings that must hold while a stream runs.
	// May be nil.
	Around func(stream int, body func() error) error
	// Keep is the maximum number of times kept per stream; 0 means 4096.
	Keep int
	// Spans is the maximum number of timeline spans kept per stream, the first ones; 0 keeps
	// none.
	Spans int
	// ProcessTime reads the CPU time of the process in nanoseconds; nil if the system does not
	// provide it.
	ProcessTime func() int64
	// Usage and Parallel are as in internal/measure/loop. With Usage, which is for a single stream,
	// [Result.Disturbed] is known.
	Usage    func() (cpu, preemptions int64)
	Parallel bool
	// HeapGrowth is by how many bytes memory may grow while garbage collection is off, 0 for 2 GiB.
	HeapGrowth int64
	// Leased says that the caller holds the lease of internal/measure/loop.
	Leased bool
	// Over is called when the last stream has ended, before the results are evaluated. May be
	// nil.
	Over func()
	// Progress is called with the progress of the window from 0 to 1, ten times per second, on
	// its own goroutine. May be nil.
	Progress func(fraction float64)

	// awake is how long before a scheduled inference streams wait actively, less than 0 for tests
	// in which sleeping is exact.
	awake time.Duration
}

// Span is the start and end of an inference, in nanoseconds of the clock.
type Span struct{ Start, End int64 }

// Stream holds the results of one stream.
type Stream struct {
	// Inferences is the number computed within the window, including fractions at the edges.
	Inferences float64
	// Latency summarises the times from start to end of the inferences that began in the window,
	// in seconds.
	Latency stats.Summary
	// Samples holds these times in order, all or a selection.
	Samples []float64
	// Stability judges Samples.
	Stability stats.Stability
	// Spans holds the first inferences of the window.
	Spans []Span
	// WarmupRuns is the number of inferences before the window.
	WarmupRuns int
	// Pinned says whether its thread was bound as requested, PinError why not.
	Pinned   bool
	PinError error
}

// Result holds the results of [Run]. Times are in seconds. Unknown values are NaN, or a summary
// of no samples.
type Result struct {
	Streams []Stream
	// Open and Close bound the window, in nanoseconds of the clock; Window is its length.
	Open, Close int64
	Window      float64
	// Inferences is the number within the window, fractional at the edges.
	Inferences float64
	// PerSecond is Inferences divided by Window, NaN without a window.
	PerSecond float64
	// Rates are inferences per second in up to 20 equal parts of the window, in chronological
	// order; nil if the parts would be too short.
	Rates []float64
	// Fairness is the number of inferences of the slowest stream divided by that of the fastest,
	// 0 to 1. It is NaN for one stream, and with a rate, where streams take inferences as they
	// come.
	Fairness float64
	// Latency summarises the times from start to end, Samples holds some of all streams, in the
	// order of streams.
	Latency stats.Summary
	Samples []float64
	// Disturbed says of each sample whether the system reported a disturbance; nil if unknown.
	Disturbed []bool
	// Response summarises the times from when an inference was scheduled to its end, Waiting the
	// times until its start; with a rate only.
	Response, Waiting stats.Summary
	ResponseSamples   []float64
	// Due is the number of inferences scheduled in the window, Late the number of those that
	// started after waiting for a free stream, Unstarted of those that never started.
	Due, Late, Unstarted int64
	// Busy is the average number of processors that the process used; NaN if the system does not
	// provide it. Busy divided by PerSecond is the CPU time of an inference.
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
