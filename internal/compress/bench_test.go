package compress

import (
	"math"
	"testing"
)

// TestQuotient uses times with the same drift for both models.
func TestQuotient(t *testing.T) {
	t.Parallel()
	drifting := func(n int, each float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = each * (1 + float64(i*pairs/n))
		}
		return out
	}
	for _, tt := range []struct {
		name          string
		before, after []float64
		want          float64 // 0 for none
	}{
		{"twice as fast", drifting(320, 2), drifting(640, 1), 2},
		{"slower", drifting(160, 1), drifting(80, 4), .25},
		{"few runs", drifting(pairs, 1), drifting(pairs/2-1, 1), 0},
		{"none", nil, nil, 0},
		{"no time", drifting(32, 1), make([]float64, 32), 0},
	} {
		m := PairedSpeedup(tt.before, tt.after)
		switch {
		case tt.want == 0:
			if m != nil {
				t.Errorf("%s: %+v", tt.name, m)
			}
		case m == nil || m.CI95 == nil || math.Abs(*m.Median-tt.want) > 1e-12 || m.CI95[1]-m.CI95[0] > 1e-12:
			t.Errorf("%s: %+v, want %v without spread", tt.name, m, tt.want)
		}
	}
}
