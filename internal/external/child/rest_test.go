package child

import (
	"testing"
	"time"
)

// TestRest: a library is waited for while its threads take time of the processor, within a limit.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		busy, want int // steps
	}{{"asleep", 0, 1}, {"watching", 7, 8}, {"never asleep", 1000, 50}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			steps, spent := 0, int64(0)
			rest(func() int64 { return spent }, func(d time.Duration) {
				if steps++; steps <= c.busy {
					spent += int64(d)
				}
			})
			if steps != c.want {
				t.Errorf("%d steps, want %d", steps, c.want)
			}
		})
	}
}
