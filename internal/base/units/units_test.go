package units

import "testing"

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text   string
		among  []Unit
		number string
		factor float64
		ok     bool
	}{
		{"256KiB", Bytes, "256", 1024, true},
		{"256 kB", Bytes, "256", 1000, true},
		{"8B", Bytes, "8", 1, true},
		{"78MHz", Hertz, "78", 1e6, true},
		{"5Hz", Hertz, "5", 1, true},
		{"5", Hertz, "5", 1, false},
		{"5mhz", Hertz, "5mhz", 1, false},
	} {
		if n, f, ok := Cut(tt.text, tt.among); n != tt.number || f != tt.factor || ok != tt.ok {
			t.Errorf("Cut(%q) = %q, %g, %t", tt.text, n, f, ok)
		}
	}
	// A unit that ends like an earlier one would never be found.
	for _, list := range [][]Unit{Bytes, Hertz} {
		for _, u := range list {
			if _, f, _ := Cut("1"+u.Suffix, list); f != u.Factor {
				t.Errorf("1%s is 1 times %g, want %g", u.Suffix, f, u.Factor)
			}
		}
	}
}
