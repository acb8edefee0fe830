package profile_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	if m := profile.Summarize(profile.Measured, nil, "m"); m != nil {
		t.Errorf("of nothing: %+v", m)
	}
	got := profile.Summarize(profile.Imported, []float64{4, 2}, "m")
	want := &profile.Metric{
		Kind: profile.Imported, Method: "m", N: new(int64(2)), Median: new(3.0), Mean: new(3.0), Min: new(2.0), Max: new(4.0),
		StdDev: new(math.Sqrt2), MAD: new(1.0),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	samples := make([]float64, 400)
	for i := range samples {
		samples[i] = float64(i * i % 397)
	}
	m := profile.Summarize(profile.Measured, samples, "m")
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	if m.P90 == nil || m.P95 == nil || m.P99 == nil || m.CI95 == nil || m.Outliers == nil {
		t.Errorf("parts are missing: %+v", m)
	}
}

// TestSummaryOfAPart takes a series of which only a part was kept: number, mean and
// extremes are those of all.
func TestSummaryOfAPart(t *testing.T) {
	t.Parallel()
	r := stats.NewReservoir(50)
	for i := range 1000 {
		r.Add(float64(i))
	}
	m := profile.FromSummary(profile.Measured, r.Summary(), "quantiles of a random sample")
	if *m.N != 1000 || *m.Mean != 499.5 || *m.Min != 0 || *m.Max != 999 || m.P99 != nil || m.P90 == nil {
		t.Errorf("%+v", m)
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
}
