package profile_test

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestMagnitude says how much of an output differs and by how much.
func TestMagnitude(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    profile.Difference
		want string
	}{
		{profile.Difference{State: profile.Equal, Same: new(1.0)}, ""},
		{profile.Difference{State: profile.NotComparable}, ""},
		{profile.Difference{State: profile.Rounding, Steps: new(1.0), Same: new(0.944)}, "1 quantisation step in 5.6 % of the elements"},
		{profile.Difference{State: profile.Differs, Steps: new(12.0), Same: new(0.5)}, "up to 12 quantisation steps in 50 % of the elements"},
		{profile.Difference{State: profile.Differs, SNR: new(12.3), MaxAbsolute: new(0.5), Same: new(0.0)}, "SNR 12 dB, at most 0.5 in nearly all elements"},
		{profile.Difference{State: profile.Differs, SNR: new(-0.3)}, "SNR 0 dB"},
		{profile.Difference{State: profile.Differs, MaxAbsolute: new(2.0), Same: new(0.75)}, "at most 2 in 25 % of the elements"},
		{profile.Difference{State: profile.Differs, Same: new(0.25)}, "25 % of the elements are equal"},
		{profile.Difference{State: profile.Differs}, ""},
	} {
		if got := c.d.Magnitude(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.d, got, c.want)
		}
	}
}
