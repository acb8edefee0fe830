package host

import (
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/workers"
	"github.com/opmeter/opmeter/profile"
)

// TestPeaks measures this computer: the rates are those of some computer, and
// the time is bounded.
func TestPeaks(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 2} {
		pool := workers.New(threads, nil)
		r := measurePeaks(pool, nil)
		pool.Close()
		for name, v := range map[string]float64{"float": r.float, "integer": r.integer, "memory": r.memory} {
			if v < 1e6 || v > 1e15 {
				t.Errorf("%d threads: %s rate is %g a second", threads, name, v)
			}
		}
		// The bound is 100 ms where nothing else runs; tests share the machine.
		if r.took > 2*time.Second {
			t.Errorf("%d threads: took %v", threads, r.took)
		}
	}
}

func TestPeakMethod(t *testing.T) {
	t.Parallel()
	var g profile.Target
	(&rates{float: 4e9, integer: 6e9, memory: 1e10, buffer: 64 << 20, cache: 8 << 20}).describe(&g, 2, false)
	if *g.PeakOpsPerSecond != 12e9 || *g.PeakBytesPerSecond != 1e10 {
		t.Errorf("peaks are %v and %v", *g.PeakOpsPerSecond, *g.PeakBytesPerSecond)
	}
	for _, s := range []string{"measured here after the runs, 2 threads", "8-bit matrix kernel (float32: 4 GMAC/s)", "64 MiB", "cache 8 MiB"} {
		if !strings.Contains(g.PeakMethod, s) {
			t.Errorf("%q is not in %q", s, g.PeakMethod)
		}
	}
	g = profile.Target{}
	(&rates{}).describe(&g, 1, false)
	if g != (profile.Target{}) {
		t.Errorf("nothing was measured, but the target has %+v", g)
	}
}
