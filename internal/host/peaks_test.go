package host

import (
	"reflect"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/machine/peaks"
	"github.com/opmeter/opmeter/profile"
)

func TestPeaks(t *testing.T) {
	t.Parallel()
	var g profile.Target
	rate := func(v float64) peaks.Rate { return peaks.Rate{Best: v, Median: 0.75 * v} }
	limits(&g, peaks.Rates{
		Float: rate(4e9), Integer: rate(6e9), Clock: 2e9, Buffer: 64 << 20, Cache: 8 << 20, Passes: 3,
		Levels: []peaks.Level{{Name: "L1", Bytes: 64 << 10, Rate: rate(1e11)}, {Name: "memory", Rate: rate(1e10)}},
	}, 2, false, &profile.Host{Features: []string{"fma3", "avx2"}})
	if *g.PeakOpsPerSecond != 12e9 || *g.PeakBytesPerSecond != 1e10 {
		t.Errorf("peaks are %v and %v", *g.PeakOpsPerSecond, *g.PeakBytesPerSecond)
	}
	// Two threads of 2 GHz with 32 operations a cycle; 64 bytes in three instructions of
	// which two go at once.
	want := []profile.Peak{
		{DType: "float32", Kernel: "go", OpsPerSecond: 8e9, Spread: new(0.25), ProcessorOpsPerSecond: new(2 * 2e9 * 32.0), ProcessorSet: "fma3"},
		{DType: "int8", Kernel: "go", OpsPerSecond: 12e9, Spread: new(0.25), ProcessorOpsPerSecond: new(2e9 * 32 * 2 * 2 / 3.0 * 2), ProcessorSet: "avx2"},
	}
	if !reflect.DeepEqual(g.Peaks, want) {
		t.Errorf("peaks %+v", g.Peaks)
	}
	if len(g.Levels) != 2 || *g.Levels[0].Bytes != 64<<10 || g.Levels[1].Bytes != nil || *g.Levels[1].Spread != 0.25 {
		t.Errorf("levels %+v", g.Levels)
	}
	for _, s := range []string{"measured here after the runs (in 3 passes, since the machine was busy), 2 threads", "64 MiB", "cache 8 MiB"} {
		if !strings.Contains(g.PeakMethod, s) {
			t.Errorf("%q is not in %q", s, g.PeakMethod)
		}
	}
	g = profile.Target{}
	limits(&g, peaks.Rates{}, 1, false, &profile.Host{})
	if !reflect.DeepEqual(g, profile.Target{}) {
		t.Errorf("nothing was measured, but the target has %+v", g)
	}
}
