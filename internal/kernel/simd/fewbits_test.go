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
		unsafe.Offsetof(x.RowX), unsafe.Offsetof(x.RowSums), unsafe.Offsetof(x.RowY),
	} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, at)
		}
	}
}

// The same of rows that become digits (digitsX and the following).
func TestBitDigits(t *testing.T) {
	t.Parallel()
	var x BitDigits
	for i, at := range []uintptr{
		unsafe.Offsetof(x.x), unsafe.Offsetof(x.y), unsafe.Offsetof(x.records), unsafe.Offsetof(x.chunks), unsafe.Offsetof(x.blocks), unsafe.Offsetof(x.order),
		unsafe.Offsetof(x.powers), unsafe.Offsetof(x.store), unsafe.Offsetof(x.line), unsafe.Offsetof(x.limit), unsafe.Offsetof(x.most),
	} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, at)
		}
	}
}
