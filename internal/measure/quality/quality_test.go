package quality

import (
	"math"
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
