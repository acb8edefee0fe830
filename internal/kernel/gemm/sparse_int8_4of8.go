package gemm

import (
	"encoding/binary"
	"math/bits"

	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// 4:8 structured sparsity: 8-bit weights of which at most four of eight neighbours along K are
// nonzero, including 2:4, take half the multiplications; see [simd.Sparse4of8]. Panels, tiles and
// output are as for dense weights.

// group4of8 is the number of K steps that hold four weights.
const group4of8 = 8

// Gain4of8 returns the speed-up over dense weights of k steps in segments of seg; 1 if the
// weights are not 4:8 sparse. Most weights end the check within their first steps.
func Gain4of8[W quantise.Weight](src Source[W], k, seg int) float64 {
	// half of the last panel would be enough
	if src.N == 0 || k == 0 || seg%group4of8 != 0 || src.N%32 > 0 && src.N%32 <= 16 {
		return 1
	}
	bytes := weightBytes(src)
	zeros := uint64(uint8(src.Zero)) * eachByte
	for r := range src.N {
		for i := 0; i < k; i += group4of8 {
			some := 0
			if at := r*src.Vec + i*src.Elem; bytes != nil {
				some = bits.OnesCount64(nonZeroBytes(binary.LittleEndian.Uint64(bytes[at:]) ^ zeros))
			} else {
				for j := range group4of8 {
					if int32(src.V[at+j*src.Elem]) != src.Zero {
						some++
					}
				}
			}
			if some > group4of8/2 {
				return 1
			}
		}
	}
	_, gain := simd.Sparse4of8Kernels()
	return gain
}

// Pack4of8 converts packed panels, for which Gain4of8 found a gain, to the layout of
// [simd.Sparse4of8].
func (w *IntPanels) Pack4of8() {
	if w.Sums == nil || w.F.Cols != 32 || w.F.QuadPairs {
		return
	}
	if w.Sparse4of8, _ = simd.Sparse4of8Kernels(); w.Sparse4of8 != nil {
		w.Sparse4of8.Pack(w.Narrow)
	}
}

// Name returns the kernel name; it differs for 4:8 sparse panels.
func (w *IntPanels) Name(way string) string {
	if w.Sparse4of8 != nil {
		way = "sifted"
	}
	return way + "/" + w.F.Set.String()
}
