package figures

import (
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestDominantPlaces: the list of the slowest layers says where its order is not settled.
func TestDominantPlaces(t *testing.T) {
	t.Parallel()
	timed := func(i int64, op string, low, median, high float64) profile.Layer {
		return profile.Layer{Index: i, Op: op, State: profile.Ran, Latency: &profile.Metric{Kind: profile.Measured, Median: &median, CI95: &[2]float64{low, high}}}
	}
	for _, c := range []struct {
		layers []profile.Layer
		want   string
	}{
		{[]profile.Layer{timed(0, "A", 1.9, 2, 2.1), timed(1, "B", 3.9, 4, 4.1), timed(2, "C", 2.4, 2.5, 2.6)}, ": #1 B, #2 C."},
		{[]profile.Layer{timed(0, "A", 1.9, 2.2, 2.5), timed(1, "B", 3.9, 4, 4.1), timed(2, "C", 2.4, 2.5, 2.6)}, ": #1 B, #2 C (2nd or 3rd)."},
	} {
		got := Findings(&profile.Profile{Layers: c.layers})
		if len(got) != 2 || !strings.HasSuffix(got[1].Text, c.want) {
			t.Errorf("%+v, want an end of %q", got, c.want)
		}
	}
}
