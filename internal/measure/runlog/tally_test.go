package runlog_test

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/profile"
)

// Inferences that the system disturbed are in neither the shares nor the latency, as long as
// enough others are there.
func TestTallyDisturbed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		calm, hit     int
		latency, part float64 // microseconds, and the share of the first layer
		method        string
	}{
		{"most are undisturbed", 30, 10, 100, 0.25, "undisturbed inferences"},
		{"most are disturbed", 12, 60, 100, 0.25, "undisturbed inferences"},
		{"too few are undisturbed", 3, 20, 1000, 0.925, ""},
		{"none is disturbed", 20, 0, 100, 0.25, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var tally runlog.Tally
			add := func(first int64, hit bool) {
				tally.Call(0, first)
				tally.Call(1, 75_000)
				if hit {
					tally.Disturbed()
				}
				tally.End(-1)
			}
			add(500_000, false) // the first one counts separately
			for i := range c.calm + c.hit {
				// spread evenly, so that no block has only one kind
				if hit := (i+1)*c.hit/(c.calm+c.hit) > i*c.hit/(c.calm+c.hit); hit {
					add(925_000, true)
				} else {
					add(25_000, false)
				}
			}
			p := &profile.Profile{Layers: make([]profile.Layer, 2)}
			tally.Fill(p)
			latency, _ := p.Totals.Latency.Best()
			first, _ := p.Layers[0].Latency.Best()
			if math.Abs(latency*1e6-c.latency) > 1e-6 || math.Abs(first/latency-c.part) > 1e-9 || p.Totals.Latency.Method != c.method {
				t.Errorf("latency %g µs by %q, share %g; want %g by %q, %g", latency*1e6, p.Totals.Latency.Method, first/latency, c.latency, c.method, c.part)
			}
			if n := len(p.Totals.LatencySamples); n != c.calm+c.hit {
				t.Errorf("%d samples, want all", n)
			}
		})
	}
}

// The time of a layer is not rounded to the resolution of a profiler's clock.
func TestTallyCoarseClock(t *testing.T) {
	t.Parallel()
	var tally runlog.Tally
	for i := range 401 {
		short := int64(0)
		if i%5 == 0 {
			short = 1000 // a counter of whole microseconds shows 0.2 µs in every fifth inference
		}
		tally.Call(0, short)
		tally.Call(1, 10_000-short)
		tally.End(-1)
	}
	p := &profile.Profile{Layers: make([]profile.Layer, 2)}
	tally.Fill(p)
	// The size of a block is not a multiple of five.
	if v, _ := p.Layers[0].Latency.Best(); v < 0.15e-6 || v > 0.25e-6 {
		t.Errorf("%g µs, want 0.2", v*1e6)
	}
	// Sums of fractions are rounded.
	if ci := p.Layers[0].Latency.CI95; ci == nil || ci[0] > 0.2e-6+1e-15 || ci[1] < 0.2e-6-1e-15 {
		t.Errorf("interval %v", ci)
	}
}
