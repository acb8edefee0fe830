package simd

import (
	"testing"
	"unsafe"
)

// TestStripLayout checks the field offsets that the assembly uses. The tests of convolutions
// compare the results with plain Go.
func TestStripLayout(t *testing.T) {
	t.Parallel()
	var x Strip
	for i, got := range []uintptr{
		unsafe.Offsetof(x.Dst), unsafe.Offsetof(x.LineDst), unsafe.Offsetof(x.NextDst), unsafe.Offsetof(x.Src), unsafe.Offsetof(x.LineSrc),
		unsafe.Offsetof(x.NextSrc), unsafe.Offsetof(x.W), unsafe.Offsetof(x.StepW), unsafe.Offsetof(x.NextW), unsafe.Offsetof(x.Bias),
		unsafe.Offsetof(x.NextBias), unsafe.Offsetof(x.N), unsafe.Offsetof(x.At), unsafe.Offsetof(x.Tap), unsafe.Offsetof(x.lead),
		unsafe.Offsetof(x.lines), unsafe.Offsetof(x.odd), unsafe.Offsetof(x.end), unsafe.Offsetof(x.masks), unsafe.Offsetof(x.Min),
		unsafe.Offsetof(x.bits), 0, 0, unsafe.Offsetof(x.flags), unsafe.Offsetof(x.wide),
	} {
		if i != 21 && i != 22 && unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}

func TestByteStripLayout(t *testing.T) {
	t.Parallel()
	var x ByteStrip
	for i, got := range []uintptr{
		unsafe.Offsetof(x.Dst), unsafe.Offsetof(x.LineDst), unsafe.Offsetof(x.NextDst), unsafe.Offsetof(x.Out), unsafe.Offsetof(x.Src), unsafe.Offsetof(x.LineSrc),
		unsafe.Offsetof(x.NextSrc), unsafe.Offsetof(x.W), unsafe.Offsetof(x.NextW), unsafe.Offsetof(x.Start), unsafe.Offsetof(x.NextStart), unsafe.Offsetof(x.N),
		unsafe.Offsetof(x.At), unsafe.Offsetof(x.Tap), unsafe.Offsetof(x.top), unsafe.Offsetof(x.real), unsafe.Offsetof(x.lead), unsafe.Offsetof(x.lines),
		unsafe.Offsetof(x.odd), unsafe.Offsetof(x.index), unsafe.Offsetof(x.masks), 0, 0, 0, 0, unsafe.Offsetof(x.stores), unsafe.Offsetof(x.edge), unsafe.Offsetof(x.flip),
		unsafe.Offsetof(x.write), unsafe.Offsetof(x.whole), unsafe.Offsetof(x.finish), 0, unsafe.Offsetof(x.lo), 0, 0, 0, 0, 0, 0, 0, unsafe.Offsetof(x.hi),
		0, 0, 0, 0, 0, 0, 0, unsafe.Offsetof(x.halfSrc), unsafe.Offsetof(x.halfDst), unsafe.Offsetof(x.parts),
	} {
		if (got != 0 || i == 0) && unsafe.Sizeof(uintptr(0)) == 8 && got != uintptr(8*i) {
			t.Errorf("field %d is at %d", i, got)
		}
	}
}

// TestStripLines compares the counts of SetLines with windows counted one by one.
func TestStripLines(t *testing.T) {
	t.Parallel()
	for _, k := range []int{3, 5, 7} {
		for step := 1; step <= 2; step++ {
			for pad := range k {
				for in := 1; in < 12; in++ {
					for out := 1; out < 14; out++ {
						var s Strip
						if !s.SetLines(k, step, pad, in, out) {
							continue
						}
						even, odd, lead := 0, 0, 0
						for r := pad; r < pad+in && r <= (out-1)*step+k-1; r++ {
							if r%step == 0 {
								even++
								if r < k-1 {
									lead++
								}
							} else {
								odd++
							}
						}
						if s.lines != even || s.odd != odd || s.lead != lead || s.end != out-even+lead {
							t.Fatalf("windows of %d with a stride of %d, %d above %d lines, %d results: %+v", k, step, pad, in, out, s)
						}
						// The window of the last result contains a line.
						if first := (out-1)*step - pad; first >= in {
							t.Fatalf("windows of %d with a stride of %d, %d above %d lines: the window of result %d is empty", k, step, pad, in, out)
						}
					}
				}
			}
		}
	}
}
