package kernel

import (
	"encoding/binary"
	"math/bits"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Weights of 8 bits of which at most four of eight neighbours along the sum are not zero, 2:4 among them, are multiplied as half as many; see [simd.Sifted].
// Panels, tiles and what becomes of sums are those of dense weights.

// group4of8 is the number of steps that have four weights.
const group4of8 = 8

// gain4of8 tells how many times as fast as all weights of k steps, in pieces of seg, those that are not zero are: 1 where they are not sifted. Most weights
// end the search within their first steps.
func gain4of8[W Weight](src source[W], k, seg int) float64 {
	if src.n == 0 || k == 0 || seg%group4of8 != 0 || src.n%32 > 0 && src.n%32 <= 16 { // of a last panel half would be enough
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

// pack4of8 makes panels that were packed of weights for which siftGain found a gain those of [simd.Sifted].
func (w *intPanels) pack4of8() {
	if w.sums == nil || w.f.Cols != 32 || w.f.Eights {
		return
	}
	if w.sparse4of8, _ = simd.SiftedKernels(); w.sparse4of8 != nil {
		w.sparse4of8.Pack(w.narrow)
	}
}

// name is that of the way of computing with panels, which begins with another word where they are sifted.
func (w *intPanels) name(way string) string {
	if w.sparse4of8 != nil {
		way = "sifted"
	}
	return way + "/" + w.f.Set.String()
}
