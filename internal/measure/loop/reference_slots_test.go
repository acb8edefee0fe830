package loop

import (
	"errors"
	"math"
	"testing"
	"time"
)

// bench is a simulated machine: a fixed amount of work takes longer when it is slow, and other
// programs may use the processor meanwhile.
type bench struct {
	t, cpu int64
	speed  func() float64
	steal  func() int64 // nanoseconds used by others in the middle of a run
}

func (b *bench) clock() *Clock { return SimulatedClock(func() int64 { return b.t }, 1e-9, 50e-9) }

func (b *bench) work(d time.Duration) {
	n := int64(float64(d) / b.speed())
	b.t, b.cpu = b.t+n, b.cpu+n
}

func (b *bench) run(d time.Duration) func() error {
	return func() error {
		b.work(d)
		if b.steal != nil {
			b.t += b.steal()
		}
		return nil
	}
}

func (b *bench) options() Options {
	return Options{
		Clock: b.clock(), Runs: 40, WarmupTime: -1, WarmupRuns: -1,
		Reference: func() { b.work(100 * time.Microsecond) }, CPUTime: func() int64 { return b.cpu },
	}
}

// TestAtReference: a change of the machine's speed in the middle is detected, and the normalised
// time stays the same.
func TestAtReference(t *testing.T) {
	t.Parallel()
	b := &bench{}
	b.speed = func() float64 {
		if b.t < 200e6 {
			return 0.5
		}
		return 0.8
	}
	o := b.options()
	o.Instrumented = b.run(11 * time.Millisecond)
	res, err := Measure(t.Context(), o, b.run(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Slots) != len(res.Groups)+1 {
		t.Fatalf("%d stretches of the loop for %d groups", len(res.Slots), len(res.Groups))
	}
	at, speeds := res.AtReference(100e-6), res.Speeds(100e-6)
	plain := 0
	for _, g := range res.Groups {
		if !g.Instrumented {
			plain++
		}
	}
	if plain == 0 || len(at) != plain || len(speeds) != plain {
		t.Fatalf("%d times and %d speeds for %d plain groups", len(at), len(speeds), plain)
	}
	changed := 0
	for i, v := range at {
		// A group in which the speed changes is between two; nanoseconds are rounded.
		if !(math.Abs(v-0.010) <= 1e-8) {
			changed++
		}
		if !(speeds[i] >= 0.5-1e-6 && speeds[i] <= 0.8+1e-6) {
			t.Errorf("speed %v", speeds[i])
		}
	}
	if changed > 1 {
		t.Errorf("%d groups are not at nominal speed: %v", changed, at)
	}
	if w := res.Waited(); !(w >= 0 && w <= 1e-6) {
		t.Errorf("waited %v", w)
	}
}

// TestWaiting: if others use the processor in every second run, half of the runs are undisturbed,
// and CPU time and normalised time are not affected.
func TestWaiting(t *testing.T) {
	t.Parallel()
	b := &bench{speed: func() float64 { return 1 }}
	n := 0
	b.steal = func() int64 {
		if n++; n%2 == 0 {
			return 30e6
		}
		return 0
	}
	o := b.options()
	o.Usage = func() (int64, int64) { return b.cpu, 0 }
	res, err := Measure(t.Context(), o, b.run(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if w := res.Waited(); !(math.Abs(w-0.6) <= 1e-6) { // 20 times 30 ms of 40 times 10 and these
		t.Errorf("waited %v of the time, want 0.6", w)
	}
	calm := 0
	for _, s := range res.Samples(100e-6) {
		if s.Work != 0.010 {
			t.Errorf("CPU time %v of a run", s.Work)
		}
		if s.Disturbed {
			continue
		}
		if calm++; s.Seconds != 0.010 {
			t.Errorf("an undisturbed run took %v", s.Seconds)
		}
	}
	if calm != 20 {
		t.Fatalf("%d undisturbed runs of %d", calm, len(res.Plain))
	}
	if work := res.Processor(); len(work) != len(res.Groups) {
		t.Errorf("%d processor times of %d groups", len(work), len(res.Groups))
	}
	for _, v := range append(res.Processor(), res.AtReference(100e-6)...) {
		if !(math.Abs(v-0.010) <= 1e-9) {
			t.Errorf("%v, want 10 ms", v)
		}
	}
}

// TestUnknownProcessorTime: without a CPU time clock, and with several threads, figures that need
// it are absent; normalised times use the wall clock.
func TestUnknownProcessorTime(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"no clock", "several threads"} {
		b := &bench{speed: func() float64 { return 0.5 }}
		o := b.options()
		if name == "no clock" {
			o.CPUTime = nil
		} else {
			o.Parallel, o.ProcessTime = true, func() int64 { return 2 * b.cpu }
		}
		res, err := Measure(t.Context(), o, b.run(10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if !math.IsNaN(res.Waited()) {
			t.Errorf("%s: waited %v", name, res.Waited())
		}
		at := res.AtReference(100e-6)
		if len(at) != len(res.Groups) {
			t.Fatalf("%s: %d times of %d groups", name, len(at), len(res.Groups))
		}
		for _, v := range at {
			if !(math.Abs(v-0.010) <= 1e-8) {
				t.Errorf("%s: %v normalised, want 10 ms", name, v)
			}
		}
		work := res.Processor()
		switch {
		case name == "no clock" && work != nil:
			t.Errorf("processor time without a clock: %v", work)
		case name != "no clock" && (len(work) != len(res.Groups) || !(math.Abs(work[0]-0.040) <= 1e-8)):
			t.Errorf("processor time of two threads: %v, want 40 ms", work) // 20 ms of each
		}
	}
}

// TestWithoutLoop: without a reference loop there are no figures of it.
func TestWithoutLoop(t *testing.T) {
	t.Parallel()
	b := &bench{speed: func() float64 { return 1 }}
	o := b.options()
	o.Reference = nil
	res, err := Measure(t.Context(), o, b.run(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if res.Slots != nil || res.Speeds(1) != nil || res.AtReference(1) != nil {
		t.Errorf("%d stretches, speeds %v, times %v", len(res.Slots), res.Speeds(1), res.AtReference(1))
	}
}

// TestGroupThatFails: a run that fails in the middle of a group has no slot after it; the other
// results stay usable.
func TestGroupThatFails(t *testing.T) {
	t.Parallel()
	b := &bench{speed: func() float64 { return 1 }}
	n := 0
	f := b.run(10 * time.Millisecond)
	stop := errors.New("stop")
	res, err := Measure(t.Context(), b.options(), func() error {
		if n++; n > 5 {
			return stop
		}
		return f()
	})
	if !errors.Is(err, stop) {
		t.Fatalf("error %v", err)
	}
	if got := len(res.AtReference(100e-6)); got != 5 || len(res.Plain) != 5 {
		t.Errorf("%d times of %d runs", got, len(res.Plain))
	}
}

// TestReference: the work is the same every time, and its sums equal those of plain loops over
// its data.
func TestReference(t *testing.T) {
	t.Parallel()
	r := NewReference()
	first := r.Round()
	if again, other := r.Round(), NewReference().Round(); again != first || other != first {
		t.Errorf("rounds gave %x, %x and %x", first, again, other)
	}
	// Every word occurs three times: sums triple, and of exclusive-ors one remains.
	var add, b, d uint64
	for i, w := range r.words {
		switch i % 4 {
		case 0, 2:
			add += w
		case 1:
			b ^= w
		case 3:
			d ^= w
		}
	}
	if got, want := r.memory(), 3*add+b+d; got != want {
		t.Errorf("memory sums to %d, want %d", got, want)
	}
	var dot float64
	for i := range r.x {
		dot += float64(r.x[i]) * float64(r.w[i])
	}
	want := dot * floatPasses * (floatPasses + 1) / 2
	// Sums of 512 float32 each: a relative error of 512/2^24 at most, and the truncation to an
	// integer.
	if got := float64(r.floats()); !(math.Abs(got-want) <= want*512/(1<<24)+1) {
		t.Errorf("floats sum to %v, want %v", got, want)
	}
	// 6364136223846793005 cubed, modulo 2^64, computed with arbitrary-precision integers.
	if got, want := chain(3), uint64(793875393913628917); got != want {
		t.Errorf("chain of three is %d, want %d", got, want)
	}
}
