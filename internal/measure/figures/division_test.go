package figures

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/estimator"
	"github.com/opmeter/opmeter/profile"
)

// TestDivisionAddsUp: the times of the steps and the gaps add up to the latency, no time is
// negative, and each lies within its own interval. Times may be coarse, zero, longer than the
// inference by a clock step, or disturbed in most inferences.
func TestDivisionAddsUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		steps, n, unit := 1+r.IntN(9), 1+r.IntN(120), int64(1)
		if round%3 == 0 {
			unit = 1000
		}
		runs := make([]estimator.Inference, n)
		for i := range runs {
			sum := int64(0)
			for s := range steps {
				v := int64(math.Exp(r.Float64()*12)) / unit * unit
				if s > 0 && r.IntN(4) == 0 {
					v = 0
				}
				if round%5 == 0 && r.IntN(steps+1) == 0 {
					v += 10e6 // a preemption that the system does not report
				}
				runs[i].Steps = append(runs[i].Steps, v)
				sum += v
			}
			runs[i].Wall = max(1, sum+int64(r.IntN(200))-50)
			runs[i].Disturbed = r.IntN(3) == 0
		}
		for _, recorded := range []bool{false, true} {
			checkDivision(t, &Division{Latency: 0.01 * (1 + r.Float64()), Breakdown: estimator.Shares(steps, runs), kind: profile.Measured, runs: runs, recorded: recorded}, steps)
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

func checkDivision(t *testing.T, d *Division, steps int) {
	t.Helper()
	rec := d.Reconcile()
	sum := 0.0
	for s := range steps {
		m := d.Metric(s)
		if err := m.Validate(); err != nil {
			t.Errorf("step %d: %v", s, err)
		}
		v, _ := m.Best()
		sum += v
		if v < 0 || m.CI95 != nil && (m.CI95[0] > v || m.CI95[1] < v) {
			t.Errorf("step %d takes %g, interval %v", s, v, m.CI95)
		}
	}
	// Sums of floating-point numbers round.
	rounding := 1e-9 * d.whole() // single times are rounded to their extremes
	if *rec.GapsS < 0 || math.Abs(sum+*rec.GapsS-d.whole()) > rounding || math.Abs(sum-*rec.OperatorsS) > rounding {
		t.Errorf("layers %g + gaps %g, want %g; layers in all %g", sum, *rec.GapsS, d.whole(), *rec.OperatorsS)
	}
}
