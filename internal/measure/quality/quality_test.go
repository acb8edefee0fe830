package quality

import (
	"math"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestAbove: a doubt begins above its limit.
func TestAbove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v, fair, bad float64
		want         profile.Verdict // "": none
		limit        float64
	}{
		{1, 1, 2, "", 0}, {1.5, 1, 2, profile.Fair, 1}, {2, 1, 2, profile.Fair, 1}, {2.5, 1, 2, profile.Unreliable, 2}, {9, 1, 0, profile.Fair, 1}, {0.5, 1, 0, "", 0}, {math.NaN(), 1, 2, "", 0},
	} {
		var d Doubts
		d.Above(profile.DoubtSpread, c.v, c.fair, c.bad)
		if c.want == "" {
			if len(d) != 0 {
				t.Errorf("%+v: %+v", c, d)
			}
		} else if len(d) != 1 || d[0].Verdict != c.want || *d[0].Limit != c.limit || *d[0].Value != c.v {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestTrust: tolerances beyond their limits lower the verdict where no other reason does, and other
// reasons raise the tolerance.
func TestTrust(t *testing.T) {
	t.Parallel()
	fair := Doubts{{Code: profile.DoubtBattery, Verdict: profile.Fair}}
	missing := Doubts{{Code: profile.DoubtLost, Verdict: profile.Unreliable}}
	wide := Doubts{{Code: profile.DoubtShares, Verdict: profile.Good}}
	for _, c := range []struct {
		d         Doubts
		tolerance float64
		shares    bool
		verdict   profile.Verdict
		fit       profile.Fit
		want      float64 // 0: absent
		doubts    int
	}{
		{nil, 0.02, true, profile.Good, profile.FitComparing, 0.02, 0},
		{nil, 0.1, false, profile.Good, profile.FitComparing, 0.1, 0},
		{nil, 0.12, true, profile.Fair, profile.FitShares, 0.12, 1},
		{nil, 0.12, false, profile.Fair, profile.FitNothing, 0.12, 1},
		{nil, 0.3, true, profile.Unreliable, profile.FitShares, 0.3, 1},
		{nil, math.NaN(), true, profile.Fair, profile.FitShares, 0, 1},
		{fair, 0.02, true, profile.Fair, profile.FitShares, 0.1, 1},
		{fair, 0.12, true, profile.Fair, profile.FitShares, 0.12, 1},
		{fair, 0.3, true, profile.Unreliable, profile.FitShares, 0.3, 2},
		{missing, 0.02, true, profile.Unreliable, profile.FitNothing, 0.25, 1},
		{wide, 0.02, true, profile.Good, profile.FitComparing, 0.02, 1},
		{wide, 0.12, true, profile.Fair, profile.FitNothing, 0.12, 2},
	} {
		got := c.d.Trust(c.tolerance, c.shares)
		if got.Verdict != c.verdict || got.Fit != c.fit || len(got.Doubts) != c.doubts {
			t.Errorf("%+v: %+v", c, got)
		}
		if (got.Tolerance != nil) != (c.want > 0) || got.Tolerance != nil && *got.Tolerance != c.want {
			t.Errorf("%+v: tolerance %v", c, got.Tolerance)
		}
	}
	if got := Tolerance(0.03, 0.04); math.Abs(got-0.05) > 1e-15 || !math.IsNaN(Tolerance(0.1, math.NaN())) {
		t.Errorf("3 and 4 per cent: %v", got)
	}
}

// TestShares: the number of inferences and the widest interval are judged, not the total.
func TestShares(t *testing.T) {
	t.Parallel()
	layer := func(v float64, ci *[2]float64) profile.Layer {
		return profile.Layer{State: profile.Ran, Latency: &profile.Metric{N: new(int64(20)), Median: &v, CI95: ci}}
	}
	for _, c := range []struct {
		layers      []profile.Layer
		undisturbed int
		has         bool
		want        []profile.DoubtCode
	}{
		{nil, 40, false, nil},
		{[]profile.Layer{{State: profile.Ran}}, 40, false, nil},
		{[]profile.Layer{layer(6, &[2]float64{5.6, 6.4}), layer(4, &[2]float64{3.9, 4.1})}, 40, true, nil},
		{[]profile.Layer{layer(6, &[2]float64{5.4, 6.6}), layer(4, &[2]float64{3.9, 4.1})}, 40, true, []profile.DoubtCode{profile.DoubtShares}},
		{[]profile.Layer{layer(6, nil), layer(4, &[2]float64{3.9, 4.1})}, 40, true, []profile.DoubtCode{profile.DoubtShares}},
		{[]profile.Layer{layer(6, nil), layer(4, nil)}, 9, true, []profile.DoubtCode{profile.DoubtShareRuns}},
		{[]profile.Layer{layer(6, &[2]float64{3, 9})}, 40, true, nil}, // a single layer has all of it
	} {
		var d Doubts
		has := d.Shares(&profile.Profile{Layers: c.layers}, c.undisturbed)
		var got []profile.DoubtCode
		for _, x := range d {
			got = append(got, x.Code)
			if x.Verdict != profile.Good {
				t.Errorf("%s lowers the total to %s", x.Code, x.Verdict)
			}
		}
		if has != c.has || !slices.Equal(got, c.want) {
			t.Errorf("%d layers, %d inferences: %v, %v", len(c.layers), c.undisturbed, has, got)
		}
	}
}
