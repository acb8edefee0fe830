package simd

import (
	"testing"
	"unsafe"
)

// The fields of a tile lie where the loops look for them (bitsY and the following in internal/kernel/gen).
func TestBitTile(t *testing.T) {
	t.Parallel()
	var x BitTile
	for i, at := range []uintptr{
		unsafe.Offsetof(x.Y), unsafe.Offsetof(x.X), unsafe.Offsetof(x.W), unsafe.Offsetof(x.Scales), unsafe.Offsetof(x.Zeros),
		unsafe.Offsetof(x.Sums), unsafe.Offsetof(x.Groups), unsafe.Offsetof(x.Blocks), unsafe.Offsetof(x.values), unsafe.Offsetof(x.middle),
	} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, at)
		}
	}
}
