package loadgen

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opmeter/opmeter/internal/measure/loop"
)

// Streams of these tests sleep in simulated time that passes only while all of them sleep:
// results follow from the numbers alone.

// clock reads that time, to the nanosecond.
func clock() *loop.Clock {
	begin := time.Now()
	return loop.SimulatedClock(func() int64 { return int64(time.Since(begin)) }, 1e-9, 1e-9)
}

func takes(d time.Duration) func() error {
	return func() error { time.Sleep(d); return nil }
}

// near allows for the rounding of some thousand floating-point additions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// drive runs streams in simulated time.
func drive(t *testing.T, o Options, streams ...func() error) (r *Result, err error) {
	t.Helper()
	release, err := loop.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	synctest.Test(t, func(t *testing.T) {
		o.Clock, o.Leased, o.awake = clock(), true, -1
		r, err = Run(t.Context(), o, streams)
	})
	return r, err
}

func TestThroughput(t *testing.T) {
	t.Parallel()
	// 10 and 25 ms in a window of a second, which opens when the slower one has had three, after
	// 75 ms: the faster one is in the middle of its eighth then.
	r, err := drive(t, Options{Time: time.Second, Warmup: 1, Spans: 5}, takes(10*time.Millisecond), takes(25*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if !near(r.Window, 1) || !near(r.PerSecond, 140) || !near(r.Inferences, 140) || !near(r.Fairness, 0.4) {
		t.Errorf("%v s, %v a second, fairness %v", r.Window, r.PerSecond, r.Fairness)
	}
	if !near(r.WarmupTime, 0.075) || r.GC != 0 {
		t.Errorf("window opened after %v s", r.WarmupTime)
	}
	for i, want := range []struct {
		inferences, took float64
		n                int64
	}{{100, 0.010, 100}, {40, 0.025, 40}} {
		s := r.Streams[i]
		if !near(s.Inferences, want.inferences) || !near(s.Latency.Median, want.took) || !near(s.Latency.Max, want.took) || s.Latency.N != want.n {
			t.Errorf("stream %d: %v inferences, %+v", i, s.Inferences, s.Latency)
		}
		if len(s.Spans) != 5 || s.Spans[0].Start < r.Open || !near(float64(s.Spans[4].End-s.Spans[4].Start)/1e9, want.took) {
			t.Errorf("stream %d: spans %v", i, s.Spans)
		}
	}
	// 140 times: p90 and p95, for p99 there are too few.
	if r.Latency.N != 140 || !near(r.Latency.Mean, (100*0.010+40*0.025)/140) || r.Latency.P95 == nil || !near(*r.Latency.P95, 0.025) || r.Latency.P99 != nil {
		t.Errorf("all: %+v", r.Latency)
	}
	if r.Response.N != 0 || r.Due != 0 {
		t.Errorf("a response without a rate: %+v", r.Response)
	}
}

// TestEdges: inferences that cross an edge of the window count by the fraction within.
func TestEdges(t *testing.T) {
	t.Parallel()
	// The first stream opens the window at 300 ms, during the second one's fourth inference.
	r, err := drive(t, Options{Time: time.Second, Warmup: 1, MinRuns: 1}, takes(100*time.Millisecond), takes(70*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if !near(r.Window, 1) || !near(r.Streams[0].Inferences, 10) || !near(r.Streams[1].Inferences, 1000./70) {
		t.Errorf("%v s: %v and %v inferences", r.Window, r.Streams[0].Inferences, r.Streams[1].Inferences)
	}
	// The second one begins at 350 ms and every 70 ms until 1260 ms.
	if n := r.Streams[1].Latency.N; n != 14 {
		t.Errorf("%d begin in the window, want 14", n)
	}
}

// TestSlow: the window grows until each stream has its minimum number.
func TestSlow(t *testing.T) {
	t.Parallel()
	r, err := drive(t, Options{Time: time.Second, Warmup: -1}, takes(time.Second), takes(250*time.Millisecond))
	if err != nil || !near(r.Window, 3) || r.Streams[0].Latency.N != 3 || !near(r.PerSecond, 5) {
		t.Errorf("%v s, %v a second, %v", r.Window, r.PerSecond, err)
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	r, err := drive(t, Options{Runs: 30, Warmup: -1}, takes(10*time.Millisecond), takes(20*time.Millisecond))
	if err != nil || !near(r.Window, 0.2) || !near(r.Inferences, 30) || !near(r.PerSecond, 150) {
		t.Errorf("%v s, %v inferences, %v", r.Window, r.Inferences, err)
	}
}

// TestRunsOfAll: a stream that is in an inference while others reach the number completes one of
// its own before the window closes.
func TestRunsOfAll(t *testing.T) {
	t.Parallel()
	// The window opens at 10 ms. The second stream began one at 1 ms that ends at 51 ms; the
	// first has completed two by 30 ms.
	next := time.Millisecond
	slow := func() error { time.Sleep(next); next = 50 * time.Millisecond; return nil }
	r, err := drive(t, Options{Runs: 2, Warmup: -1, WarmupRuns: -1}, takes(10*time.Millisecond), slow)
	if err != nil || r.Streams[1].Latency.N != 1 || !near(r.Window, 0.091) {
		t.Errorf("%v s, %d inferences of the second stream, %v", r.Window, r.Streams[1].Latency.N, err)
	}
}

// TestFixedRate: streams that keep up wait for scheduled inferences.
func TestFixedRate(t *testing.T) {
	t.Parallel()
	r, err := drive(t, Options{Rate: 50, Time: time.Second, Warmup: -1}, takes(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if r.Due != 50 || r.Late != 0 || r.Unstarted != 0 || !near(r.PerSecond, 50) || r.Response.N != 50 || !near(r.Response.Max, 0.010) || r.Waiting.Max != 0 {
		t.Errorf("%d due, %d late, %d unstarted, %v a second, response %+v", r.Due, r.Late, r.Unstarted, r.PerSecond, r.Response)
	}
	// 25 ms of work every 20 ms need two streams.
	r, err = drive(t, Options{Rate: 50, Time: time.Second, Warmup: -1}, takes(25*time.Millisecond), takes(25*time.Millisecond))
	if err != nil || r.Late != 0 || !near(r.Response.Max, 0.025) || !math.IsNaN(r.Fairness) {
		t.Errorf("%d late, response %+v, fairness %v, %v", r.Late, r.Response, r.Fairness, err)
	}
}

// TestOverload includes waiting inferences. Inference k is scheduled at 5k ms, begins at 10k ms
// and ends at 10k+10: it waits for 5k ms. In the first second 100 of 200 begin.
func TestOverload(t *testing.T) {
	t.Parallel()
	r, err := drive(t, Options{Rate: 200, Time: time.Second, Warmup: -1}, takes(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if r.Due != 200 || r.Late != 99 || r.Unstarted != 100 || !near(r.PerSecond, 100) {
		t.Errorf("%d due, %d late, %d unstarted, %v a second", r.Due, r.Late, r.Unstarted, r.PerSecond)
	}
	if !near(r.Response.Max, 0.010+99*0.005) || !near(r.Response.Mean, 0.010+99./2*0.005) || !near(r.Waiting.Max, 99*0.005) || r.Waiting.Min != 0 || !near(r.Latency.Max, 0.010) {
		t.Errorf("response %+v, waiting %+v", r.Response, r.Waiting)
	}
	// All scheduled inferences run, however long that takes.
	r, err = drive(t, Options{Rate: 1000, Runs: 40, Warmup: -1}, takes(time.Millisecond))
	if err != nil || r.Due != 40 || r.Response.N != 40 || r.Unstarted != 0 || !near(r.Window, 0.04) {
		t.Errorf("%d due, %+v, %v", r.Due, r.Response, err)
	}
}

// TestBefore: the preparation of a cold inference is not part of its time.
func TestBefore(t *testing.T) {
	t.Parallel()
	r, err := drive(t, Options{Time: time.Second, Warmup: -1, Before: func(int) error { time.Sleep(40 * time.Millisecond); return nil }}, takes(10*time.Millisecond))
	if err != nil || !near(r.Latency.Max, 0.010) || r.Latency.N != 20 || !near(r.WarmupTime, 0.05) {
		t.Errorf("%+v, %v", r.Latency, err)
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	release, err := loop.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, 50} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(355*time.Millisecond, cancel)
			r, err := Run(ctx, Options{Clock: clock(), Leased: true, awake: -1, Rate: rate, Time: time.Hour, Warmup: -1}, []func() error{takes(10 * time.Millisecond), takes(20 * time.Millisecond)})
			if !errors.Is(err, context.Canceled) || r == nil || !(r.Window > 0.2 && r.Window < 0.4) {
				t.Fatalf("rate %v: %v, %+v", rate, err, r)
			}
			// unfinished inferences are omitted
			if want := map[float64]float64{0: 150, 50: 50}[rate]; math.Abs(r.PerSecond-want) > 0.1*want {
				t.Errorf("rate %v: %v a second, want about %v", rate, r.PerSecond, want)
			}
		}
		// Without a window there are no figures.
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		r, err := Run(ctx, Options{Clock: clock(), Leased: true}, []func() error{takes(10 * time.Millisecond)})
		if !errors.Is(err, context.Canceled) || r.Latency.N != 0 || !math.IsNaN(r.PerSecond) || len(r.Streams) != 1 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, rate := range []float64{0, 100} {
		n := 0
		r, err := drive(t, Options{Rate: rate, Time: time.Second, Warmup: -1}, takes(10*time.Millisecond), func() error {
			time.Sleep(10 * time.Millisecond)
			if n++; n == 30 {
				return boom
			}
			return nil
		})
		if !errors.Is(err, boom) || r.Latency.N == 0 || !(r.Window < 1) {
			t.Errorf("rate %v: %v, %+v", rate, err, r.Latency)
		}
	}
	// A stream that fails before it is warm does not block the others.
	r, err := drive(t, Options{Time: time.Second}, takes(10*time.Millisecond), func() error { panic("oh") })
	if err == nil || err.Error() != "stream 1: internal error: oh" || r.Latency.N != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	for _, o := range []Options{{Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}} {
		if _, err := Run(t.Context(), o, []func() error{takes(1)}); err == nil {
			t.Errorf("%+v goes", o)
		}
	}
	if _, err := Run(t.Context(), Options{}, nil); err == nil {
		t.Error("no streams")
	}
	if _, err := Run(t.Context(), Options{Leased: true}, make([]func() error, MaxStreams+1)); err == nil {
		t.Error("too many streams")
	}
}

// TestMany: of long series a selection is kept, in proportion to each stream's share.
func TestMany(t *testing.T) {
	t.Parallel()
	r, err := drive(t, Options{Time: time.Second, Warmup: -1, Keep: 100}, takes(time.Millisecond), takes(4*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if r.Latency.N != 1250 || r.Latency.Kept != 125 || !near(r.Latency.Mean, 2./1250) || r.Latency.Median != 0.001 || r.Latency.Max != 0.004 {
		t.Errorf("%+v", r.Latency)
	}
	slow := 0
	for _, v := range r.Samples {
		if v > 0.002 {
			slow++
		}
	}
	if slow != 25 {
		t.Errorf("%d of %d are the slower stream's, want 25", slow, len(r.Samples))
	}
}

// TestThreads: each stream has its own thread and the settings of Around.
func TestThreads(t *testing.T) {
	t.Parallel()
	var around, bound atomic.Int32
	o := Options{
		Runs: 40, Warmup: -1,
		Around: func(_ int, body func() error) error { around.Add(1); defer around.Add(-1); return body() },
		Bind:   func(int) (func(), error) { bound.Add(1); return func() { bound.Add(-1) }, nil },
	}
	check := func() error {
		if around.Load() < 1 || bound.Load() < 1 {
			return errors.New("nothing is in force")
		}
		return nil
	}
	r, err := Run(t.Context(), o, []func() error{check, check})
	if err != nil || !r.Streams[0].Pinned || around.Load() != 0 || bound.Load() != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	o.Bind = func(int) (func(), error) { return nil, errors.New("no") }
	if r, err = Run(t.Context(), o, []func() error{func() error { return nil }}); err != nil || r.Streams[0].Pinned || r.Streams[0].PinError == nil {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestDoesNotAllocate(t *testing.T) { // not parallel: others allocate too
	var before, after runtime.MemStats
	n := 0
	_, err := Run(t.Context(), Options{Runs: 50_000, Warmup: -1, Spans: 10}, []func() error{func() error {
		switch n++; n {
		case 1000:
			runtime.ReadMemStats(&before)
		case 41_000:
			runtime.ReadMemStats(&after)
		}
		return nil
	}})
	// The ticker's goroutine may allocate; inferences may not.
	if d := after.Mallocs - before.Mallocs; err != nil || d > 200 {
		t.Errorf("%d allocations in 40,000 inferences, %v", d, err)
	}
}

func TestEmptier(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cache, want int64 }{{0, 32 << 20}, {20 << 20, 40 << 20}} {
		e := NewEmptier(tt.cache)
		if e.Bytes() != tt.want {
			t.Errorf("a cache of %d: walks through %d bytes, want %d", tt.cache, e.Bytes(), tt.want)
		}
		e.Empty()
		for i := 0; i < len(e.lines); i += 8 {
			if e.lines[i] != 3 { // once with 1, once with 2
				t.Fatalf("line %d was left out", i/8)
			}
		}
	}
}

// Inferences during which the system took the processor away are marked, those of several streams
// are not told apart.
func TestDisturbed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		each    int64 // preemptions in an inference
		streams int
		want    int // marks of samples, -1 for none
	}{{"undisturbed", 0, 1, 0}, {"disturbed", 1, 1, 20}, {"streams", 1, 2, -1}} {
		var preemptions atomic.Int64
		f := func() error { preemptions.Add(c.each); return nil }
		o := Options{Runs: 20, Warmup: -1, Parallel: true, Usage: func() (int64, int64) { return 0, preemptions.Load() }}
		r, err := Run(t.Context(), o, []func() error{f, f}[:c.streams])
		if err != nil {
			t.Fatal(err)
		}
		if c.want < 0 {
			if r.Disturbed != nil {
				t.Errorf("%s: %v", c.name, r.Disturbed)
			}
			continue
		}
		n := 0
		for _, hit := range r.Disturbed {
			if hit {
				n++
			}
		}
		if len(r.Disturbed) != len(r.Samples) || n != min(c.want, len(r.Samples)) {
			t.Errorf("%s: %d of %d marks for %d samples", c.name, n, len(r.Disturbed), len(r.Samples))
		}
	}
}
