package loop

import (
	"testing"
	"time"
)

// TestDisturbances marks samples in which the system took the processor, or in which the thread
// waited for it, and extends the time until enough others are there.
func TestDisturbances(t *testing.T) {
	t.Parallel()
	const each = 200 * time.Microsecond
	for _, c := range []struct {
		name string
		// hit says what happens in sample i: how long it waits, and whether it is preempted.
		hit       func(i int) (wait time.Duration, preempted bool)
		parallel  bool
		time      time.Duration
		samples   int // least number of samples; the last group may add 30
		disturbed func(i int) bool
	}{
		{"calm", func(int) (time.Duration, bool) { return 0, false }, false, 10 * time.Millisecond, 50, func(int) bool { return false }},
		{"preempted", func(i int) (time.Duration, bool) { return 0, i%4 == 1 }, false, 10 * time.Millisecond, 50, func(i int) bool { return i%4 == 1 }},
		{"waiting", func(i int) (time.Duration, bool) { return time.Duration(i%2) * 30 * time.Microsecond, false }, false, 10 * time.Millisecond, 40, func(i int) bool { return i%2 == 1 }},
		{"waiting a little", func(int) (time.Duration, bool) { return 15 * time.Microsecond, false }, false, 10 * time.Millisecond, 40, func(int) bool { return false }},
		{"threads that wait for each other", func(int) (time.Duration, bool) { return time.Millisecond, false }, true, 60 * time.Millisecond, 40, func(int) bool { return false }},
		{"until enough are undisturbed", func(i int) (time.Duration, bool) { return 0, i < 40 }, false, 8 * time.Millisecond, 60, func(i int) bool { return i < 40 }},
		{"twice the time at most", func(int) (time.Duration, bool) { return 0, true }, false, 8 * time.Millisecond, 80, func(int) bool { return true }},
	} {
		f := &fake{}
		var cpu, preemptions int64
		n := 0
		res, err := Measure(t.Context(), Options{
			Clock: f.clock(), Time: c.time, WarmupRuns: 1, WarmupTime: -1, Parallel: c.parallel,
			Usage: func() (int64, int64) { return cpu, preemptions },
		}, func() error {
			wait, preempted := c.hit(n - 1) // the first run is the warm-up
			n++
			f.t += int64(each + wait)
			cpu += int64(each)
			if preempted {
				preemptions++
			}
			return nil
		})
		if err != nil || len(res.Plain) < c.samples || len(res.Plain) > c.samples+30 || len(res.Disturbed) != len(res.Plain) || len(res.Work) != len(res.Plain) {
			t.Errorf("%s: %d samples, %d marks, want %d samples (%v)", c.name, len(res.Plain), len(res.Disturbed), c.samples, err)
			continue
		}
		for i, d := range res.Disturbed {
			if d != c.disturbed(i) {
				t.Errorf("%s: sample %d disturbed: %v", c.name, i, d)
				break
			}
			if w := res.Work[i]; !c.parallel && w != each.Seconds() {
				t.Errorf("%s: CPU time %v of sample %d", c.name, w, i)
				break
			}
		}
	}
}

// TestShortSamplesAreWatchedTogether reads the usage about every hundred microseconds.
func TestShortSamplesAreWatchedTogether(t *testing.T) {
	t.Parallel()
	f := &fake{}
	reads := 0
	res, err := Measure(t.Context(), Options{
		Clock: f.clock(), Runs: 1000, WarmupRuns: 3, WarmupTime: -1,
		Usage: func() (int64, int64) { reads++; return f.t, 0 },
	}, f.takes(10*time.Microsecond))
	if err != nil || len(res.Disturbed) != 1000 || reads < 150 || reads > 250 {
		t.Errorf("%d readings for %d samples (%v)", reads, len(res.Disturbed), err)
	}
}
