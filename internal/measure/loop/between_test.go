package loop

import (
	"testing"
	"time"
)

// TestBetween: other measurements run between rounds of groups. Their time does not count, and the
// first runs of short groups after them do not either.
func TestBetween(t *testing.T) {
	t.Parallel()
	f := &fake{}
	var elapsed []time.Duration
	instrumented := 0
	o := Options{
		Clock: f.clock(), Time: 200 * time.Millisecond, WarmupTime: 5 * time.Millisecond, WarmupRuns: 5,
		Instrumented: func() error { instrumented++; return f.takes(time.Millisecond)() },
		Between: func(d time.Duration) bool {
			elapsed = append(elapsed, d)
			if len(elapsed)%2 == 0 {
				return false
			}
			_ = f.takes(time.Second)()
			return true
		},
	}
	runs := 0
	res, err := Measure(t.Context(), o, func() error { runs++; return f.takes(time.Millisecond)() })
	if err != nil {
		t.Fatal(err)
	}
	// A round has four groups of five runs, and one that does not count after the others.
	if n := len(elapsed); n < 8 || n > 10 {
		t.Fatalf("called %d times, want once after each round of 20 ms in 200 ms", n)
	}
	for i, d := range elapsed {
		if want := time.Duration(i+1)*20*time.Millisecond + time.Duration((i+1)/2)*time.Millisecond; d > want || d < want-time.Duration(i+1)*time.Millisecond {
			t.Errorf("call %d after %v, want %v", i, d, want)
		}
	}
	uncounted := runs - res.WarmupRuns - len(res.Plain)
	if want := (len(elapsed) + 1) / 2; uncounted != want {
		t.Errorf("%d runs do not count, want %d", uncounted, want)
	}
}
