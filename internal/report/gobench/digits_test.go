package gobench

import "testing"

func TestSignificant(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]float64{12958204.375999998: 12958204.4, 1234567890123: 1234567890123, 0: 0, 1.00000000049e-7: 1e-7} {
		if got := significant(v); got != want {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
}
