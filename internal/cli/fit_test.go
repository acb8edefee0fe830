package cli

import (
	"testing"
	"time"

	"github.com/opmeter/opmeter/profile"
)

// TestFitLimits judges limits by the uncertainty: a limit inside a band is neither kept nor
// exceeded for sure.
func TestFitLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		f         fitFlags
		low, high float64 // seconds
		code      *[2]int64
		open      bool // one iteration of a loop that depends on data
		over      string
		near      string
	}{
		{"below the band", fitFlags{latency: time.Second}, 2, 8, nil, false, "takes 4.00 s (2.00 to 8.00 s)", ""},
		{"in the band", fitFlags{latency: 5 * time.Second}, 2, 8, nil, false, "", "takes 4.00 s (2.00 to 8.00 s)"},
		{"above the band", fitFlags{latency: 8 * time.Second}, 2, 8, nil, false, "", ""},
		{"one iteration", fitFlags{latency: 9 * time.Second}, 2, 8, nil, true, "", "takes 4.00 s (2.00 to 8.00 s) with one iteration of loops that depend on data (set --iterations)"},
		{"less than the least code", fitFlags{limits: map[string]float64{"flash": 60 << 10}}, 2, 8, &[2]int64{20 << 10, 40 << 10}, false, "needs 70.0 to 90.0 KiB of flash with program code", ""},
		{"between", fitFlags{limits: map[string]float64{"flash": 80 << 10}}, 2, 8, &[2]int64{20 << 10, 40 << 10}, false, "", "needs 70.0 to 90.0 KiB of flash with program code"},
		{"enough", fitFlags{limits: map[string]float64{"flash": 90 << 10}}, 2, 8, &[2]int64{20 << 10, 40 << 10}, false, "", ""},
		{"code of unknown size", fitFlags{limits: map[string]float64{"flash": 90 << 10}}, 2, 8, nil, false, "", "needs 50.0 KiB of flash and program code of unknown size"},
		{"less than the model", fitFlags{limits: map[string]float64{"flash": 40 << 10}}, 2, 8, nil, false, "needs 50.0 KiB of flash and program code of unknown size", ""},
		{"RAM", fitFlags{limits: map[string]float64{"ram": 9 << 10}}, 2, 8, nil, false, "needs 10.0 KiB of RAM", ""},
		{"enough RAM", fitFlags{limits: map[string]float64{"ram": 10 << 10}}, 2, 8, nil, false, "", ""},
	} {
		m := profile.Value(profile.Estimated, 4, "")
		m.Band = &[2]float64{c.low, c.high}
		p := &profile.Profile{Totals: profile.Totals{Latency: m, RAMBytes: new(int64(10 << 10)), FlashBytes: new(int64(50 << 10)), CodeBytes: c.code}}
		if c.open {
			p.Incomplete = []profile.Missing{{Cause: profile.ByData}}
		}
		over, near := c.f.over(p, false)
		first := func(list []string) string {
			if len(list) == 0 {
				return ""
			}
			return list[0]
		}
		if first(over) != c.over || first(near) != c.near {
			t.Errorf("%s: over %q, near %q; want %q and %q", c.name, over, near, c.over, c.near)
		}
	}
}
