package engine

import "testing"

// TestWaiting takes the time that a thread waited from the step in which it did, and no more than
// the step took.
func TestWaiting(t *testing.T) {
	t.Parallel()
	const ms = 1_000_000
	// Steps of a run: duration by the clock, and CPU time.
	steps := []struct{ took, cpu, waited int64 }{
		{50_000, 50_000, 0},
		{5 * ms, 2 * ms, 3 * ms}, // preempted
		{50_000, 30_000, 0},      // too short to look
		{100_000, 100_000, 0},
		{60_000, 60_000, 0},        // shows what the short one waited, which is at the limit
		{3 * ms, 3*ms - 10_000, 0}, // the clocks differ by their readings
		{100_000, 0, 0},
		{150_000, 150_000, 100_000},
		{190_000, 0, 0},
		{11_000, 11_000, 11_000}, // no step gets shorter than nothing
	}
	var cpu, now int64
	tm := &Timing{CPU: func() int64 { return cpu }}
	tm.begin()
	tm.wall = 0
	for i, s := range steps {
		before, from := tm.waited, now
		now, cpu = now+s.took, cpu+s.cpu
		tm.look(from, now)
		if got := tm.waited - before; got != s.waited {
			t.Errorf("step %d waited %d, want %d", i, got, s.waited)
		}
	}
	tm = &Timing{}
	tm.begin()
	if tm.look(0, 5*ms); tm.waited != 0 {
		t.Errorf("waited %d without a clock of CPU time", tm.waited)
	}
}
