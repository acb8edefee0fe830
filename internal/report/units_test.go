package report

import "testing"

// TestChange: changes say that something changed, and that something is left.
func TestChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f        float64
		decimals int
		want     string
	}{
		{0.05, 1, "+5.0 %"},
		{-0.8, 1, "−80.0 %"},
		{-0.998, 1, "−99.8 %"},
		{-0.998, 0, "−99.8 %"},
		{-0.99996, 0, "−99.996 %"},
		{-0.62, 0, "−62 %"},
		{-0.0003, 1, "−0.03 %"},
		{0, 1, "0.0 %"},
		{-1, 0, "−100 %"},
		{1, 0, "+100 %"},
		{-1e-12, 1, "0.0 %"},
	} {
		if got := Change(c.f, c.decimals); got != c.want {
			t.Errorf("Change(%g, %d) = %q, want %q", c.f, c.decimals, got, c.want)
		}
	}
}
