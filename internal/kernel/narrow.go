package kernel

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Weights of products whose values are all those of float16 or bfloat16 numbers are packed as such: where few rows use them what
// binds is memory, of which they take half. A single row widens them in registers; more rows do so for a block of a panel, which
// they then share. Sums are those of the same numbers in float32, to the bit.

// narrowLeast is the least number of weights that are packed so: fewer stay in the nearest caches.
const narrowLeast = 1 << 15

// narrowOf tells which numbers of 16 bits all values of b are, for n weights.
func narrowOf(f *simd.Floats, b []float32, n int) simd.Narrow {
	e := simd.ElementKernels()
	if f == nil || e == nil || !f.HasNarrow() || n < narrowLeast {
		return simd.WideFloat32
	}
	half, brain := uint32(0), uint32(0)
	for len(b) > 0 && (half == 0 || brain == 0) {
		part := b[:min(len(b), 1<<12)]
		b = b[len(part):]
		h, r := e.Lost(part)
		half, brain = half|h, brain|r
	}
	switch {
	case half == 0:
		return simd.WideFloat16
	case brain == 0:
		return simd.WideBFloat16
	}
	return simd.WideFloat32
}

// fillCodes packs panel by panel, so that no second copy in float32 is needed.
func (p *PackedB) fillCodes(b []float32, ldb int, trans bool) {
	cols, e := p.cols(), simd.ElementKernels()
	panel := cols * p.k
	p.codes = hugepages.Make[uint16](roundUp(p.n, cols) * p.k)
	sc, room := borrow(panel)
	vec, elem := columnSteps(p.k, p.n, ldb, trans)
	for j := 0; j < p.n; j += cols {
		pack(room, b[j*vec:], min(cols, p.n-j), p.k, cols, vec, elem)
		codes := p.codes[j*p.k:][:panel]
		if p.narrow == simd.WideFloat16 {
			e.ToHalves(codes, room[:panel])
			continue
		}
		for i, v := range room[:panel] {
			codes[i] = uint16(math.Float32bits(v) >> 16)
		}
	}
	scratch.Put(sc)
}

// widenPanel writes a part of a panel in float32; rows of panels are whole registers.
func widenPanel(dst []float32, codes []uint16, narrow simd.Narrow) {
	if e := simd.ElementKernels(); narrow == simd.WideFloat16 {
		e.FromHalf(dst, codes)
	} else {
		e.FromBrain(dst, codes)
	}
}
