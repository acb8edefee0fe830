package report

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestEngineBound names the engine of an accelerator that bounds an inference. Times of several
// cores are figures of all, and their lanes divide them.
func TestEngineBound(t *testing.T) {
	t.Parallel()
	lane := func(group, name string, durations ...float64) timeline.Lane {
		l := timeline.Lane{Name: name, Kind: timeline.Engine, Group: group}
		for i, d := range durations {
			l.Starts, l.Durations = append(l.Starts, float64(10*i)), append(l.Durations, d)
		}
		return l
	}
	record := func(tiu, dma float64, lanes ...timeline.Lane) *profile.Profile {
		p := &profile.Profile{Target: profile.Target{Kind: profile.TargetImport}}
		p.Totals.Latency = profile.Value(profile.Imported, 10, "")
		p.Totals.Figures = map[string]*profile.Metric{}
		for key, v := range map[string]float64{"tiu_busy_s": tiu, "dma_busy_s": dma, "parallel_s": 1} {
			p.Totals.Figures[key] = profile.Value(profile.Imported, v, "")
		}
		p.Timeline = &timeline.Timeline{Lanes: lanes}
		return p
	}
	one := []timeline.Lane{lane("core 0", "TIU", 1), lane("core 0", "GDMA", 1)}
	bare := record(4, 9)
	bare.Timeline = nil
	for _, tt := range []struct {
		name, want string
		p          *profile.Profile
	}{
		{"copies", "DMA-bound: copy engine busy 82.0 %, tensor engine 25.0 %, both at once 10.0 %", record(2.5, 8.2, one...)},
		{"computing", "compute-bound: tensor engine busy 90.0 %, copy engine 40.0 %, both at once 10.0 %", record(9, 4, one...)},
		{"both", "balanced: tensor engine busy 90.0 %, copy engine 85.0 %, both at once 10.0 %", record(9, 8.5, one...)},
		{"neither", "neither engine: copy engine busy 30.0 %, tensor engine 20.0 %; the rest is waiting", record(2, 3, one...)},
		{
			"two cores", "DMA-bound: copy engine busy 80.0 %, tensor engine 30.0 %, both at once 10.0 %",
			record(4, 9, lane("core 0", "TIU", 1, 2), lane("core 1", "TIU", 1), lane("core 0", "GDMA", 8), lane("core 1", "GDMA", 1)),
		},
		{"overlapping bars of one engine", "DMA-bound: copy engine busy 90.0 %, tensor engine 40.0 %, both at once 10.0 %", record(4, 9, lane("core 0", "TIU", 1), lane("core 0", "GDMA", 8), lane("core 0", "GDMA (2)", 1))},
		{"more than the whole", "", record(4, 12, one...)},
		{"no lanes", "", bare},
		{"another target", "", &profile.Profile{}},
	} {
		if got := engineBound(tt.p); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	p := record(2.5, 8.2, one...)
	if got, want := bottleneck(p), engineBound(p); got != want {
		t.Errorf("the bottleneck is %q, want %q", got, want)
	}
}
