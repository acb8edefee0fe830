package child

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
)

// TestPlaces: layers of a later record are found among those of the first one by name, kind
// and number among their like.
func TestPlaces(t *testing.T) {
	t.Parallel()
	l := func(names ...string) (out []profile.Layer) {
		for _, n := range names {
			out = append(out, profile.Layer{Name: n, Op: n[:1]})
		}
		return out
	}
	for _, c := range []struct {
		known, seen []profile.Layer
		want        []int
	}{
		{l("a", "b", "c"), l("a", "b", "c"), []int{0, 1, 2}},
		{l("a", "b", "b", "c"), l("a", "b", "x", "b", "c"), []int{0, 1, -1, 2, 3}},
		{l("a", "b"), l("b"), []int{1}},
		{l("a"), l("a", "a"), []int{0, -1}},
		{nil, nil, []int{}},
	} {
		if got := places(c.known, c.seen); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// TestScaled: every part that has the unit of the figure is scaled, numbers are not, and what it is
// made of stays as it is.
func TestScaled(t *testing.T) {
	t.Parallel()
	v := func(x float64) *float64 { return &x }
	m := &profile.Metric{
		Kind: profile.Imported, N: new(int64(7)), Median: v(2), Mean: v(3), Min: v(4), Max: v(5), P90: v(6), P95: v(7), P99: v(8), StdDev: v(9), MAD: v(10),
		CI95: &[2]float64{11, 12}, Outliers: new(int64(2)), Method: "theirs",
	}
	before := *m
	want := &profile.Metric{
		Kind: profile.Measured, N: new(int64(7)), Median: v(1), Mean: v(1.5), Min: v(2), Max: v(2.5), P90: v(3), P95: v(3.5), P99: v(4), StdDev: v(4.5), MAD: v(5),
		CI95: &[2]float64{5.5, 6}, Outliers: new(int64(2)), Method: "ours",
	}
	if d := cmp.Diff(want, scaled(m, 0.5, "ours")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(&before, m); d != "" {
		t.Error("changed:", d)
	}
}

// TestDivide: the scaled layers and the time not in layers add up to the latency.
func TestDivide(t *testing.T) {
	t.Parallel()
	layer := func(v float64) profile.Layer {
		return profile.Layer{Latency: profile.Value(profile.Measured, v, "")}
	}
	for _, c := range []struct {
		layers          []profile.Layer
		operators, gaps float64
	}{
		{nil, 0, 8},
		{[]profile.Layer{layer(2), {State: profile.NotReached}, layer(5)}, 7, 1},
		{[]profile.Layer{layer(3), layer(5)}, 8, 0},
		{[]profile.Layer{layer(3), layer(5 * (1 + 1e-15))}, 8, 0},
	} {
		r := &profile.Reconcile{WallS: new(9.0), OperatorsS: new(9.0), GapsS: new(0.0)}
		divide(r, 8, c.layers)
		if *r.WallS != 8 || *r.OperatorsS != c.operators || *r.GapsS != c.gaps {
			t.Errorf("%d layers: %g + %g = %g", len(c.layers), *r.OperatorsS, *r.GapsS, *r.WallS)
		}
	}
}
