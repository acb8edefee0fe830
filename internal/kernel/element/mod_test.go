package element

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRemainder compares with math.Mod, which is exact.
func TestRemainder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 1))
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 3, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-45, math.MaxFloat32}
	one := func() float32 {
		switch r.IntN(4) {
		case 0:
			return special[r.IntN(len(special))]
		case 1:
			return math.Float32frombits(r.Uint32())
		case 2:
			return float32(r.IntN(1000) - 500)
		}
		return float32(r.NormFloat64())
	}
	for range 200000 {
		x, y := one(), one()
		got, want := remainder(x, y), math.Mod(float64(x), float64(y))
		if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
			t.Fatalf("%v by %v leaves %v, want %v", x, y, got, want)
		}
	}
}
