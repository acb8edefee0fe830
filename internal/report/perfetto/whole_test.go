package perfetto

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// recorded is a profile with one of everything that a trace can carry. Bars: 0 has all
// figures, also those that are zero; 1 has none that is known.
func recorded() *profile.Profile {
	return &profile.Profile{
		Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "board", Kind: profile.TargetDevice},
		Layers: []profile.Layer{{
			Op: "CONV_2D", Name: "c", State: profile.Ran, Scope: "s", Graph: "g", Kernel: "k", MACs: new(int64(12)), Latency: profile.Value(profile.Measured, 0.25, ""), Options: []profile.Option{{Key: "a", Value: "1"}},
			Inputs: []profile.Tensor{{Name: "x", DType: "int8", Shape: []int64{1, 2}}, {Absent: true}, {DType: "int32"}}, Outputs: []profile.Tensor{{Name: "y", DType: "int32", Shape: []int64{3}}},
		}},
		Quantities: []profile.Quantity{{Key: "conflicts", Name: "Conflicts", Adds: true}},
		Timeline: &timeline.Timeline{
			Origin: "power on", Method: "trace unit", Iterations: new(int64(7)), Dropped: new(int64(2)), Names: []string{"first", "in"}, Subnets: []string{"sub"},
			Lanes: []timeline.Lane{
				{
					Name: "unit", Kind: timeline.Engine, Group: "core 0", Starts: []float64{0.001, 0.003}, Durations: []float64{0.001, 0.002},
					Layers: []int32{0, -1}, Labels: []int32{-1, 0}, Iterations: []int32{0, -1}, Subnets: []int32{0, -1}, Directions: []int32{1, -1},
					Bytes: []int64{0, -1}, Utilisation: []float64{0, -1}, Stalls: []float64{0.0005, 0}, Figures: map[string][]float64{"conflicts": {0, -1}},
				},
				{Name: "layers", Kind: timeline.Layer, Starts: []float64{0.002}, Durations: []float64{0.0015}, Layers: []int32{0}},
			},
			Counters: []timeline.Counter{{Name: "bandwidth", Unit: "B/s", Times: []float64{0.0005, 0.004}, Values: []float64{1.5, 0}}, {Name: "depth", Group: "core 0", Times: []float64{0.006}, Values: []float64{3}}},
			Links:    []timeline.Link{{FromLane: 0, FromBar: 0, ToLane: 1, ToBar: 0}, {FromLane: 1, FromBar: 0, ToLane: 0, ToBar: 1}},
			Memories: []timeline.Memory{{Name: "sram"}, {Name: "dram"}},
		},
	}
}

// The whole trace of a profile that has one of everything, track by track.
func TestWhole(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	tracks, about := read(t, write(t, recorded()))
	if want := "trace unit; time 0 is the power on; 7 iterations ran; 2 records were dropped; accesses to 2 memories are left out"; about != want {
		t.Errorf("description %q, want %q", about, want)
	}
	same := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got, cmp.AllowUnexported(slice{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	names := map[uint64]string{}
	for id, tr := range tracks {
		names[id] = tr.name
	}
	lane := laneTrack(0)
	same("tracks", names, map[uint64]string{1: "m on board", 2: "core 0", lane: "unit", lane + 1: "layers", lane + 2: "bandwidth", lane + 3: "depth"})
	same("bars", tracks[lane].slices, []slice{
		{"c", "CONV_2D", 1e6, 2e6, m{
			"iteration": int64(0), "subnet": "sub", "direction": "in", "moved_bytes": int64(0), "utilisation": 0.0, "stall_s": 0.0005, "bar_conflicts": 0.0, "layer": int64(0),
		}, []uint64{1}},
		{"stall", "stall", 1e6, 1.5e6, m{}, nil},
		{"first", string(timeline.Engine), 3e6, 5e6, m{}, []uint64{2}},
	})
	same("layers", tracks[lane+1].slices, []slice{{"c", "CONV_2D", 2e6, 3.5e6, m{
		"layer": int64(0), "op": "CONV_2D", "name": "c", "options": "a:1", "scope": "s", "graph": "g", "kernel": "k", "inputs": "x int8 1x2, int32", "outputs": "y int32 3", "macs": int64(12), "latency_s": 0.25,
	}, []uint64{2, 1}}})
	same("first counter", tracks[lane+2].values, []float64{1.5, 0})
	same("second counter", tracks[lane+3].values, []float64{3})
	if tracks[lane+2].unit != "B/s" || tracks[lane+3].unit != "" {
		t.Errorf("units %q and %q", tracks[lane+2].unit, tracks[lane+3].unit)
	}
	// What belongs to what, by the packets themselves.
	parents, ranks := map[uint64]uint64{}, map[uint64]uint64{}
	for _, f := range decode(t, write(t, recorded())) {
		d, ok := decode(t, f.bytes).one(t, 60)
		if !ok {
			continue
		}
		desc := decode(t, d.bytes)
		id := desc.must(t, 1).value
		if p, ok := desc.one(t, 5); ok {
			parents[id] = p.value
		}
		if r, ok := desc.one(t, descriptorRank); ok {
			ranks[id] = r.value
		}
	}
	same("parents", parents, map[uint64]uint64{lane: 2, lane + 1: 1, lane + 2: 1, lane + 3: 2})
	same("ranks", ranks, map[uint64]uint64{1: 0, 2: 1, lane: 0, lane + 1: 1})

	// What is not known is not said.
	p := recorded()
	p.Timeline.Origin, p.Timeline.Iterations, p.Timeline.Dropped, p.Timeline.Memories = "", nil, new(int64(0)), nil
	if _, about := read(t, write(t, p)); about != "trace unit" {
		t.Errorf("description %q", about)
	}
}
