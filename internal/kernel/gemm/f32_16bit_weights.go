package gemm

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/kernel/scratch"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Weights that are all exact in float16 or bfloat16 are packed in that format. Few rows are bound
// by memory bandwidth, and 16-bit weights halve the traffic. A single row widens them in
// registers; more rows share a widened block of a panel. Results are bit-exact with float32
// weights.

// narrowMin is the minimum number of weights to pack in 16 bits: fewer stay in the L1 and L2
// caches.
const narrowMin = 1 << 15

// narrowOf returns the 16-bit float format in which all values of b are exact, for n weights.
func narrowOf(f *simd.Floats, b []float32, n int) simd.PanelType {
	e := simd.ElementKernels()
	if f == nil || e == nil || !f.HasNarrow() || n < narrowMin {
		return simd.WideFloat32
	}
	half, brain := uint32(0), uint32(0)
	for len(b) > 0 && (half == 0 || brain == 0) {
		part := b[:min(len(b), 1<<12)]
		b = b[len(part):]
		h, r := e.LostBits(part)
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

// fillCodes packs panel by panel, so that it needs no second copy in float32.
func (p *PackedB) fillCodes(b []float32, ldb int, trans bool) {
	cols, e := p.cols(), simd.ElementKernels()
	panel := cols * p.k
	p.codes = hugepages.Make[uint16](scratch.RoundUp(p.n, cols) * p.k)
	sc, workspace := scratch.Borrow(panel)
	vec, elem := strideOf(p.k, p.n, ldb, trans)
	for j := 0; j < p.n; j += cols {
		Pack(workspace, b[j*vec:], min(cols, p.n-j), p.k, cols, vec, elem)
		codes := p.codes[j*p.k:][:panel]
		if p.narrow == simd.WideFloat16 {
			e.ToHalves(codes, workspace[:panel])
			continue
		}
		for i, v := range workspace[:panel] {
			codes[i] = uint16(math.Float32bits(v) >> 16)
		}
	}
	scratch.Float32s.Put(sc)
}

// widenPanel converts a part of a panel to float32; rows of panels are whole registers.
func widenPanel(dst []float32, codes []uint16, narrow simd.PanelType) {
	if e := simd.ElementKernels(); narrow == simd.WideFloat16 {
		e.FromHalf(dst, codes)
	} else {
		e.FromBFloat16(dst, codes)
	}
}
