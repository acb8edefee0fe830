package profile

import (
	"testing"
)

// TestNewTrust: the gravest reason gives the verdict and comes first, those of one
// weight stay in order.
func TestNewTrust(t *testing.T) {
	t.Parallel()
	if v := NewTrust(nil).Verdict; v != Good {
		t.Errorf("without a doubt: %s", v)
	}
	got := NewTrust([]Doubt{{Code: DoubtBusy, Verdict: Good}, {Code: DoubtDrift, Verdict: Fair}, {Code: DoubtStolen, Verdict: Unreliable}, {Code: DoubtSpread, Verdict: Fair}})
	want := []DoubtCode{DoubtStolen, DoubtDrift, DoubtSpread, DoubtBusy}
	if got.Verdict != Unreliable || len(got.Doubts) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, d := range got.Doubts {
		if d.Code != want[i] {
			t.Errorf("reason %d is %s, want %s", i, d.Code, want[i])
		}
	}
}

func TestAtLeast(t *testing.T) {
	t.Parallel()
	order := []Verdict{Good, Fair, Unreliable}
	for i, a := range order {
		for k, b := range order {
			if got := a.AtLeast(b); got != (i <= k) {
				t.Errorf("%s at least %s: %v", a, b, got)
			}
		}
	}
}
