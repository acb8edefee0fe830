package simd

import (
	"testing"
	"unsafe"
)

// The fields of a tile lie where the loops look for them (expandY and the following in internal/kernel/gen).
func TestExpandTile(t *testing.T) {
	t.Parallel()
	var x ExpandTile
	for i, at := range []uintptr{unsafe.Offsetof(x.Y), unsafe.Offsetof(x.X), unsafe.Offsetof(x.Masks), unsafe.Offsetof(x.Values), unsafe.Offsetof(x.Steps)} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, at)
		}
	}
}
