package host

import (
	"reflect"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/machine/peaks"
	"github.com/opmeter/opmeter/profile"
)

func TestPeakMethod(t *testing.T) {
	t.Parallel()
	var g profile.Target
	limits(&g, peaks.Rates{Float: 4e9, Integer: 6e9, Memory: 1e10, Buffer: 64 << 20, Cache: 8 << 20}, 2, false)
	if *g.PeakOpsPerSecond != 12e9 || *g.PeakBytesPerSecond != 1e10 {
		t.Errorf("peaks are %v and %v", *g.PeakOpsPerSecond, *g.PeakBytesPerSecond)
	}
	for _, s := range []string{"measured here after the runs, 2 threads", "8-bit matrix kernel (float32: 4 GMAC/s)", "64 MiB", "cache 8 MiB"} {
		if !strings.Contains(g.PeakMethod, s) {
			t.Errorf("%q is not in %q", s, g.PeakMethod)
		}
	}
	g = profile.Target{}
	limits(&g, peaks.Rates{}, 1, false)
	if !reflect.DeepEqual(g, profile.Target{}) {
		t.Errorf("nothing was measured, but the target has %+v", g)
	}
}
