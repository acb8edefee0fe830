package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestAcrossFloats compares each instruction set with the definition, bit by bit.
func TestAcrossFloats(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f := ResizeKernels()
		r := rand.New(rand.NewPCG(7, 1))
		for channels := 1; channels < 70; channels++ {
			if !f.HasFloats(channels) {
				continue
			}
			const in, out = 5, 9
			top, bottom := make([]float32, in*channels), make([]float32, in*channels)
			fill(r, top, true)
			fill(r, bottom, true)
			taps, want := make([]Tap, out), make([]float32, out*channels)
			for i := range taps {
				lo, hi, by := r.IntN(in)*channels, r.IntN(in)*channels, r.Float32()
				taps[i] = Tap{Lo: int32(4 * lo), Hi: int32(4 * hi), Left: math.Float32bits(1 - by), Right: math.Float32bits(by)}
				for c := range channels {
					sum := float32(top[lo+c]*(1-by)) + float32(bottom[lo+c]*(1-by))
					sum += float32(top[hi+c] * by)
					want[i*channels+c] = sum + float32(bottom[hi+c]*by) + 0
				}
			}
			got := make([]float32, len(want)+1)
			got[len(want)] = 3
			f.AcrossFloats(got, top, bottom, taps, channels)
			for i, v := range append(want, 3) {
				if !same(got[i], v) {
					t.Fatalf("%d channels: value %d is %v, want %v", channels, i, got[i], v)
				}
			}
		}
	})
}
