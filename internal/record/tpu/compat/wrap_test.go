package compat

import "testing"

// TestIDWrap continues 16-bit command numbers after 65535.
func TestIDWrap(t *testing.T) {
	t.Parallel()
	w := idWrap{bits: 16}
	for _, c := range [][2]uint32{{0, 0}, {64_999, 64_999}, {3, 3}, {65_530, 65_530}, {2, 65_538}, {900, 66_436}, {65_001, 130_537}, {0, 131_072}} {
		if got := w.next(c[0]); got != c[1] {
			t.Errorf("%d is command %d, want %d", c[0], got, c[1])
		}
	}
}
