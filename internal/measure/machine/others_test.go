package machine

import (
	"context"
	"math"
	"testing"
	"time"
)

// TestOthers waits while other programs compute, not for its own load, and no longer than allowed.
func TestOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// processors that others use before, and for how long during the wait.
		before float64
		busy   time.Duration
		own    float64
		most   time.Duration
		want   time.Duration
	}{
		{"quiet", 0.1, 0, 0, time.Second, 0},
		{"own load", 0.1, time.Hour, 1, time.Second, 0},
		{"ends", 1, 500 * time.Millisecond, 1, 5 * time.Second, 800 * time.Millisecond},
		{"never ends", 1, time.Hour, 0, 5 * time.Second, 5 * time.Second},
		{"no time", 1, time.Hour, 0, 0, 0},
	} {
		now, all, own := time.Unix(1, 0), 100.0, 10.0
		until := time.Time{}
		o := &Others{read: func() (float64, float64, bool) { return all, own, true }, now: func() time.Time { return now }}
		o.sleep = func(_ context.Context, d time.Duration) {
			if busy := min(d, until.Sub(now)); busy > 0 {
				all += busy.Seconds()
			}
			now = now.Add(d)
		}
		o.load()
		now = now.Add(time.Second)
		own += c.own
		all += c.own + c.before
		until = now.Add(c.busy)
		if got := o.Wait(t.Context(), c.most); got != c.want {
			t.Errorf("%s: waited %v, want %v", c.name, got, c.want)
		}
	}
	unknown := &Others{read: func() (float64, float64, bool) { return math.NaN(), 0, false }, now: time.Now}
	unknown.load()
	if got := unknown.Wait(t.Context(), time.Hour); got != 0 {
		t.Errorf("an unknown load: waited %v", got)
	}
	if all, own, ok := processorTimes(); ok && !(all > 0 && own > 0) {
		t.Errorf("%v of %v s", own, all)
	}
}
