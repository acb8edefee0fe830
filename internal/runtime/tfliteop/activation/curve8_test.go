package activation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
)

// TestCurve8 compares tables with the fixed-point functions, value by value.
func TestCurve8(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	for _, c := range []struct {
		name string
		f    curve8
	}{{"logistic", logistic8}, {"tanh", tanh8}} {
		for range 4000 {
			scale, zero := float32(math.Exp2(-14+16*r.Float64())), int32(r.IntN(256)-128)
			m := fixed.FromReal(float64(scale) * (1 << 27))
			radius := math.Floor(math.Ldexp(15*(1<<27), -m.Shift))
			got := c.f.table(scale, zero)
			for q := int32(-128); q < 128; q++ {
				v := q - zero
				var want int32
				switch {
				case float64(v) <= -radius:
					want = -128
				case float64(v) >= radius:
					want = 127
				default:
					want = min(max(fixed.RoundShift(c.f.exact(m.Apply(v)), c.f.shift)+c.f.offset, -128), 127)
				}
				if int32(int8(got[uint8(q)])) != want {
					t.Fatalf("%s of scale %v and zero point %d: %d at %d, want %d", c.name, scale, zero, int8(got[uint8(q)]), q, want)
				}
			}
		}
	}
}

// TestCurve8Near limits the errors of the functions in fixed point and in float32 to a tenth of
// what tables allow for.
func TestCurve8Near(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		f    curve8
		real func(float64) float64
	}{{"logistic", logistic8, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }}, {"tanh", tanh8, math.Tanh}} {
		code := math.Exp2(float64(31 - c.f.shift))
		var x, y [1]float32
		for a := int64(-15 << 27); a <= 15<<27; a += 40009 {
			want := code * c.real(float64(a)/(1<<27))
			x[0] = float32(a) / (1 << 27)
			c.f.rows(y[:], x[:])
			if whole := code * float64(c.f.exact(int32(a))) / (1 << 31); math.Abs(whole-want) > nearHalf/10 || math.Abs(code*float64(y[0])-want) > nearHalf/10 {
				t.Fatalf("%s of %v: %v in fixed point, %v in float32, want %v", c.name, x[0], whole, code*float64(y[0]), want)
			}
		}
	}
}
