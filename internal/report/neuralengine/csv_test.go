package neuralengine

import "testing"

// TestCells has what one cell becomes.
func TestCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{milliseconds(nil), ""},
		{milliseconds(new(0.0)), "0.000"},
		{milliseconds(new(1.0)), "1000.000"},
		{milliseconds(new(1e-3)), "1.000"},
		{milliseconds(new(0.9e-3)), "0.900000"},
		{milliseconds(new(1e-6)), "0.001000"},
		{milliseconds(new(0.9e-6)), "0.000900000"},
		{one("a;b"), "a|b"},
		{one("=x"), "'=x"},
		{list([]string{"a;b", "c"}), "a|b;c"},
		{quote("a b"), "a b"},
		{quote(`a,"b"`), `"a,""b"""`},
		{quote("a\nb"), "\"a\nb\""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
