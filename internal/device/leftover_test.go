package device

import (
	"testing"
	"time"
)

// TestLeftover drops bytes that come faster than the line carries after a change of the speed, up
// to a bound.
func TestLeftover(t *testing.T) {
	t.Parallel()
	set := time.Unix(1000, 0)
	l := leftover{bytes: 3000, speed: 10000, since: set} // 1000 bytes a second
	for _, c := range []struct {
		name  string
		bytes int
		after time.Duration
		want  bool
	}{
		{"at the speed of the line", 1000, time.Second, false},
		{"a bit faster, as clocks differ", 1200, time.Second, false},
		{"at once", 2000, 10 * time.Millisecond, true},
		{"more than the system keeps", 2000, 10 * time.Millisecond, true},
		{"after the bound", 2000, 10 * time.Millisecond, false},
	} {
		if got := l.drop(c.bytes, set.Add(c.after)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	var none leftover
	if none.drop(1<<20, set) {
		t.Error("bytes at the first speed are dropped")
	}
}
