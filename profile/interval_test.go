package profile

import "testing"

// TestInterval: an interval is shown next to the figure that it encloses, or nowhere.
func TestInterval(t *testing.T) {
	t.Parallel()
	ci, band := &[2]float64{1, 3}, &[2]float64{0, 9}
	for _, c := range []struct {
		name string
		m    *Metric
		want *[2]float64
	}{
		{"nothing", nil, nil},
		{"no figure", &Metric{CI95: ci}, nil},
		{"no interval", &Metric{Median: new(2.0)}, nil},
		{"of the median", &Metric{Median: new(2.0), Mean: new(8.0), CI95: ci}, ci},
		{"of the mean", &Metric{Mean: new(3.0), CI95: ci}, ci},
		{"of another statistic", &Metric{Median: new(3.5), CI95: ci}, nil},
		{"below", &Metric{Median: new(0.5), CI95: ci}, nil},
		{"of an estimate", &Metric{Median: new(4.0), Band: band, CI95: ci}, band},
		{"a rounding error outside", &Metric{Median: new(3 * (1 + 1e-15)), CI95: ci}, ci},
	} {
		if got := c.m.Interval(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
