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
		if f == nil {
			t.Skip("plain Go has no lines of its own")
		}
		r := rand.New(rand.NewPCG(7, 1))
		for channels := 1; channels < 70; channels++ {
			const in, out = 5, 9
			line := in*channels + r.IntN(2)*Slack
			top, bottom := make([]float32, line), make([]float32, line)
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
			f.AcrossFloats(got[:len(want)], top, bottom, taps, channels)
			for i, v := range append(want, 3) {
				if !same(got[i], v) {
					t.Fatalf("%d channels: value %d is %v, want %v", channels, i, got[i], v)
				}
			}
		}
	})
}

// TestResizedBytes compares each instruction set with the definition.
func TestResizedBytes(t *testing.T) {
	everySet(t, func(t *testing.T) {
		f := ResizeKernels()
		if f == nil {
			t.Skip("plain Go has no lines of its own")
		}
		r := rand.New(rand.NewPCG(8, 1))
		for channels := 1; channels < 40; channels++ {
			const in, out = 5, 9
			top, bottom := make([]int8, in*channels), make([]int8, in*channels)
			for i := range top {
				top[i], bottom[i] = int8(r.Uint32()), int8(r.Uint32())
			}
			down := r.Int32N(1025)
			mixed := make([]int32, in*channels+1+r.IntN(2)*Slack)
			mixed[in*channels] = 7
			f.MixBytes(mixed[:in*channels], top, bottom, 1024-down, down)
			if mixed[in*channels] != 7 {
				t.Fatalf("%d channels: a number behind the line is written", channels)
			}
			taps, want := make([]Tap, out), make([]int8, out*channels)
			for i := range taps {
				lo, hi, by := r.IntN(in)*channels, r.IntN(in)*channels, r.Int32N(1025)
				taps[i] = Tap{Lo: int32(4 * lo), Hi: int32(4 * hi), Left: uint32(1024 - by), Right: uint32(by)}
				for c := range channels {
					mix := func(i int) float64 { return float64(int32(top[i])*(1024-down) + int32(bottom[i])*down) }
					want[i*channels+c] = int8(math.Round((mix(lo+c)*float64(1024-by) + mix(hi+c)*float64(by)) / (1 << 20)))
				}
			}
			got := make([]int8, len(want)+1)
			got[len(want)] = 3
			f.AcrossBytes(got[:len(want)], mixed, taps, channels)
			for i, v := range append(want, 3) {
				if got[i] != v {
					t.Fatalf("%d channels: value %d is %d, want %d", channels, i, got[i], v)
				}
			}
		}
	})
}
