package libm

import "math"

// Sine and cosine on [-π/4, π/4]: polynomials in float64. The cosine's coefficients
// change their sign in the lower half of the circle.
var (
	sinTerms = [3]float64{-0x1.555545995a603p-3, 0x1.1107605230bc4p-7, -0x1.994eb3774cf24p-13}
	cosTerms = [5]float64{1, -0x1.ffffffd0c621cp-2, 0x1.55553e1068f19p-5, -0x1.6c087e89a359dp-10, 0x1.99343027bf8c3p-16}
)

// Scale of the quadrant count, in the upper eight bits, and the size of a quadrant.
const (
	quadrants = 0x1.45F306DC9C883p-1 * (1 << 24)
	quarter   = 0x1.921FB54442D18p0
)

// Sin returns the sine of x.
func Sin(x float32) float32 {
	if a := float32(math.Abs(float64(x))); a < 0x1p-12 {
		return x
	}
	return quadrant(x, 0)
}

// Cos returns the cosine of x.
func Cos(x float32) float32 {
	if a := float32(math.Abs(float64(x))); a < 0x1p-12 {
		return 1
	}
	return quadrant(x, 1)
}

// quadrant returns the sine of x, or the cosine if turn is 1.
func quadrant(x float32, turn int) float32 {
	const pio4, fast = float32(math.Pi / 4), 120
	v := float64(x)
	n := 0
	switch a := float32(math.Abs(v)); {
	case !(a <= math.MaxFloat32):
		return float32(math.NaN())
	case a >= fast:
		// Far from zero the remainder needs more digits than a product holds.
		if turn == 1 {
			return float32(math.Cos(v))
		}
		return float32(math.Sin(v))
	case a >= pio4:
		// Quadrants are counted in the upper eight bits of a scaled product.
		n = int((int32(v*quadrants) + 0x800000) >> 24)
		v -= float64(n) * quarter
	}
	square := v * v
	if n&3 == 1 || n&3 == 2 {
		v = -v
	}
	if (n^turn)&1 == 0 {
		s := sinTerms
		cube := v * square
		return float32(v + cube*s[0] + cube*square*(s[1]+square*s[2]))
	}
	c := cosTerms
	if n&2 != 0 {
		for i := range c {
			c[i] = -c[i]
		}
	}
	fourth := square * square
	return float32(c[0] + square*c[1] + fourth*c[2] + fourth*square*(c[3]+square*c[4]))
}
