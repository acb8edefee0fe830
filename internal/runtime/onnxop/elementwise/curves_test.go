package elementwise

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// definitions are the functions as ONNX defines them, with the default attributes.
var definitions = map[string]func(x float64) float64{
	"Acos": math.Acos, "Acosh": math.Acosh, "Asin": math.Asin, "Asinh": math.Asinh, "Atan": math.Atan, "Atanh": math.Atanh,
	"Cos": math.Cos, "Cosh": math.Cosh, "Sin": math.Sin, "Sinh": math.Sinh, "Tan": math.Tan, "Tanh": math.Tanh,
	"Ceil": math.Ceil, "Floor": math.Floor, "Round": math.RoundToEven, "Sqrt": math.Sqrt, "Exp": math.Exp, "Log": math.Log, "Erf": math.Erf,
	"Sigmoid":    func(x float64) float64 { return math.Exp(x) / (math.Exp(x) + 1) },
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Softplus":   func(x float64) float64 { return math.Log(math.Exp(x) + 1) },
	"Softsign":   func(x float64) float64 { return x / (math.Abs(x) + 1) },
	"Mish":       func(x float64) float64 { return x * math.Tanh(math.Log(math.Exp(x)+1)) },
	"LeakyRelu":  below(0, func(x float64) float64 { return 0.01 * x }),
	"Elu":        below(0, func(x float64) float64 { return math.Exp(x) - 1 }),
	"Celu":       below(0, func(x float64) float64 { return math.Exp(x) - 1 }),
	"Selu": func(x float64) float64 {
		return 1.05070102214813232421875 * below(0, func(x float64) float64 { return 1.67326319217681884765625 * (math.Exp(x) - 1) })(x)
	},
	"HardSigmoid":     func(x float64) float64 { return math.Max(0, math.Min(1, 0.2*x+0.5)) },
	"HardSwish":       func(x float64) float64 { return x * math.Max(0, math.Min(1, x/6+0.5)) },
	"Gelu":            func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
	"Swish":           func(x float64) float64 { return x / (math.Exp(-x) + 1) },
	"QuickGelu":       func(x float64) float64 { return x / (math.Exp(-1.702*x) + 1) },
	"ThresholdedRelu": beyond(math.Inf(-1), 1),
	"Shrink":          beyond(-0.5, 0.5),
	"Affine":          func(x float64) float64 { return x }, "Scale": func(x float64) float64 { return x },
}

// below is f below the bound and x from there on.
func below(bound float64, f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < bound {
			return f(x)
		}
		return x
	}
}

// beyond is x outside two bounds and zero between them and for NaN.
func beyond(lo, hi float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < lo || x > hi {
			return x
		}
		return 0
	}
}

// TestCurves compares the loops of both types with the definitions, over the usual range and at
// the edges.
func TestCurves(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, e := range curves() {
		def := definitions[e.name]
		if def == nil {
			continue // needs options
		}
		compared++
		t.Run(e.domain+":"+e.name, func(t *testing.T) {
			t.Parallel()
			x := tensor.New(tensor.Float32, 4003)
			v := tensor.Of[float32](x)
			for i := range v {
				v[i] = (float32(i) - 2000) / 100
			}
			v[4001], v[4002] = 0, float32(math.NaN())
			n := optest.Node{Domain: e.domain, Op: e.name, Version: 28}
			wide := tensor.New(tensor.Float64, len(v))
			tensor.Read(tensor.Of[float64](wide), x, 0)
			for _, in := range []*tensor.Tensor{x, wide} {
				got := values(t, n, in)
				if len(got) != len(v) {
					t.Fatalf("%d elements, want %d", len(got), len(v))
				}
				for i, f := range v {
					// Attributes are float32 numbers; e^x reaches 5e8 here.
					if w := def(float64(f)); !optest.Within(got[i], w, 2e-6, 2e-6) {
						t.Fatalf("%v: f(%v) is %v, want %v", in.Type, f, got[i], w)
					}
				}
			}
		})
	}
	if compared < 35 {
		t.Errorf("%d curves have a definition", compared)
	}
}

func values(t *testing.T, n optest.Node, x *tensor.Tensor) []float64 {
	t.Helper()
	out, err := optest.Run(Defs(), n, x)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tensor.All[float64](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return v
}
