package simd

import (
	"testing"
	"unsafe"
)

// TestExpandTile checks the field offsets that the kernels use: expandY and the following
// constants in internal/kernel/gen, and those of columns.
func TestExpandTile(t *testing.T) {
	t.Parallel()
	var x ExpandTile
	for i, at := range []uintptr{unsafe.Offsetof(x.Y), unsafe.Offsetof(x.X), unsafe.Offsetof(x.Masks), unsafe.Offsetof(x.Values), unsafe.Offsetof(x.Steps)} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, at)
		}
	}
	var c ColumnsTile
	for i, at := range []uintptr{unsafe.Offsetof(c.Y), unsafe.Offsetof(c.X), unsafe.Offsetof(c.Steps), unsafe.Offsetof(c.Values), unsafe.Offsetof(c.Counts), unsafe.Offsetof(c.Groups)} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d of columns is at %d", i, at)
		}
	}
	var y ExpandIntTile
	for i, at := range []uintptr{unsafe.Offsetof(y.Y), unsafe.Offsetof(y.X), unsafe.Offsetof(y.Masks), unsafe.Offsetof(y.Values), unsafe.Offsetof(y.Steps), unsafe.Offsetof(y.Start)} {
		if unsafe.Sizeof(at) == 8 && at != uintptr(8*i) {
			t.Errorf("field %d of bytes is at %d", i, at)
		}
	}
}
