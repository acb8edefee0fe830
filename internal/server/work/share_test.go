package work

import "testing"

func TestShare(t *testing.T) {
	t.Parallel()
	for doing, want := range map[string]float64{
		"measuring 77 %": 0.77, "measuring 29 %, 2 s left": 0.29, "reading 5%, 1 s left": 0.05, "peaks of this computer, 3 s": -1, "": -1,
	} {
		got := -1.0
		if s := share(doing); s != nil {
			got = *s
		}
		if got != want {
			t.Errorf("%q: %v, want %v", doing, got, want)
		}
	}
}
