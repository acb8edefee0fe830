package loop

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/base/stats"
)

var near = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) })

// fake is a clock that moves only when told: nothing here depends on the wall clock.
type fake struct{ t int64 }

func (f *fake) clock() *Clock { return SimulatedClock(func() int64 { return f.t }, 1e-9, 50e-9) }

// takes makes work of duration d.
func (f *fake) takes(d time.Duration) func() error {
	return func() error { f.t += int64(d); return nil }
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	f := &fake{}
	after := 0
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 20, WarmupTime: 10 * time.Millisecond, WarmupRuns: 4, After: func() { after++; f.t += 1e6 }}, f.takes(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Plain) != 20 || res.Plain[0] != 0.001 || res.First != 0.001 || res.Batch != 1 {
		t.Errorf("%d samples, first run %v, batch %d", len(res.Plain), res.First, res.Batch)
	}
	// Each warm-up run takes two milliseconds including the work after it; ten runs are the
	// fewest that can be judged, five fill the time.
	if n := len(res.Warmup); n != 5 || after != n+20 {
		t.Errorf("%d warm-up runs, %d calls after", n, after)
	}
	if s := res.Stability; s.Steady == nil || !*s.Steady || s.Unstable {
		t.Errorf("verdict %+v", s)
	}
	if m := res.Latency(); m.Median != 0.001 || m.N != 20 {
		t.Errorf("latency %+v", m)
	}
	if res.Overhead().N != 0 {
		t.Error("an overhead without instruments")
	}
}

func TestWarmupGoesOnWhileItDrifts(t *testing.T) {
	t.Parallel()
	run := func(settle int) *Result {
		f := &fake{}
		n := 0
		res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 12, WarmupTime: 20 * time.Millisecond, WarmupRuns: 20}, func() error {
			f.t += 1e6
			if n < settle {
				f.t += int64(settle-n) * 1e5
			}
			n++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if r := run(0); len(r.Warmup) != 20 || !r.WarmupSteady {
		t.Errorf("steady from the start: %d warm-up runs, steady %v", len(r.Warmup), r.WarmupSteady)
	}
	if r := run(25); len(r.Warmup) <= 25 || !r.WarmupSteady || r.Plain[0] != 0.001 {
		t.Errorf("settles after 25: %d warm-up runs, steady %v, first sample %v", len(r.Warmup), r.WarmupSteady, r.Plain[0])
	}
	r := run(150)
	if len(r.Warmup) != 60 || r.WarmupSteady {
		t.Errorf("never settles: %d warm-up runs, steady %v", len(r.Warmup), r.WarmupSteady)
	}
	if s := r.Stability; s.Steady == nil || *s.Steady {
		t.Errorf("never settles: verdict %+v", s)
	}
}

func TestInterleaving(t *testing.T) {
	t.Parallel()
	f := &fake{}
	// The machine slows down all the time; profiling costs 0.1 ms.
	n := 0
	work := func(extra int64) func() error {
		return func() error { n++; f.t += 10e6 + int64(n)*1000 + extra; return nil }
	}
	profiled := 0
	res, err := Measure(t.Context(), Options{
		Clock: f.clock(), Runs: 40, WarmupRuns: -1, WarmupTime: -1,
		Instrumented: work(100_000), AfterInstrumented: func(bool) { profiled++ },
	}, work(0))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Plain) != 40 || len(res.Profiled) != 40 || profiled != 40 {
		t.Errorf("%d plain and %d instrumented samples, %d calls after", len(res.Plain), len(res.Profiled), profiled)
	}
	var order []bool
	for _, g := range res.Groups[:8] {
		order = append(order, g.Instrumented)
	}
	if d := cmp.Diff([]bool{false, true, true, false, false, true, true, false}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	o := res.Overhead()
	if o.N == 0 || math.Abs(o.Median-100e-6) > 1e-9 {
		t.Errorf("overhead %+v, want 0.1 ms", o)
	}
}

func TestShortRunsAreGrouped(t *testing.T) {
	t.Parallel()
	f := &fake{}
	calls := 0
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 10, WarmupTime: time.Microsecond}, func() error { calls++; f.t += 100; return nil })
	if err != nil {
		t.Fatal(err)
	}
	// 100 x 50 ns is 5 µs: fifty runs of 100 ns.
	if res.Batch != 50 || len(res.Plain) != 10 || calls != len(res.Warmup)+500 {
		t.Errorf("batch %d, %d samples, %d calls", res.Batch, len(res.Plain), calls)
	}
	if math.Abs(res.Plain[3]-100e-9) > 1e-15 {
		t.Errorf("sample %v", res.Plain[3])
	}
}

func TestTimeBudget(t *testing.T) {
	t.Parallel()
	f := &fake{}
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Time: 50 * time.Millisecond, WarmupRuns: 1, WarmupTime: -1}, f.takes(10*time.Millisecond))
	if err != nil || len(res.Plain) != 5 {
		t.Errorf("%d samples in the time of five, %v", len(res.Plain), err)
	}
	res, err = Measure(t.Context(), Options{Clock: f.clock(), Time: time.Millisecond, MinRuns: 4, WarmupRuns: 1, WarmupTime: -1}, f.takes(10*time.Millisecond))
	if err != nil || len(res.Plain) != 4 {
		t.Errorf("%d samples, want the four that there must be, %v", len(res.Plain), err)
	}
	fast := SimulatedClock(func() int64 { return f.t }, 1e-9, 1e-9)
	res, err = Measure(t.Context(), Options{Clock: fast, Time: time.Second, WarmupRuns: 10, WarmupTime: -1}, f.takes(time.Microsecond))
	if err != nil || len(res.Plain) < maxSamples || len(res.Plain) > maxSamples+2000 || res.Batch != 5 {
		t.Errorf("%d samples of %d runs, want about %d of 5, %v", len(res.Plain), res.Batch, maxSamples, err)
	}
}

func TestCancelKeepsSamples(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{}
	n := 0
	res, err := Measure(ctx, Options{Clock: f.clock(), Runs: 100, WarmupRuns: 1, WarmupTime: -1}, func() error {
		f.t += 1e6
		if n++; n == 8 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || len(res.Plain) != 7 {
		t.Errorf("%d samples, %v", len(res.Plain), err)
	}
	res, err = Measure(ctx, Options{Clock: f.clock()}, f.takes(1))
	if !errors.Is(err, context.Canceled) || res == nil || res.Latency().N != 0 || !math.IsNaN(res.First) {
		t.Errorf("cancelled before the start: %+v, %v", res, err)
	}
}

// TestInterleaved: others measure between the rounds of four groups. Their time is not part of this
// measurement, and the machine's speed is measured again after it.
func TestInterleaved(t *testing.T) {
	t.Parallel()
	f := &fake{}
	turns := 0
	o := Options{
		Clock: f.clock(), Time: 100 * time.Millisecond, WarmupRuns: 1, WarmupTime: -1, Instrumented: f.takes(time.Millisecond), Reference: func() { f.t += 1e5 },
		Turn: func(context.Context) error { turns++; f.t += 1e12; return nil },
	}
	res, err := Measure(t.Context(), o, f.takes(time.Millisecond))
	if err != nil || turns < 2 || len(res.Groups) < 4*turns-3 || len(res.Groups) > 4*turns || len(res.Plain) < 20 {
		t.Fatalf("%d turns, %d groups, %d runs, %v", turns, len(res.Groups), len(res.Plain), err)
	}
	if want := len(res.Groups) + turns; len(res.Slots) != want {
		t.Errorf("%d stretches of the loop, want %d", len(res.Slots), want)
	}
	for i, g := range res.Groups {
		if want := i + i/4; g.Slot != want {
			t.Errorf("group %d is beside stretch %d, want %d", i, g.Slot, want)
		}
	}
	refused := errors.New("no more turns")
	o.Turn = func(context.Context) error { return refused }
	if res, err := Measure(t.Context(), o, f.takes(time.Millisecond)); !errors.Is(err, refused) || len(res.Groups) != 0 {
		t.Errorf("%v, %d groups", err, len(res.Groups))
	}
}

func TestErrorsOfTheWork(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, at := range []int{1, 3, 6} {
		f := &fake{}
		n := 0
		res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 10, WarmupRuns: 3, WarmupTime: -1}, func() error {
			f.t += 1e6
			if n++; n == at {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) || res == nil || len(res.Plain) != max(0, at-4) {
			t.Errorf("broken at %d: %v, %d samples", at, err, len(res.Plain))
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	f := &fake{}
	var seen []float64
	_, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 10, WarmupRuns: 1, WarmupTime: -1, Progress: func(x float64) { seen = append(seen, x) }}, f.takes(200*time.Millisecond))
	if err != nil || len(seen) != 10 || seen[9] != 1 || seen[0] != 0.1 {
		t.Errorf("%v, %v", seen, err)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	c := NewClock()
	if c.Cost <= 0 || c.Resolution <= 0 || c.Cost > 1e-3 || c.Resolution > 0.1 {
		t.Errorf("cost %v s, resolution %v s", c.Cost, c.Resolution)
	}
	if a, b := c.Now(), c.Now(); b < a {
		t.Errorf("runs backwards: %d, %d", a, b)
	}
	s := SimulatedClock(nil, 1e-6, 1e-8)
	for _, tt := range []struct {
		each float64
		want int
	}{{1, 1}, {1e-4, 1}, {1e-5, 10}, {0, 1 << 20}} {
		if got := s.Batch(tt.each); got != tt.want {
			t.Errorf("Batch(%v) = %d, want %d", tt.each, got, tt.want)
		}
	}
	if m := c.EventCost(); m.Median <= 0 || m.N != 101 {
		t.Errorf("an event costs %+v", m)
	}
	f := &fake{}
	if got := f.clock().PerCall(10, 2, func() { f.t += 7 }); !cmp.Equal(got, []float64{7e-9, 7e-9}, near) {
		t.Errorf("PerCall = %v", got)
	}
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	r := NewRecorder(2, 3)
	if len(r.Samples(0)) != 0 {
		t.Error("samples of nothing")
	}
	r.Add([]int64{10, 30}, 40, false)
	r.Add([]int64{30, 10}, 40, false)
	r.Add([]int64{20, 20}, 60, false)
	if d := cmp.Diff([]float64{10e-9, 30e-9, 20e-9}, r.Samples(0), near); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]float64{40e-9, 40e-9, 60e-9}, r.Walls(), near); d != "" {
		t.Errorf("wall times (-want +got):\n%s", d)
	}
	if r.Sampled() || r.Runs() != 3 {
		t.Errorf("%d runs, sampled: %v", r.Runs(), r.Sampled())
	}
}

func TestRecorderSamplesLongSeries(t *testing.T) {
	t.Parallel()
	r := NewRecorder(1, 100)
	const runs = 10_000
	for i := range runs {
		r.Add([]int64{int64(i)}, int64(i), false)
	}
	s := r.Samples(0)
	if len(s) != 100 || !r.Sampled() || r.Runs() != runs {
		t.Fatalf("%d samples of %d runs", len(s), r.Runs())
	}
	for i := 1; i < len(s); i++ {
		if s[i] <= s[i-1] {
			t.Fatal("not in order of time")
		}
	}
	if m := stats.Median(s); m < 3500e-9 || m > 6500e-9 {
		t.Errorf("median of the sample %v", m)
	}
}

func TestRecorderDoesNotAllocate(t *testing.T) {
	r := NewRecorder(50, 10)
	times := make([]int64, 50)
	if n := testing.AllocsPerRun(100, func() { r.Add(times, 1, false) }); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func TestAllocatedBytes(t *testing.T) { // not parallel: others allocate too
	f := &fake{}
	var keep []byte
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 20, WarmupRuns: 1, WarmupTime: -1}, func() error {
		f.t += 1e6
		keep = make([]byte, 1<<20)
		return nil
	})
	if err != nil || len(keep) == 0 || res.AllocatedBytes < 1<<20 || res.AllocatedBytes > 1<<21 {
		t.Errorf("%v bytes a run, want about a megabyte, %v", res.AllocatedBytes, err)
	}
}

func TestBinding(t *testing.T) {
	t.Parallel()
	f := &fake{}
	bound := 0
	bind := func() (func(), error) { bound++; return func() { bound-- }, nil }
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 3, WarmupRuns: 1, WarmupTime: -1, Bind: bind}, func() error {
		f.t += 1e6
		if bound != 1 {
			t.Errorf("bound %d times during a run", bound)
		}
		return nil
	})
	if err != nil || !res.Pinned || res.PinError != nil || bound != 0 {
		t.Errorf("pinned %v, %v, %v; bound %d times after it", res.Pinned, res.PinError, err, bound)
	}
	broken := errors.New("broken")
	res, err = Measure(t.Context(), Options{Clock: f.clock(), Runs: 1, WarmupRuns: 1, WarmupTime: -1, Bind: func() (func(), error) { return nil, broken }}, f.takes(time.Millisecond))
	if err != nil || res.Pinned || !errors.Is(res.PinError, broken) || len(res.Plain) != 1 {
		t.Errorf("could not be bound: %v, %v, %v", res.Pinned, res.PinError, err)
	}
}

// TestApart: with two copies of a model each switch leaves the caches with the other copy's data.
// The first run after it does not count, in either direction and after other measurements, and
// the instrumented runs get no more time than the plain ones.
func TestApart(t *testing.T) {
	const usual, cold, instrumented = 1_000_000, 5_000_000, 4_000_000
	now := int64(0)
	last, calls := "", 0
	run := func(copy string, each int64) func() error {
		return func() error {
			calls++
			if now += each; last != copy {
				now += cold
			}
			last = copy
			return nil
		}
	}
	turns := 0
	o := Options{
		Clock: SimulatedClock(func() int64 { return now }, 1e-9, 1e-9), Time: 2 * time.Second, Instrumented: run("profiled", instrumented), Apart: true, KeepGC: true,
		Turn: func(context.Context) error { turns++; last = "others"; return nil },
	}
	r, err := Measure(t.Context(), o, run("plain", usual))
	if err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]struct {
		samples []float64
		want    float64
	}{"plain": {r.Plain, usual}, "instrumented": {r.Profiled, instrumented}} {
		for _, x := range s.samples {
			if x != s.want/1e9 {
				t.Fatalf("%s: a sample of %v s among those of %v s", what, x, s.want/1e9)
			}
		}
	}
	if len(r.Plain) < 2*len(r.Profiled) || len(r.Profiled) < 100 || turns < 20 || calls <= len(r.Plain)+len(r.Profiled) {
		t.Errorf("%d plain and %d instrumented samples in %d turns, %d runs", len(r.Plain), len(r.Profiled), turns, calls)
	}
}
