package report

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestSlowest: layers whose order is not settled stand together, and nothing is said without
// intervals.
func TestSlowest(t *testing.T) {
	t.Parallel()
	layer := func(i int64, op string, low, median, high float64) profile.Layer {
		return profile.Layer{
			Index: i, Op: op, State: profile.Ran, Share: new(median / 100), ShareCI95: &[2]float64{low / 100, high / 100},
			Latency: &profile.Metric{Kind: profile.Measured, Median: &median, CI95: &[2]float64{low, high}},
		}
	}
	without := layer(9, "Add", 1, 2, 3)
	without.Latency.CI95, without.ShareCI95 = nil, nil
	for _, c := range []struct {
		name   string
		layers []profile.Layer
		want   string
	}{
		{"no layers", nil, ""},
		{"settled", []profile.Layer{layer(0, "Add", 19, 20, 21), layer(1, "Conv", 68, 70, 72)}, "1st #1 Conv 70.0 ± 2.0 % · 2nd #0 Add 20.0 ± 1.0 %"},
		{"most of the time", []profile.Layer{layer(0, "Add", 19, 20, 21), layer(1, "Conv", 78, 80, 82)}, "1st #1 Conv 80.0 ± 2.0 %"},
		{"not settled", []profile.Layer{layer(0, "Add", 50, 60, 61), layer(1, "Relu", 18, 21, 22), layer(2, "Conv", 15, 19, 20)}, "1st #0 Add 60.0 ± 10.0 % · 2nd or 3rd #1 Relu 21.0 ± 3.0 %, #2 Conv 19.0 ± 4.0 %"},
		{"no interval", []profile.Layer{layer(0, "Add", 50, 60, 61), without}, ""},
	} {
		p := &profile.Profile{Layers: c.layers}
		for i, r := range profile.Ranks(p.Layers) {
			p.Layers[i].Rank = r
		}
		if got := slowest(p); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
