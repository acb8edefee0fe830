package vecmath

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// ulps returns the distance of got from the exact value in units in the last place of float32 at
// want.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case math.IsNaN(want):
		if got != got {
			return 0
		}
		return math.Inf(1)
	case math.IsInf(float64(w), 0) || math.IsInf(float64(got), 0):
		if got == w {
			return 0
		}
		return math.Inf(1)
	}
	u := math.Abs(float64(math.Nextafter32(w, float32(math.Inf(1)))) - float64(w))
	if w == math.MaxFloat32 {
		u = math.Ldexp(1, 104)
	}
	return math.Abs(float64(got)-want) / u
}

func TestAccuracy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		f    func(float32) float32
		want func(float64) float64
		max  float64
	}{
		{"Exp", Exp, math.Exp, 0.51},
		{"Expm1", Expm1, math.Expm1, 0.51},
		{"Sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 0.51},
		{"Silu", Silu, func(x float64) float64 {
			if math.IsInf(x, -1) {
				return math.NaN()
			}
			return x / (1 + math.Exp(-x))
		}, 0.6},
		{"Tanh", Tanh, math.Tanh, 0.51},
		{"Log", Log, math.Log, 0.51},
		{"Log1p", Log1p, math.Log1p, 0.51},
		{"Softplus", Softplus, func(x float64) float64 {
			if x > 40 {
				return x
			}
			return math.Log1p(math.Exp(x))
		}, 0.51},
		{"Erf", Erf, math.Erf, 0.51},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			worst, at := 0.0, float32(0)
			try := func(x float32) {
				if e := ulps(test.f(x), test.want(float64(x))); e > worst {
					worst, at = e, x
				}
			}
			// A prime step through the bit patterns visits every exponent.
			for b := uint64(0); b < 1<<32; b += 10007 {
				try(math.Float32frombits(uint32(b)))
			}
			for i := range 200001 {
				try(float32(i-100000) / 5000)
			}
			for _, x := range []float32{0, 1, -1, 88.72, 88.73, -103.97, -103.98, -87.34} {
				try(x)
			}
			if worst > test.max {
				t.Errorf("%v ulp at %v: got %v, want %v", worst, at, test.f(at), test.want(float64(at)))
			}
		})
	}
}

func TestSignedZeros(t *testing.T) {
	t.Parallel()
	negative := float32(math.Copysign(0, -1))
	for name, f := range map[string]func(float32) float32{"Tanh": Tanh, "Erf": Erf, "Expm1": Expm1, "Silu": Silu, "Gelu": Gelu, "GeluTanh": GeluTanh} {
		if got := f(negative); math.Float32bits(got) != 1<<31 {
			t.Errorf("%s(-0) = %v, want -0", name, got)
		}
		if got := f(0); math.Float32bits(got) != 0 {
			t.Errorf("%s(0) = %v, want 0", name, got)
		}
	}
}

func TestGelu(t *testing.T) {
	t.Parallel()
	for i := -20000; i <= 20000; i++ {
		x := float32(i) / 1000
		d := float64(x)
		want := 0.5 * d * math.Erfc(-d/math.Sqrt2)
		if got := Gelu(x); math.Abs(float64(got)-want) > 1e-9+6e-8*math.Abs(want) {
			t.Fatalf("Gelu(%v) = %v, want %v", x, got, want)
		}
		want = d / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(d+0.044715*d*d*d)))
		if got := GeluTanh(x); ulps(got, want) > 0.6 {
			t.Fatalf("GeluTanh(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestPow(t *testing.T) {
	t.Parallel()
	for _, x := range []float32{-3, -1, -0.5, 0, 1e-40, 1e-3, 0.5, 1, 1.0001, 2, 3, 10, 1e10, float32(math.Inf(1)), float32(math.NaN())} {
		for _, y := range []float32{-50, -2, -1, -0.5, 0, 0.3, 0.5, 1, 2, 3, 17.5, 300, float32(math.Inf(-1)), float32(math.NaN())} {
			if e := ulps(Pow(x, y), math.Pow(float64(x), float64(y))); e > 0.6 {
				t.Errorf("Pow(%v, %v) = %v, want %v (%v ulp)", x, y, Pow(x, y), math.Pow(float64(x), float64(y)), e)
			}
		}
	}
}

// TestPowRandom covers results over the whole range.
func TestPowRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for range 500000 {
		x := float32(math.Exp(r.NormFloat64() * 10))
		y := float32(r.NormFloat64() * 90 / (math.Abs(math.Log(float64(x))) + 0.01))
		if e := ulps(Pow(x, y), math.Pow(float64(x), float64(y))); e > worst {
			worst = e
		}
	}
	if worst > 0.6 {
		t.Errorf("worst error %v ulp", worst)
	}
}

func TestSlices(t *testing.T) {
	t.Parallel()
	src := []float32{float32(math.Inf(-1)), -1000, -120, -8, -3, -0.1, 0, 0.1, 3, 7, 120, 1000, float32(math.Inf(1)), float32(math.NaN())}
	tests := []struct {
		name string
		to   func(dst, src []float32)
		f    func(float32) float32
		// With SIMD kernels, see TestSingles of package simd: ulps, where f itself has an error
		// of half a ulp, or the absolute error.
		units, near float64
	}{
		{"Exp", ExpTo, Exp, 0, 0},
		{"Sigmoid", SigmoidTo, Sigmoid, 3, 0},
		{"Silu", SiluTo, Silu, 3.5, 0},
		{"Tanh", TanhTo, Tanh, 3, 0},
		{"Log", LogTo, Log, 0, 0},
		{"Erf", ErfTo, Erf, 3, 0},
		{"Gelu", GeluTo, Gelu, 3.5, 1e-7},
		{"GeluTanh", GeluTanhTo, GeluTanh, 3.5, 1e-7},
	}
	for _, test := range tests {
		dst := make([]float32, len(src))
		test.to(dst, src)
		for i, x := range src {
			w := test.f(x)
			if d := math.Abs(float64(dst[i]) - float64(w)); simd.CurveKernels() != nil && (ulps(dst[i], float64(w)) <= test.units || d <= test.near) {
				continue
			}
			if dst[i] != w && (w == w || dst[i] == dst[i]) {
				t.Errorf("%sTo(%v) = %v, want %v", test.name, x, dst[i], w)
			}
		}
	}
	dst := make([]float32, 3)
	if got := ExpSumTo(dst, []float32{1, 2, 3}, 3); math.Abs(float64(got)-(math.Exp(-2)+math.Exp(-1)+1)) > 1e-6 {
		t.Errorf("ExpSumTo = %v", got)
	}
}

// TestLogDouble covers powers of two, including subnormal ones.
func TestLogDouble(t *testing.T) {
	for e := -1074; e < 1024; e++ {
		x, want := math.Ldexp(1, e), float64(e)*math.Ln2
		// Both are rounded two or three times; a ulp of the largest ones is 1.1e-13.
		if got := LogDouble(x); math.Abs(got-want) > 3e-13 {
			t.Errorf("LogDouble(%v) = %v, want %v", x, got, want)
		}
	}
	if got := LogDouble(0); !math.IsInf(got, -1) {
		t.Errorf("LogDouble(0) = %v", got)
	}
	for _, x := range []float64{-1, -5e-324, math.NaN()} {
		if got := LogDouble(x); got == got {
			t.Errorf("LogDouble(%v) = %v", x, got)
		}
	}
}

func benchmark(b *testing.B, f func(dst, src []float32)) {
	src, dst := make([]float32, 4096), make([]float32, 4096)
	for i := range src {
		src[i] = float32(i-2048) / 400
	}
	b.SetBytes(4096 * 4)
	for b.Loop() {
		f(dst, src)
	}
}

func BenchmarkExp(b *testing.B)     { benchmark(b, ExpTo) }
func BenchmarkTanh(b *testing.B)    { benchmark(b, TanhTo) }
func BenchmarkSigmoid(b *testing.B) { benchmark(b, SigmoidTo) }
func BenchmarkErf(b *testing.B)     { benchmark(b, ErfTo) }
func BenchmarkGelu(b *testing.B)    { benchmark(b, GeluTo) }
func BenchmarkSilu(b *testing.B)    { benchmark(b, SiluTo) }
func BenchmarkLog(b *testing.B)     { benchmark(b, LogTo) }
