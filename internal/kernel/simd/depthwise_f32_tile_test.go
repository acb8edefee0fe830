package simd

import (
	"testing"
	"unsafe"
)

// TestLaneTileLayout checks the field offsets that the assembly uses. The tests of convolutions
// compare the results with plain Go.
func TestLaneTileLayout(t *testing.T) {
	t.Parallel()
	var x LaneTile
	for i, got := range []uintptr{
		unsafe.Offsetof(x.Dst), unsafe.Offsetof(x.LineDst), unsafe.Offsetof(x.Src), unsafe.Offsetof(x.At), unsafe.Offsetof(x.LineSrc),
		unsafe.Offsetof(x.Step), unsafe.Offsetof(x.W), unsafe.Offsetof(x.n), unsafe.Offsetof(x.First), unsafe.Offsetof(x.End),
		unsafe.Offsetof(x.Tiles), unsafe.Offsetof(x.nextSrc), unsafe.Offsetof(x.nextDst), unsafe.Offsetof(x.ahead), unsafe.Offsetof(x.min),
		unsafe.Offsetof(x.seen), unsafe.Offsetof(x.masks),
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}
