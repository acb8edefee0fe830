package kernel

import (
	"encoding/binary"
	"math/bits"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// Weights of 8 bits of which at most four of eight neighbours along the sum are not zero, 2:4 among them, are multiplied as half as many; see [simd.Sifted].
// Panels, tiles and what becomes of sums are those of dense weights.

// siftedStep is the number of steps that have four weights.
const siftedStep = 8

// siftGain tells how many times as fast as all weights of k steps, in pieces of seg, those that are not zero are: 1 where they are not sifted. Most weights
// end the search within their first steps.
func siftGain[W Weight](src source[W], k, seg int) float64 {
	if src.n == 0 || k == 0 || seg%siftedStep != 0 || src.n%32 > 0 && src.n%32 <= 16 { // of a last panel half would be enough
		return 1
	}
	bytes := codesOf(src)
	zeros := uint64(uint8(src.zero)) * eachByte
	for r := range src.n {
		for i := 0; i < k; i += siftedStep {
			some := 0
			if at := r*src.vec + i*src.elem; bytes != nil {
				some = bits.OnesCount64(others(binary.LittleEndian.Uint64(bytes[at:]) ^ zeros))
			} else {
				for j := range siftedStep {
					if int32(src.v[at+j*src.elem]) != src.zero {
						some++
					}
				}
			}
			if some > siftedStep/2 {
				return 1
			}
		}
	}
	_, gain := simd.SiftedKernels()
	return gain
}

// sift makes panels that were packed of weights for which siftGain found a gain those of [simd.Sifted].
func (w *intPanels) sift() {
	if w.sums == nil || w.f.Cols != 32 || w.f.Eights {
		return
	}
	if w.sifted, _ = simd.SiftedKernels(); w.sifted != nil {
		w.sifted.Pack(w.narrow)
	}
}

// name is that of the way of computing with panels, which begins with another word where they are sifted.
func (w *intPanels) name(way string) string {
	if w.sifted != nil {
		way = "sifted"
	}
	return way + "/" + w.f.Set.String()
}
