package loop

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/measure/estimator"
)

// TestDefaults measures fifty runs after half a second and three runs of warm-up.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		each            time.Duration
		o               Options
		warmup, samples int
	}{
		{"nothing asked for", 100 * time.Millisecond, Options{}, 5, 50},
		{"long runs", time.Second, Options{}, 3, 50},
		{"runs to the half second", 250 * time.Millisecond, Options{}, 3, 50},
		{"so many", 100 * time.Millisecond, Options{Runs: 7}, 5, 7},
		{"fewer than the least", 100 * time.Millisecond, Options{Runs: 2, MinRuns: 9, Time: time.Nanosecond}, 5, 2},
		{"the least", 100 * time.Millisecond, Options{Time: time.Nanosecond}, 5, 3},
		{"warm-up of runs", 100 * time.Millisecond, Options{WarmupRuns: 8, WarmupTime: -1}, 8, 50},
		{"warm-up of time", 100 * time.Millisecond, Options{WarmupRuns: -1, WarmupTime: 650 * time.Millisecond}, 7, 50},
		{"of both", 100 * time.Millisecond, Options{WarmupRuns: 9, WarmupTime: 200 * time.Millisecond}, 9, 50},
		{"none", 100 * time.Millisecond, Options{WarmupRuns: -1, WarmupTime: -1}, 0, 50},
		{"a time and runs", 100 * time.Millisecond, Options{Runs: 4, Time: time.Second}, 5, 4},
		{"runs and a time", 100 * time.Millisecond, Options{Runs: 40, Time: time.Second}, 5, 10},
	} {
		f := &fake{}
		c.o.Clock = f.clock()
		res, err := Measure(t.Context(), c.o, f.takes(c.each))
		if err != nil || len(res.Warmup) != c.warmup || res.WarmupRuns != c.warmup || len(res.Plain) != c.samples {
			t.Errorf("%s: %d runs of warm-up and %d samples, want %d and %d (%v)", c.name, len(res.Warmup), len(res.Plain), c.warmup, c.samples, err)
		}
		if want := float64(c.warmup) * c.each.Seconds(); !(math.Abs(res.WarmupTime-want) <= 1e-9) || c.warmup > 0 && res.First != c.each.Seconds() || c.warmup == 0 && !math.IsNaN(res.First) {
			t.Errorf("%s: %v s of warm-up, the first %v", c.name, res.WarmupTime, res.First)
		}
		if res.Clock != c.o.Clock || res.Pinned || res.PinError != nil || res.Slots != nil {
			t.Errorf("%s: %+v", c.name, res)
		}
	}
}

// TestGroups makes groups of five milliseconds of short runs, an eighth of the runs at most, and
// of one long run.
func TestGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		each  time.Duration
		runs  int
		group int
	}{
		{time.Millisecond, 80, 5},
		{2 * time.Millisecond, 80, 2},
		{5 * time.Millisecond, 80, 1},
		{20 * time.Millisecond, 80, 1},
		{time.Millisecond, 24, 3},
		{time.Millisecond, 7, 1},
		{100 * time.Microsecond, 800, 50},
		{100 * time.Microsecond, 80, 10},
	} {
		f := &fake{}
		res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: c.runs, WarmupRuns: 3, WarmupTime: -1}, f.takes(c.each))
		if err != nil || len(res.Plain) != c.runs {
			t.Fatalf("%+v: %d samples, %v", c, len(res.Plain), err)
		}
		at := 0
		for i, g := range res.Groups {
			want := min(c.group, c.runs-at)
			if g.From != at || g.To-g.From != want || g.Instrumented {
				t.Errorf("%+v: group %d is %+v, want %d runs", c, i, g, want)
			}
			if !(math.Abs(g.Took-float64(want)*c.each.Seconds()) <= 1e-12) || !math.IsNaN(g.CPU) || !math.IsNaN(g.Processor) {
				t.Errorf("%+v: group %d took %v, %v, %v", c, i, g.Took, g.CPU, g.Processor)
			}
			at = g.To
		}
	}
}

// TestInstrumentsWarmUp does exactly three instrumented runs before they count.
func TestInstrumentsWarmUp(t *testing.T) {
	t.Parallel()
	for warmup, want := range map[int]int{1: 1, 3: 3, 9: 3} {
		f := &fake{}
		n := 0
		res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 8, WarmupRuns: warmup, WarmupTime: -1, Instrumented: func() error { n++; return f.takes(10 * time.Millisecond)() }}, f.takes(10*time.Millisecond))
		if err != nil || n != want+8 || len(res.Profiled) != 8 {
			t.Errorf("%d runs of warm-up: the instruments ran %d times, want %d (%v)", warmup, n, want+8, err)
		}
	}
	broken := errors.New("broken")
	f := &fake{}
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Instrumented: func() error { return broken }}, f.takes(time.Millisecond))
	if !errors.Is(err, broken) || len(res.Warmup) != 1 || len(res.Plain) != 0 {
		t.Errorf("instruments that fail: %v, %d runs", err, len(res.Warmup))
	}
}

// TestTimes ends both passes when the time is over, once there are enough of each.
func TestTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		budget   time.Duration
		least    int
		plain, p int
	}{
		{80 * time.Millisecond, 1, 4, 4},
		{75 * time.Millisecond, 1, 4, 4},
		{70 * time.Millisecond, 1, 3, 4}, // plain, 2 instrumented, 2 plain, 2 instrumented
		{time.Nanosecond, 1, 1, 1},
		{time.Nanosecond, 2, 2, 2},
		{time.Nanosecond, 5, 5, 5},
	} {
		f := &fake{}
		res, err := Measure(t.Context(), Options{Clock: f.clock(), Time: c.budget, MinRuns: c.least, WarmupRuns: 1, WarmupTime: -1, Instrumented: f.takes(10 * time.Millisecond)}, f.takes(10*time.Millisecond))
		if err != nil || len(res.Plain) != c.plain || len(res.Profiled) != c.p {
			t.Errorf("%+v: %d and %d samples, %v", c, len(res.Plain), len(res.Profiled), err)
		}
	}
}

// TestSnapshots takes a snapshot after a second, then whenever another twentieth of the time has
// passed, at least a second.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	f := &fake{}
	var at []int
	_, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 600, WarmupRuns: 1, WarmupTime: -1, Snapshot: func(r *Result) error {
		at = append(at, len(r.Plain))
		return nil
	}}, f.takes(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	// Runs of a tenth of a second: every tenth run until 20 s, from then on a twentieth more.
	var want []int
	for last := 0; ; {
		next := last + max(10, int(math.Ceil(float64(last)/20)))
		if next > 600 {
			break
		}
		want = append(want, next)
		last = next
	}
	if !slices.Equal(at, want) {
		t.Errorf("after %v, want %v", at, want)
	}
	full := errors.New("full")
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 60, WarmupRuns: 1, WarmupTime: -1, Snapshot: func(*Result) error { return full }}, f.takes(100*time.Millisecond))
	if !errors.Is(err, full) || len(res.Plain) != 10 {
		t.Errorf("a snapshot that fails: %v after %d runs", err, len(res.Plain))
	}
}

// TestProgressParts reports progress by runs or by time, whichever is further, at most ten times
// per second.
func TestProgressParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		each time.Duration
		o    Options
		want []float64
	}{
		{"by runs", 100 * time.Millisecond, Options{Runs: 4}, []float64{0.25, 0.5, 0.75, 1}},
		{"seldom", 60 * time.Millisecond, Options{Runs: 8}, []float64{0.25, 0.5, 0.75, 1}},
		{"by time", 100 * time.Millisecond, Options{Runs: 1000, Time: 400 * time.Millisecond}, []float64{0.25, 0.5, 0.75, 1}},
		{"over", 300 * time.Millisecond, Options{Runs: 1000, Time: 400 * time.Millisecond, MinRuns: 1}, []float64{0.75, 1}},
		{"both passes", 100 * time.Millisecond, Options{Runs: 2, Instrumented: func() error { return nil }}, []float64{0.25, 1}},
	} {
		f := &fake{}
		var got []float64
		c.o.Clock, c.o.WarmupRuns, c.o.WarmupTime, c.o.Progress = f.clock(), -1, -1, func(x float64) { got = append(got, x) }
		if _, err := Measure(t.Context(), c.o, f.takes(c.each)); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRoundsUnknown measures without a warm-up: the first group, of one run, determines how many
// rounds follow it and later ones.
func TestRoundsUnknown(t *testing.T) {
	t.Parallel()
	const round = 100 * time.Microsecond
	for _, c := range []struct {
		each time.Duration
		want int // rounds after a group
	}{{time.Millisecond, 5}, {100 * time.Millisecond, 100}, {time.Second, 300}} {
		f, n := &fake{}, 0
		o := Options{Clock: f.clock(), Runs: 4, WarmupRuns: -1, WarmupTime: -1, Reference: func() { n++; f.t += int64(round) }}
		if _, err := Measure(t.Context(), o, f.takes(c.each)); err != nil {
			t.Fatal(err)
		}
		// Five to measure the time of a round, twice, and five before the first group.
		if want := 15 + 4*c.want; n != want {
			t.Errorf("runs of %v: %d rounds, want %d", c.each, n, want)
		}
	}
}

// TestRounds lets the reference loop take a tenth of the time of a group, at least five rounds
// and at most three hundred.
func TestRounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		round time.Duration
		group float64
		want  int
	}{
		{100 * time.Microsecond, 0.010, 10},
		{100 * time.Microsecond, 0.0109, 10},
		{100 * time.Microsecond, 0.004, 5},
		{100 * time.Microsecond, 0, 5},
		{100 * time.Microsecond, 0.3, 300},
		{100 * time.Microsecond, 0.31, 300},
		{100 * time.Microsecond, 1e6, 300},
		{time.Second, 1, 5},
		{0, 1, 5},
	} {
		f := &fake{}
		n := 0
		m := &measurer{clock: f.clock(), o: Options{Reference: func() { n++; f.t += int64(c.round) }}, res: &Result{}}
		if got := m.roundsFor(c.group); got != c.want || n != 5 {
			t.Errorf("%+v: %d rounds after %d, want %d", c, got, n, c.want)
		}
	}
	m := &measurer{clock: (&fake{}).clock(), res: &Result{}}
	if m.roundsFor(1) != 0 {
		t.Error("rounds without a loop")
	}
	if m.runReference(); m.res.Slots != nil {
		t.Errorf("stretches without a loop: %+v", m.res.Slots)
	}
	// A slot is the median of its rounds, by both clocks.
	f := &fake{}
	cpu := int64(0)
	takes := []int64{5, 1, 9, 3, 4}
	m = &measurer{clock: f.clock(), rounds: 5, res: &Result{}, o: Options{CPUTime: func() int64 { return cpu }, Reference: func() {
		f.t, cpu = f.t+takes[0]*1e6, cpu+takes[0]*5e5
		takes = takes[1:]
	}}}
	if m.runReference(); len(m.res.Slots) != 1 || !(math.Abs(m.res.Slots[0].Took-0.004) <= 1e-12) || !(math.Abs(m.res.Slots[0].CPU-0.002) <= 1e-12) {
		t.Errorf("%+v, want 4 and 2 ms", m.res.Slots)
	}
}

// TestPlainGroups compares what follows from groups and slots with values computed by hand.
func TestPlainGroups(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	r := &Result{
		Batch: 2, Plain: []float64{1, 2, 3, 4, 5, 6}, Profiled: []float64{7, 8},
		Groups: []Group{
			{From: 0, To: 2, Took: 10, CPU: 9.8, Processor: 12}, // two samples of two runs
			{Instrumented: true, From: 0, To: 2, Slot: 1, Took: 20, CPU: 20, Processor: 20},
			{From: 2, To: 5, Slot: 2, Took: 10, CPU: 9.7, Processor: 6},
			{From: 5, To: 6, Slot: 3, Took: 10, CPU: nan, Processor: nan},
			{From: 6, To: 6, Slot: 4, Took: 1, CPU: 1, Processor: 1},
		},
		Slots: []Slot{{1, 0.5}, {2, 1.5}, {4, 2.5}, {8, 0}, {6, 3}, {5, 5}},
	}
	near := func(what string, got, want []float64) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("processor time of a run", r.Processor(), []float64{12.0 / 4, 6.0 / 6})
	// Around the groups a round takes 1 and, if CPU time is not known, 6 and 7; then 4.
	near("speeds", r.Speeds(2), []float64{2, 2.0 / 6, 2.0 / 7, 2.0 / 4})
	near("normalised", r.AtReference(2), []float64{9.8 / 4 * 2, 9.7 / 6 * 2 / 6, 6 * 2.0 / 7})
	// Samples of a group have the speed around it.
	r.Disturbed, r.Work = make([]bool, 6), make([]float64, 6)
	var speeds []float64
	for _, s := range r.Samples(2) {
		speeds = append(speeds, s.Speed)
	}
	near("speeds of samples", speeds, []float64{2, 2, 2.0 / 6, 2.0 / 6, 2.0 / 6, 2.0 / 7})
	// If CPU time is unknown for one group, the total is unknown.
	if !math.IsNaN(r.Waited()) {
		t.Errorf("waited %v", r.Waited())
	}
	r.Groups = r.Groups[:3]
	if w := r.Waited(); !(math.Abs(w-0.025) <= 1e-12) { // 0.2 and 0.3 of 20
		t.Errorf("waited %v, want 0.025", w)
	}
	r.Groups[0].CPU = 11 // clocks differ by a little
	if w := r.Waited(); w != 0 {
		t.Errorf("waited %v, want none", w)
	}
	if w := (&Result{}).Waited(); !math.IsNaN(w) {
		t.Errorf("of nothing: %v", w)
	}
	// If others had a turn, the slot before a group is not the one after the previous group.
	apart := &Result{Batch: 1, Plain: []float64{1, 1}, Groups: []Group{{To: 1}, {From: 1, To: 2, Slot: 2}}, Slots: []Slot{{1, 1}, {3, 3}, {10, 10}, {30, 30}}}
	near("speeds of turns", apart.Speeds(2), []float64{1, 0.1})
	// A group without a slot after it has no speed.
	r.Slots = r.Slots[:2]
	near("cut", r.Speeds(2), []float64{2})
	if got := (&Result{Groups: r.Groups}).AtReference(1); got != nil {
		t.Errorf("without stretches: %v", got)
	}
}

// TestOverheadByHand: the overhead is the median over complete rounds of the difference of their
// means, which are means of medians of groups, so that one interruption does not count.
func TestOverheadByHand(t *testing.T) {
	t.Parallel()
	g := func(instrumented bool, from, to int) Group {
		return Group{Instrumented: instrumented, From: from, To: to}
	}
	r := &Result{
		Plain: []float64{1, 1, 90, 3, 3, 3}, Profiled: []float64{4, 4, 80, 6, 6, 6},
		Groups: []Group{g(false, 0, 3), g(true, 0, 3), g(true, 3, 6), g(false, 3, 6)},
	}
	// Plain (1 + 3) / 2, instrumented (4 + 6) / 2.
	if o := r.Overhead(); o.N != 1 || o.Median != 3 {
		t.Errorf("%+v, want 3", o)
	}
	// An incomplete round, or a group without samples, is ignored.
	r.Groups = append(r.Groups, g(false, 0, 3), g(true, 0, 3), g(true, 3, 6))
	if o := r.Overhead(); o.N != 1 || o.Median != 3 {
		t.Errorf("a turn that is not whole: %+v", o)
	}
	r.Groups = append(r.Groups, g(false, 6, 6))
	if o := r.Overhead(); o.N != 1 {
		t.Errorf("a group without samples: %+v", o)
	}
	r.Groups[6] = g(true, 6, 6)
	r.Groups[7] = g(false, 3, 6)
	if o := r.Overhead(); o.N != 1 {
		t.Errorf("an instrumented group without samples: %+v", o)
	}
	r.Groups = append(r.Groups[:4:4], g(false, 0, 3), g(true, 0, 3), g(true, 0, 3), g(false, 0, 3))
	if o := r.Overhead(); o.N != 2 || o.Mean != 3 { // 4 less 1
		t.Errorf("two turns: %+v", o)
	}
	for i := range 4 {
		other := slices.Clone(r.Groups[:4])
		other[i].Instrumented = !other[i].Instrumented
		if o := (&Result{Plain: r.Plain, Profiled: r.Profiled, Groups: other}).Overhead(); o.N != 0 {
			t.Errorf("a turn of another order, %d: %+v", i, o)
		}
	}
}

// TestInferences returns the kept runs with what disturbed them.
func TestInferences(t *testing.T) {
	t.Parallel()
	r := NewRecorder(2, 100)
	if x := r.Inferences(); len(x) != 0 {
		t.Errorf("of nothing: %+v", x)
	}
	r.Add([]int64{60, 30}, 100, false)
	r.Add([]int64{900, 50}, 1000, true)
	want := []estimator.Inference{{Steps: []int64{60, 30}, Wall: 100}, {Steps: []int64{900, 50}, Wall: 1000, Disturbed: true}}
	if x := r.Inferences(); !reflect.DeepEqual(x, want) {
		t.Errorf("%+v", x)
	}
}

// TestRecorderBounds keeps runs of any number of steps in bounded memory.
func TestRecorderBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ steps, runs, rows int }{{1, 10, 10}, {1, 0, 1}, {1, -5, 1}, {0, 7, 7}, {1 << 20, 100, 16}} {
		r := NewRecorder(c.steps, c.runs)
		if r.rows != c.rows {
			t.Errorf("%+v: %d rows", c, r.rows)
		}
	}
	r := NewRecorder(0, 2)
	r.Add(nil, 5, false)
	if w := r.Walls(); len(w) != 1 || w[0] != 5e-9 {
		t.Errorf("of no steps: %v", w)
	}
	for name, f := range map[string]func(){
		"too few":  func() { NewRecorder(2, 1).Add([]int64{1}, 1, false) },
		"too many": func() { NewRecorder(2, 1).Add([]int64{1, 2, 3}, 1, false) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of another number of steps are taken", name)
				}
			}()
			f()
		}()
	}
}

// TestRecorderIsUniform counts how often each of a hundred runs is kept in ten rows, over many
// series: each in a tenth of the series.
func TestRecorderIsUniform(t *testing.T) {
	t.Parallel()
	const rows, runs, series = 10, 100, 4000
	hits := make([]float64, runs)
	r := NewRecorder(1, rows)
	for range series {
		r.runs, r.used = 0, 0 // the series begins anew, the random numbers go on
		for i := range runs {
			r.Add([]int64{int64(i)}, int64(i), false)
		}
		for _, v := range r.Samples(0) {
			hits[int(v*1e9+0.5)]++
		}
	}
	chi := 0.0
	for _, h := range hits {
		want := float64(series) * rows / runs
		chi += (h - want) * (h - want) / want
	}
	// Chi-square with 99 degrees of freedom is above 161 once in 10,000 times.
	if chi > 161 {
		t.Errorf("chi square is %.1f for the runs %v", chi, hits)
	}
}

// TestBatch times enough calls together that the clock's cost and resolution are one per cent.
func TestBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resolution, cost, each float64
		want                   int
	}{
		{1e-9, 50e-9, 5e-6, 1},
		{1e-9, 50e-9, 4.9e-6, 2},
		{1e-9, 50e-9, 2.5e-6, 2},
		{1e-9, 50e-9, 2.4e-6, 3},
		{100e-9, 50e-9, 5e-6, 2}, // the resolution counts if it is larger
		{1e-9, 50e-9, -1, 1 << 20},
		{1e-9, 50e-9, 1e-15, 1 << 20},
		{1, 1, 1e-4, 1000000},
		{1, 1, 1e-5, 1 << 20},
	} {
		if got := SimulatedClock(nil, c.resolution, c.cost).Batch(c.each); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestCollections counts garbage collections: once before the samples, again when the heap has
// grown by a quarter of a gigabyte, never if garbage collection is left on.
func TestCollections(t *testing.T) { // not parallel: others allocate too
	var keep []byte
	for _, c := range []struct {
		name string
		keep bool
		size int
		want int
	}{{"little", false, 1 << 10, 1}, {"much", false, 300 << 20, 3}, {"left on", true, 1 << 10, 0}} {
		f := &fake{}
		n := 0
		res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 4, WarmupRuns: -1, WarmupTime: -1, KeepGC: c.keep}, func() error {
			if n++; n <= 2 {
				keep = make([]byte, c.size) // never written, so that it uses no memory
			}
			return f.takes(100 * time.Millisecond)()
		})
		if err != nil || res.ForcedGC != c.want || len(keep) == 0 {
			t.Errorf("%s: %d collections between samples, want %d (%v)", c.name, res.ForcedGC, c.want, err)
		}
		if !c.keep && res.GC != 0 {
			t.Errorf("%s: %d collections within samples", c.name, res.GC)
		}
	}
	keep = nil
	if readMetric("/no/such:metric") != 0 {
		t.Error("a metric that is absent has a value")
	}
}
