package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/loop"
)

// driver is one run of all streams. Times are in nanoseconds of the clock; 0 means unknown, a
// value that the clock never has here.
type driver struct {
	o       Options
	clock   *loop.Clock
	zero    int64 // before any reading of the driver, so that 0 means unknown
	streams []*stream

	warm    sync.WaitGroup
	open    atomic.Int64 // the window opens
	enough  atomic.Int64 // each stream has its minimum number of inferences
	close   atomic.Int64 // the window closes
	stop    atomic.Bool  // streams end immediately
	pending atomic.Int64 // streams with unfinished inferences of the window
	reached atomic.Int64 // streams with their minimum number
	done    atomic.Int64 // inferences completed in the window

	dispatch chan struct{} // held by the stream that waits for the next inference
	next     int64         // number of the next inference
	late     int64

	fault sync.Once
	err   error
}

// stream is the state of a running stream.
type stream struct {
	d      *driver
	number int
	f      func() error

	took, response, waiting *stats.Reservoir
	spans                   []Span
	whole                   int64          // inferences that began and ended in the window
	parts                   float64        // fractions of inferences at the edges
	tally                   throughputBins // all inferences over time
	count                   int            // inferences that ended in the window or after
	warmups                 int
	began                   int64          // start of the current inference, 0 for none
	hit                     bool           // the system disturbed the last inference
	hits                    map[int64]bool // places of disturbed inferences among those of took
	last                    int64          // end of the last inference
	pinned                  bool
	pinErr                  error
}

// Run runs the streams until the window is over, and returns the results. Streams are functions
// that compute one inference each. Each is called by one goroutine, which is locked to its
// thread. The error is that of a stream, which ends all others, or the context's if it ended
// first. The result holds what was measured until then and is never nil. Streams must return soon
// after the context ends.
func Run(ctx context.Context, o Options, streams []func() error) (*Result, error) {
	o.defaults()
	switch {
	case len(streams) == 0 || len(streams) > MaxStreams:
		return empty(&o), fmt.Errorf("%d streams: use 1 to %d", len(streams), MaxStreams)
	case !(o.Rate >= 0 && o.Rate <= MaxRate):
		return empty(&o), fmt.Errorf("rate %v per second: use 0 to %g", o.Rate, MaxRate)
	case o.Rate > 0 && o.Time == math.MaxInt64 && o.Runs == 0:
		return empty(&o), errors.New("a rate needs an end: set the time or the number of inferences")
	}
	if !o.Leased {
		release, err := loop.Lease(ctx)
		if err != nil {
			return empty(&o), err
		}
		defer release()
	}
	if err := ctx.Err(); err != nil {
		return empty(&o), err
	}
	d := &driver{o: o, clock: o.Clock, zero: o.Clock.Now() - 1, dispatch: make(chan struct{}, 1)}
	for i, f := range streams {
		d.streams = append(d.streams, &stream{
			d: d, number: i, f: f, spans: make([]Span, 0, o.Spans),
			took: stats.NewReservoir(o.Keep), response: stats.NewReservoir(d.keptWaits()), waiting: stats.NewReservoir(d.keptWaits()),
		})
	}
	return d.run(ctx)
}

// keptWaits returns how many waiting times are kept per stream.
func (d *driver) keptWaits() int {
	if d.o.Rate > 0 {
		return d.o.Keep
	}
	return 1
}

// now reads the clock; it is never 0.
func (d *driver) now() int64 { return d.clock.Now() - d.zero }

func (d *driver) run(ctx context.Context) (*Result, error) {
	runtime.GC()
	defer loop.Quiet(d.o.HeapGrowth)()
	gcs := collections()
	n := len(d.streams)
	d.warm.Add(n)
	d.pending.Store(int64(n))
	// Streams that wait for a scheduled inference must notice the end of the context.
	unhook := context.AfterFunc(ctx, func() { d.halt(ctx.Err()) })
	defer unhook()
	var ended sync.WaitGroup
	start := d.now()
	for _, s := range d.streams {
		ended.Go(s.thread)
	}
	d.warm.Wait()
	busy := meter{read: d.o.ProcessTime, d: d}
	busy.begin()
	if !d.stop.Load() {
		d.openWindow()
	}
	warmup := d.open.Load() - start
	watched := make(chan struct{})
	over := make(chan struct{})
	go func() { defer close(watched); d.watch(over, &busy) }()
	ended.Wait()
	close(over)
	<-watched
	if d.o.Over != nil {
		d.o.Over()
	}
	busy.end() // if nobody saw the window close
	r := d.result(busy.busy())
	if d.open.Load() != 0 {
		r.WarmupTime = float64(warmup) / 1e9
	}
	r.GC = int(collections() - gcs)
	return r, d.err
}

// openWindow opens the window now. With a rate and a number of inferences, or a time, its end is
// known; otherwise streams determine it.
func (d *driver) openWindow() {
	now := d.now()
	if d.o.Rate > 0 {
		now += int64(time.Millisecond) // streams poll whether it is open
		length := float64(d.o.Time)
		if d.o.Runs > 0 {
			length = min(length, float64(d.o.Runs)/d.o.Rate*1e9)
		}
		d.close.Store(now + max(1, int64(min(length, math.MaxInt64/4))))
	}
	d.open.Store(now)
}

// watch reports progress and reads the CPU time when the window closes.
func (d *driver) watch(over <-chan struct{}, busy *meter) {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for turn := 1; ; turn++ {
		select {
		case <-over:
			return
		case <-t.C:
		}
		now, open, end := d.now(), d.open.Load(), d.close.Load()
		if end != 0 && now >= end {
			busy.end()
		}
		if d.o.Progress == nil || turn%5 != 0 || open == 0 {
			continue
		}
		f := 0.0
		if d.o.Time < math.MaxInt64 {
			f = float64(now-open) / float64(d.o.Time)
		}
		if d.o.Runs > 0 {
			f = max(f, float64(d.done.Load())/float64(d.o.Runs))
		}
		d.o.Progress(min(1, f))
	}
}

// halt ends all streams; the first error is kept.
func (d *driver) halt(err error) {
	d.fault.Do(func() { d.err = err })
	d.stop.Store(true)
}

// meter reads the CPU time at both ends of the window.
type meter struct {
	read         func() int64
	d            *driver
	from, to     int64 // processor time
	begun, ended int64
}

func (m *meter) begin() {
	if m.read != nil {
		m.from, m.begun = m.read(), m.d.now()
	}
}

func (m *meter) end() {
	if m.read != nil && m.ended == 0 {
		m.to, m.ended = m.read(), m.d.now()
	}
}

// busy returns the average number of processors used.
func (m *meter) busy() float64 {
	if m.read == nil || m.ended <= m.begun {
		return math.NaN()
	}
	return float64(m.to-m.from) / float64(m.ended-m.begun)
}

func collections() uint64 {
	s := [1]metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(s[:])
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
