package random

import "testing"

// TestPhilox compares with the published test vectors of the generator.
func TestPhilox(t *testing.T) {
	t.Parallel()
	const all = 0xffffffff
	for _, tt := range []struct {
		key     [2]uint32
		counter [4]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[2]uint32{all, all}, [4]uint32{all, all, all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Philox(tt.key, tt.counter); got != tt.want {
			t.Errorf("key %x, counter %x: got %x, want %x", tt.key, tt.counter, got, tt.want)
		}
	}
}
