package simd

import "testing"

func TestRates(t *testing.T) {
	t.Parallel()
	var f *Floats
	var i *Ints
	if f.Rate() != floatRates[Go] || i.Rate() != intRates[Go] {
		t.Errorf("plain Go: %v and %v", f.Rate(), i.Rate())
	}
	for s := range Set(sets) {
		f, i := &Floats{Set: s}, &Ints{Set: s}
		if f.Rate() < floatRates[s.below()] || i.Rate() < intRates[s.below()] {
			t.Errorf("%v is slower than %v", s, s.below())
		}
	}
}
