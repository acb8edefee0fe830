package host

import (
	"math"
	"time"

	"github.com/opmeter/opmeter/profile"
)

// worthSaying is the part of an inference above which instruments or gaps are
// reported.
const worthSaying = 0.01

// overhead reports what the instruments add, where that is more than chance, and what
// lies between operators. What makes times uncertain is said once, by the verdict: see
// [trust].
func overhead(r *profile.Reconcile) []profile.Finding {
	if r == nil || !(*r.WallS > 0) || !(*r.PlainS > 0) {
		return nil
	}
	var out []profile.Finding
	if g := *r.GapsS / *r.WallS; g > worthSaying {
		out = append(out, finding("reconcile.gaps", profile.Info, nil, "%.1f %% of the time lies between operators: in so short an inference, starting it and reading the clock count.", 100*g))
	}
	o := r.OverheadS
	if o == nil || o.CI95 == nil || o.CI95[0] <= 0 && o.CI95[1] >= 0 {
		return out
	}
	cost := *o.Median
	if part := math.Abs(cost) / *r.PlainS; part > worthSaying {
		than := "longer"
		if cost < 0 {
			than = "less"
		}
		out = append(out, finding("reconcile.overhead", profile.Warning, nil, "Instrumented inferences took %.3g %% %s than plain ones (%s): totals are from plain ones, shares from instrumented ones.", 100*part, than, short(math.Abs(cost))))
	}
	return out
}

// short writes a time with three digits.
func short(seconds float64) string {
	d := time.Duration(seconds * 1e9)
	for step := time.Second; step > 1; step /= 10 {
		if d >= 100*step {
			return d.Round(step).String()
		}
	}
	return d.String()
}
