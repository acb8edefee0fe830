package words

import (
	"math"
	"testing"
)

// TestFixed: no number is written with digits that it does not have.
func TestFixed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v        float64
		decimals int
		want     string
	}{
		{0, 1, "0.0"},
		{12.345, 1, "12.3"},
		{-99.96, 0, "-100"},
		{999999999999999, 0, "999999999999999"},
		{1e15, 0, "1e+15"},
		{-2.5e20, 2, "-2.5e+20"},
		{1e305, 1, "1e+305"},
		{math.Inf(1), 1, "+Inf"},
	} {
		if got := Fixed(c.v, c.decimals); got != c.want {
			t.Errorf("%g with %d decimals: %q, want %q", c.v, c.decimals, got, c.want)
		}
	}
}
