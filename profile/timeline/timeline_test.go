package timeline_test

import (
	"strings"
	"testing"
)

func TestTimelineIsChecked(t *testing.T) {
	t.Parallel()
	good := func() *Profile {
		return &Profile{
			Schema: SchemaV1, Model: Model{Name: "m"}, Target: Target{ID: "host", Kind: TargetHost},
			Layers: []Layer{{Op: "Conv"}},
			Timeline: &Timeline{
				Names: []string{"load"}, Subnets: []string{"s"},
				Lanes: []Lane{{
					Name: "thread 0", Kind: LaneThread, Starts: []float64{0, 1e-3, 1e-3, 2e-3}, Durations: []float64{1e-3, 2e-3, 1e-3, 1e-3},
					Layers: []int32{0, -1, 0, 0}, Labels: []int32{-1, 0, -1, -1}, Iterations: []int32{0, 0, 0, 0},
				}},
				Counters: []Counter{{Name: "DDR", Unit: "B/s", Times: []float64{0, 1}, Values: []float64{1, 0}}},
				Links:    []Link{{ToBar: 3}},
				Memories: []MemorySpace{{
					Name: "local", Partitions: []Partition{{Name: "bank 0", Bytes: 16}},
					Starts: []float64{0}, Ends: []float64{1}, Addresses: []int64{0}, Sizes: []int64{16}, Writes: []int32{1},
				}},
			},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Timeline){
		"lanes[0].durations_s has 3 entries":               func(l *Timeline) { l.Lanes[0].Durations = l.Lanes[0].Durations[:3] },
		"lanes[0].starts_s has 0 at 1 after 1":             func(l *Timeline) { l.Lanes[0].Starts = []float64{1, 0, 1, 2} },
		"lanes[0] bar 2 ends after the bar around it":      func(l *Timeline) { l.Lanes[0].Durations[2] = 5e-3 },
		"lanes[0].layers has 1 at 0":                       func(l *Timeline) { l.Lanes[0].Layers[0] = 1 },
		"lanes[0].labels has -2 at 1":                      func(l *Timeline) { l.Lanes[0].Labels[1] = -2 },
		"lanes[0].kind is":                                 func(l *Timeline) { l.Lanes[0].Kind = "" },
		"links[0] names bar 4 of lane 0":                   func(l *Timeline) { l.Links[0].ToBar = 4 },
		"counters[0].values has 1 entries":                 func(l *Timeline) { l.Counters[0].Values = []float64{1} },
		"memories[0] access 0 is 16 bytes at 0, 0 to -1 s": func(l *Timeline) { l.Memories[0].Ends[0] = -1 },
	} {
		p := good()
		spoil(p.Timeline)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
