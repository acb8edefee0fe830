package ab

import "testing"

// TestOtherInputs tells other batches from other shapes; unknown ones do not differ.
func TestOtherInputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b   []string
		differ bool
		items  float64
	}{
		{nil, []string{"1x3"}, false, 0},
		{[]string{"1x3"}, []string{"1x3"}, false, 0},
		{[]string{"1x3"}, []string{"4x3"}, true, 4},
		{[]string{"8x3", "8"}, []string{"2x3", "2"}, true, 0.25},
		{[]string{"1x3", "1x3"}, []string{"4x3", "2x3"}, true, 0},
		{[]string{"1x3", "1x3"}, []string{"4x3", "1x3"}, true, 0},
		{[]string{"1x3x32x32"}, []string{"1x3x64x64"}, true, 0},
		{[]string{"1x3"}, []string{"1x3", "1"}, true, 0},
		{[]string{""}, []string{"4"}, true, 0},
		{[]string{"0x3"}, []string{"4x3"}, true, 0},
		{[]string{"hostile"}, []string{"-1x3"}, true, 0},
	} {
		differ, items := OtherInputs(&Measured{Inputs: c.a}, &Measured{Inputs: c.b})
		if differ != c.differ || items != c.items {
			t.Errorf("%q and %q: %v, %g", c.a, c.b, differ, items)
		}
	}
}
