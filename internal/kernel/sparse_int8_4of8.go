package kernel

import (
	"encoding/binary"
	"math/bits"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// 4:8 structured sparsity: 8-bit weights of which at most four of eight neighbours along K are
// nonzero, including 2:4, take half the multiplications; see [simd.Sifted]. Panels, tiles and
// output are as for dense weights.

// group4of8 is the number of K steps that hold four weights.
const group4of8 = 8

// gain4of8 returns the speed-up over dense weights of k steps in segments of seg; 1 if the
// weights are not 4:8 sparse. Most weights end the check within their first steps.
func gain4of8[W Weight](src source[W], k, seg int) float64 {
	// half of the last panel would be enough
	if src.n == 0 || k == 0 || seg%group4of8 != 0 || src.n%32 > 0 && src.n%32 <= 16 {
		return 1
	}
	bytes := weightBytes(src)
	zeros := uint64(uint8(src.zero)) * eachByte
	for r := range src.n {
		for i := 0; i < k; i += group4of8 {
			some := 0
			if at := r*src.vec + i*src.elem; bytes != nil {
				some = bits.OnesCount64(nonZeroBytes(binary.LittleEndian.Uint64(bytes[at:]) ^ zeros))
			} else {
				for j := range group4of8 {
					if int32(src.v[at+j*src.elem]) != src.zero {
						some++
					}
				}
			}
			if some > group4of8/2 {
				return 1
			}
		}
	}
	_, gain := simd.SiftedKernels()
	return gain
}

// pack4of8 converts packed panels, for which gain4of8 found a gain, to the layout of
// [simd.Sifted].
func (w *intPanels) pack4of8() {
	if w.sums == nil || w.f.Cols != 32 || w.f.Eights {
		return
	}
	if w.sparse4of8, _ = simd.SiftedKernels(); w.sparse4of8 != nil {
		w.sparse4of8.Pack(w.narrow)
	}
}

// name returns the kernel name; it differs for 4:8 sparse panels.
func (w *intPanels) name(way string) string {
	if w.sparse4of8 != nil {
		way = "sifted"
	}
	return way + "/" + w.f.Set.String()
}
