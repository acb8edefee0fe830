package loop

import (
	"testing"
	"time"
)

// TestReferenceWork: the loop is a unit of time, so its work must never change. The sums come
// from a program in another language, written from the description of the parts. The sum of
// floats depends on whether a processor rounds products before it adds.
func TestReferenceWork(t *testing.T) {
	t.Parallel()
	r := NewReference()
	if got := r.integers(); got != 10711088 {
		t.Errorf("integers sum to %d, want 10711088", got)
	}
	if got := r.memory(); got != 52837401171827 {
		t.Errorf("memory sums to %d, want 52837401171827", got)
	}
	if got := chain(chainSteps); got != 2706999549838451041 { // the factor to the power of 21,400
		t.Errorf("the chain is %d, want 2706999549838451041", got)
	}
	// A round combines all parts.
	want := uint64(r.floats()) ^ uint64(10711088)<<20 ^ 52837401171827 ^ 2706999549838451041
	if got := r.Round(); got != want {
		t.Errorf("a round is %d, want %d", got, want)
	}
}

// TestWarmupEnds: the first run is reported separately, drifting runs are judged again after ten
// more, and runs that never settle end at three times both bounds.
func TestWarmupEnds(t *testing.T) {
	t.Parallel()
	// falling takes a tenth of a millisecond less with each run until it takes one.
	falling := func(f *fake, runs int) func() error {
		n := 0
		return func() error {
			f.t += 1e6 + int64(max(0, runs-n))*1e5
			n++
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		settle int
		o      Options
		warmup int
		steady bool
	}{
		// Runs begin with 16 ms and take 15.9, 15.8, … ms: 44 of them are the first to take 600.
		{"by number", 150, Options{WarmupRuns: 20, WarmupTime: -1}, 60, false},
		{"by time", 150, Options{WarmupRuns: -1, WarmupTime: 200 * time.Millisecond}, 44, false},
		{"by both, the time last", 150, Options{WarmupRuns: 10, WarmupTime: 200 * time.Millisecond}, 44, false},
		{"by both, the number last", 150, Options{WarmupRuns: 20, WarmupTime: 100 * time.Millisecond}, 60, false},
		{"too few to judge", 150, Options{WarmupRuns: 9, WarmupTime: -1}, 9, false},
	} {
		f := &fake{}
		c.o.Clock, c.o.Runs = f.clock(), 12
		res, err := Measure(t.Context(), c.o, falling(f, c.settle))
		if err != nil || res.WarmupSteady != c.steady || res.WarmupRuns != c.warmup {
			t.Errorf("%s: %d runs of warm-up, steady %v, want %d (%v)", c.name, res.WarmupRuns, res.WarmupSteady, c.warmup, err)
		}
		if want := (1e6 + float64(c.settle)*1e5) / 1e9; res.First != want || res.Warmup[0] != want {
			t.Errorf("%s: the first run took %v, want %v", c.name, res.First, want)
		}
	}
	// Runs that settle are judged after every tenth: the number is above 20 and a multiple of
	// ten.
	f := &fake{}
	res, err := Measure(t.Context(), Options{Clock: f.clock(), Runs: 12, WarmupRuns: 20, WarmupTime: -1}, falling(f, 18))
	if err != nil || !res.WarmupSteady || res.WarmupRuns <= 20 || res.WarmupRuns%10 != 0 || res.WarmupRuns >= 60 {
		t.Errorf("settling: %d runs of warm-up, steady %v (%v)", res.WarmupRuns, res.WarmupSteady, err)
	}
}
