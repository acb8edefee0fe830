package cli

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestStrict holds measurements against each value of --strict.
func TestStrict(t *testing.T) {
	t.Parallel()
	unsettled := []profile.Doubt{{Code: profile.DoubtShareRuns, Verdict: profile.Good}}
	comparing := &profile.Trust{Verdict: profile.Good, Fit: profile.FitComparing, Tolerance: new(0.06)}
	noShares := &profile.Trust{Verdict: profile.Good, Fit: profile.FitComparing, Tolerance: new(0.02), Doubts: unsettled}
	shares := &profile.Trust{Verdict: profile.Fair, Fit: profile.FitShares, Tolerance: new(0.12)}
	nothing := &profile.Trust{Verdict: profile.Unreliable, Fit: profile.FitNothing}
	for _, c := range []struct {
		value string
		trust *profile.Trust
		met   bool
	}{
		{"", nothing, true},
		{"comparing", comparing, true},
		{"comparing", noShares, true},
		{"comparing", shares, false},
		{"comparing", nothing, false},
		{"shares", comparing, true},
		{"shares", noShares, false},
		{"shares", shares, true},
		{"shares", nothing, false},
		{"6%", comparing, true},
		{"5.9 %", comparing, false},
		{"100%", shares, false},
		{"3%", &profile.Trust{Fit: profile.FitComparing}, false},
	} {
		s, err := strictOf(c.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.met(c.trust); got != c.met {
			t.Errorf("--strict=%s of %s: met %v", c.value, c.trust.Fit, got)
		}
	}
	for _, bad := range []string{"good", "fair", "nothing", "5", "%", "0%", "-1%", "101%", "NaN%", "Inf%", "1e400%"} {
		if _, err := strictOf(bad); err == nil {
			t.Errorf("--strict=%s is taken", bad)
		}
	}
}
