package libm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ulps returns the distance of two floats of the same sign in units in the last place.
func ulps(a, b float32) int64 {
	d := int64(int32(math.Float32bits(a))) - int64(int32(math.Float32bits(b)))
	return max(d, -d)
}

func TestAccuracy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		f       func(float32) float32
		want    func(float64) float64
		lo, hi  float64
		ulps    int64
		special map[float32]float32
	}{
		{"exp", Exp, math.Exp, -87, 88, 1, map[float32]float32{0: 1, float32(math.Inf(-1)): 0, float32(math.Inf(1)): float32(math.Inf(1)), 89: float32(math.Inf(1)), -200: 0}},
		{"log", Log, math.Log, 1e-3, 1e6, 1, map[float32]float32{1: 0, 0: float32(math.Inf(-1)), 0x1p-149: -103.2789306640625, float32(math.Inf(1)): float32(math.Inf(1))}},
		{"tanh", Tanh, math.Tanh, -25, 25, 2, map[float32]float32{0: 0, 30: 1, -30: -1, 0x1p-60: 0x1p-60, float32(math.Inf(-1)): -1}},
		{"expm1", Expm1, math.Expm1, -30, 43, 1, map[float32]float32{0: 0, -200: -1, 0x1p-40: 0x1p-40}},
		{"sin", Sin, math.Sin, -119, 119, 1, map[float32]float32{0: 0, 0x1p-20: 0x1p-20, 200: -0.8732972972139946, 1e9: 0.5458434494486996}},
		{"cos", Cos, math.Cos, -119, 119, 1, map[float32]float32{0: 1, 0x1p-20: 1, 200: 0.4871876750070059, 1e9: 0.8378871813639024}},
		{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -8, 16.6, 3, map[float32]float32{0: 0.5, 17: 1, -200: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 1))
			for range 200000 {
				x := float32(c.lo + (c.hi-c.lo)*r.Float64())
				if got, want := c.f(x), float32(c.want(float64(x))); ulps(got, want) > c.ulps {
					t.Fatalf("%s(%v) = %v, want %v", c.name, x, got, want)
				}
			}
			for x, want := range c.special {
				if got := c.f(x); got != want {
					t.Errorf("%s(%v) = %v, want %v", c.name, x, got, want)
				}
			}
			if got := c.f(float32(math.NaN())); got == got {
				t.Errorf("%s(NaN) = %v", c.name, got)
			}
		})
	}
}

// TestBits pins results in which the library differs from correct rounding.
func TestBits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		f       func(float32) float32
		x, want uint32
	}{
		{"exp", Exp, 0xbc013e48, 0x3f7dfd10},
		{"exp", Exp, 0xbc01716f, 0x3f7dfc45},
		{"exp", Exp, 0xbc0313bf, 0x3f7df5c9},
		{"exp", Exp, 0xbc03ebb9, 0x3f7df270},
		{"log", Log, 0x3c0cc9c0, 0xc09837bf},
		{"log", Log, 0x3c14371a, 0xc0969299},
		{"log", Log, 0x3c14494a, 0xc0968eac},
		{"log", Log, 0x3c1a5c52, 0xc09545c9},
		{"tanh", Tanh, 0x3f000003, 0x3eec9aa2},
		{"tanh", Tanh, 0x3f0000c5, 0x3eec9bd4},
		{"tanh", Tanh, 0x3f000126, 0x3eec9c6e},
		{"tanh", Tanh, 0x3f000187, 0x3eec9d07},
	} {
		if got := math.Float32bits(c.f(math.Float32frombits(c.x))); got != c.want {
			t.Errorf("%s(%#x) = %#x, want %#x", c.name, c.x, got, c.want)
		}
	}
}
