package engine

import (
	"testing"
	"time"
)

// TestSharing simulates runs of given durations and checks the final mode, and how many runs used
// the slower one.
func TestSharing(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	for _, c := range []struct {
		name   string
		shared func(run int) time.Duration
		alone  time.Duration
		runs   int
		want   bool // alone in the end
		most   int  // maximum runs in the slower mode
	}{
		{"workers gain", func(int) time.Duration { return 60 * us }, 100 * us, 3000, false, 90},
		{"workers lose", func(int) time.Duration { return 130 * us }, 100 * us, 3000, true, 90},
		{"alike", func(int) time.Duration { return 100 * us }, 100 * us, 3000, false, 90},
		{"long runs are not tried", func(int) time.Duration { return 20 * time.Millisecond }, time.Millisecond, 100, false, 0},
		{"processors move apart", func(run int) time.Duration {
			if run < 1000 {
				return 60 * us
			}
			return 200 * us
		}, 100 * us, 3000, true, 1340},
		{"single slow runs", func(run int) time.Duration {
			if run%3 == 0 {
				return 500 * us
			}
			return 60 * us
		}, 100 * us, 3000, false, 90},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s threadTrials
			now, other := time.Unix(0, 0), 0
			for run := range c.runs {
				took := c.shared(run)
				if s.alone {
					took = c.alone
				}
				if s.alone != c.want {
					other++
				}
				now = now.Add(took)
				s.record(took, now)
			}
			for range 2 * len(s.last) { // to the end of a trial
				if s.trying {
					now = now.Add(c.alone)
					took := c.shared(c.runs)
					if s.alone {
						took = c.alone
					}
					s.record(took, now)
				}
			}
			if s.alone != c.want || other > c.most {
				t.Errorf("alone %v, want %v; %d runs the other way, %d at most", s.alone, c.want, other, c.most)
			}
		})
	}
}
