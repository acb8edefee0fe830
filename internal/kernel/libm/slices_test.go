package libm

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// TestSlices checks that slice functions are bit-exact with scalar ones, for values of all
// magnitudes and lengths off whole registers, on each instruction set.
func TestSlices(t *testing.T) {
	for _, c := range []struct {
		name string
		to   func(dst, src []float32)
		one  func(float32) float32
	}{{"exp", ExpTo, Exp}, {"log", LogTo, Log}, {"sigmoid", SigmoidTo, Sigmoid}, {"tanh", TanhTo, Tanh}, {"elu", EluTo, elu}, {"sin", SinTo, Sin}, {"cos", CosTo, Cos}} {
		for _, set := range simd.Available() {
			undo := simd.Use(set)
			src, dst := make([]float32, 0, 1021), make([]float32, 1022)
			for _, limit := range []float32{expAbove, expBelow, sigmoidTop, sigmoidBottom, 89, -104, -18.714973, -1.0397207, -0.34657359, math.Pi / 4, 3 * math.Pi / 4, 0x1p-12, 120, 0, 0x1.04845ep+5, -0x1.f8cbb2p+5} {
				for i := range 9 {
					src = append(src, math.Float32frombits(math.Float32bits(limit)+uint32(i)-4))
				}
			}
			for bits := uint64(0); bits < 1<<32; bits += 20011 {
				src = append(src, math.Float32frombits(uint32(bits)))
				if n := len(src); n >= 1+int(bits%1021) || bits+20011 >= 1<<32 || n == cap(src) {
					dst[n] = 7
					c.to(dst[:n], src)
					for i, x := range src {
						want := c.one(x)
						if math.Float32bits(dst[i]) != math.Float32bits(want) && (dst[i] == dst[i] || want == want) {
							t.Fatalf("%v: %s(%v) of %d is %v, want %v", set, c.name, x, n, dst[i], want)
						}
					}
					if dst[n] != 7 {
						t.Fatalf("%v: %s of %d wrote behind the end", set, c.name, n)
					}
					src = src[:0]
				}
			}
			undo()
		}
	}
}
