package elementwise

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

type curveDef struct {
	domain, name string
	since        int
	make         func(c *op.Call) curve
	ints         bool                     // defined for integers too
	doubles      func(dst, src []float64) // the loop of float64; nil for none
}

// curves lists the operators that compute a function of one real variable.
func curves() []curveDef {
	fast := func(name string, since int, f32 func(dst, src []float32), f64 func(float64) float64) curveDef {
		return curveDef{name: name, since: since, make: func(*op.Call) curve { return curve{f32, f64} }}
	}
	with := func(name string, since int, mk func(c *op.Call) curve) curveDef {
		return curveDef{name: name, since: since, make: mk}
	}
	toWhole := func(name string, since int, f32 func(dst, src []float32), f64 func(float64) float64, k simd.Doubles) curveDef {
		d := fast(name, since, f32, f64)
		d.doubles = wholeDoubles(k, f64)
		return d
	}
	vectors := simd.CurveKernels()
	inDoubles := func(name string, since int, f32 func(dst, src []float32), f64 func(float64) float64, loop func(c *simd.Curves, dst, src []float64) int) curveDef {
		d := fast(name, since, f32, f64)
		if vectors.HasDoubles() {
			d.doubles = func(dst, src []float64) {
				for i := loop(vectors, dst, src); i < len(dst); i += loop(vectors, dst[i:], src[i:]) {
					for end := min(i+8, len(dst)); i < end; i++ {
						dst[i] = f64(src[i])
					}
				}
			}
		}
		return d
	}
	erf := fast("Erf", 9, vecmath.ErfTo, math.Erf)
	erf.ints = true
	shrink := with("Shrink", 9, shrinkCurve)
	shrink.ints = true
	list := []curveDef{
		fast("Acos", 7, vecmath.AcosTo, math.Acos), fast("Acosh", 9, vecmath.AcoshTo, math.Acosh), fast("Asin", 7, vecmath.AsinTo, math.Asin), fast("Asinh", 9, vecmath.AsinhTo, math.Asinh),
		fast("Atan", 7, vecmath.AtanTo, math.Atan), fast("Atanh", 9, vecmath.AtanhTo, math.Atanh), inDoubles("Cos", 7, vecmath.CosTo, math.Cos, (*simd.Curves).CosDoubles), fast("Cosh", 9, vecmath.CoshTo, math.Cosh),
		inDoubles("Sin", 7, vecmath.SinTo, math.Sin, (*simd.Curves).SinDoubles), fast("Sinh", 9, vecmath.SinhTo, math.Sinh), fast("Tan", 7, vecmath.TanTo, math.Tan),
		toWhole("Ceil", 1, element.Ceil, math.Ceil, simd.DoublesCeil), toWhole("Floor", 1, element.Floor, math.Floor, simd.DoublesFloor), toWhole("Round", 11, element.RoundEven, math.RoundToEven, simd.DoublesToEven),
		fast("Sqrt", 1, element.Sqrt, math.Sqrt), inDoubles("Exp", 1, vecmath.ExpTo, math.Exp, expDoubles), inDoubles("Log", 1, vecmath.LogTo, vecmath.LogDouble, all((*simd.Curves).LogDoubles)),
		inDoubles("Sigmoid", 1, vecmath.SigmoidTo, sigmoid64, all((*simd.Curves).SigmoidDoubles)), inDoubles("Tanh", 1, vecmath.TanhTo, math.Tanh, all((*simd.Curves).TanhDoubles)), erf, shrink,
		fast("Reciprocal", 1, element.Reciprocal, func(x float64) float64 { return 1 / x }),
		fast("Softplus", 1, vecmath.SoftplusTo, softplus64), fast("Softsign", 1, softsignTo, func(x float64) float64 { return x / (1 + math.Abs(x)) }),
		fast("Mish", 18, vecmath.MishTo, func(x float64) float64 { return x * math.Tanh(softplus64(x)) }),
		with("LeakyRelu", 1, leakyCurve), with("Elu", 1, eluCurve), with("Celu", 12, celuCurve), with("Selu", 1, seluCurve),
		with("HardSigmoid", 1, hardSigmoidCurve), with("HardSwish", 14, hardSwishCurve), with("Gelu", 20, geluCurve), with("Swish", 24, swishCurve),
		with("ThresholdedRelu", 1, thresholdCurve), with("ScaledTanh", 1, scaledTanhCurve), with("ParametricSoftplus", 1, parametricSoftplusCurve),
		with("Affine", 1, func(c *op.Call) curve {
			return affineCurve(c.Node.Attrs.Float("alpha", 1), c.Node.Attrs.Float("beta", 0))
		}),
		with("Scale", 1, func(c *op.Call) curve { return affineCurve(c.Node.Attrs.Float("scale", 1), 0) }),
	}
	quick := with("QuickGelu", 1, func(c *op.Call) curve { return swishBy(c.Node.Attrs.Float("alpha", 1.702)) })
	gelu := fast("Gelu", 1, vecmath.GeluTo, gelu64)
	quick.domain, gelu.domain = graph.Microsoft, graph.Microsoft
	return append(list, quick, gelu)
}

// wholeDoubles is f of many values, with SIMD where available.
func wholeDoubles(k simd.Doubles, f func(float64) float64) func(dst, src []float64) {
	return func(dst, src []float64) {
		for i := simd.ElementKernels().WholeDoubles(k, dst, src); i < len(dst); i++ {
			dst[i] = f(src[i])
		}
	}
}

// all wraps a loop that always processes all values.
func all(loop func(c *simd.Curves, dst, src []float64)) func(c *simd.Curves, dst, src []float64) int {
	return func(c *simd.Curves, dst, src []float64) int {
		loop(c, dst, src[:len(dst)])
		return len(dst)
	}
}

func expDoubles(c *simd.Curves, dst, src []float64) int {
	c.ExpDoubles(dst, src, 0)
	return len(dst)
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus64(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

func gelu64(x float64) float64 {
	if math.IsInf(x, -1) {
		return 0
	}
	return 0.5 * x * math.Erfc(-x/math.Sqrt2)
}

func softsignTo(dst, src []float32) {
	n := simd.ElementKernels().Softsign(dst[:len(src)], src)
	dst, src = dst[n:], src[n:]
	for i, x := range src {
		a := x
		if a < 0 {
			a = -a
		}
		dst[i] = x / (1 + a)
	}
}

func affineCurve(alpha, beta float32) curve {
	return curve{func(dst, src []float32) {
		for i, x := range src {
			dst[i] = alpha*x + beta
		}
	}, func(x float64) float64 { return float64(alpha)*x + float64(beta) }}
}

func shrinkCurve(c *op.Call) curve {
	lambd, bias := c.Node.Attrs.Float("lambd", 0.5), c.Node.Attrs.Float("bias", 0)
	f64 := func(x float64) float64 {
		switch {
		case x < -float64(lambd):
			return x + float64(bias)
		case x > float64(lambd):
			return x - float64(bias)
		}
		return 0
	}
	return curve{func(dst, src []float32) {
		n := simd.ElementKernels().Shrink(dst[:len(src)], src, lambd, bias)
		loopOf[float32](f64)(dst[n:], src[n:])
	}, f64}
}

func leakyCurve(c *op.Call) curve {
	a, by := c.Node.Attrs.Float("alpha", 0.01), element.PRelu[float32]().VectorScalar
	return curve{func(dst, src []float32) { by(dst[:len(src)], src, a) }, func(x float64) float64 {
		if x < 0 {
			return float64(a) * x
		}
		return x
	}}
}

// expCurve is x for positive x and k·(e^(x/s)-1) below, both times gamma: the form that Elu, Celu
// and Selu share.
func expCurve(k, s, gamma float32) curve {
	leaky := element.PRelu[float32]().VectorScalar
	return curve{func(dst, src []float32) {
		dst = dst[:len(src)]
		if s == 1 {
			n := expm1Below(dst, src, k, gamma, leaky)
			dst, src = dst[n:], src[n:]
		}
		for i, x := range src {
			if x < 0 {
				x = k * vecmath.Expm1(x/s)
			}
			dst[i] = gamma * x
		}
	}, func(x float64) float64 {
		if x < 0 {
			x = float64(k) * math.Expm1(x/float64(s))
		}
		return float64(gamma) * x
	}}
}

// expm1Below writes x for positive x and k·(e^x-1) below, both times gamma, with SIMD if
// available. It returns the number of values processed; leaky is the loop that multiplies
// negative values.
func expm1Below(dst, src []float32, k, gamma float32, leaky func(dst, a []float32, b float32)) int {
	f, e := simd.CurveKernels(), simd.ElementKernels()
	if f == nil || e == nil {
		return 0
	}
	n := f.LibmElu(dst, src)
	if k != 1 && n > 0 {
		leaky(dst[:n], dst[:n], k)
	}
	if gamma != 1 {
		e.MulScalar(dst[:n], dst[:n], gamma)
	}
	return n
}

func eluCurve(c *op.Call) curve { return expCurve(c.Node.Attrs.Float("alpha", 1), 1, 1) }

func celuCurve(c *op.Call) curve {
	a := c.Node.Attrs.Float("alpha", 1)
	return expCurve(a, a, 1)
}

func seluCurve(c *op.Call) curve {
	alpha, gamma := float32(1.67326319217681884765625), float32(1.05070102214813232421875)
	if c.Node.Version < 6 {
		alpha, gamma = 1.6732, 1.0507
	}
	return expCurve(c.Node.Attrs.Float("alpha", alpha), 1, c.Node.Attrs.Float("gamma", gamma))
}

func hardSigmoidCurve(c *op.Call) curve {
	a, b := c.Node.Attrs.Float("alpha", 0.2), c.Node.Attrs.Float("beta", 0.5)
	return curve{func(dst, src []float32) {
		if e := simd.ElementKernels(); e != nil {
			e.Scale(dst[:len(src)], src, a, b)
			e.Limit(dst[:len(src)], dst, 0, 1)
			return
		}
		for i, x := range src {
			y := a*x + b
			if y < 0 {
				y = 0
			}
			if y > 1 {
				y = 1
			}
			dst[i] = y
		}
	}, func(x float64) float64 { return max(0, min(1, float64(a)*x+float64(b))) }}
}

func hardSwishCurve(*op.Call) curve {
	return curve{func(dst, src []float32) {
		if k := simd.CurveKernels(); k != nil {
			k.HardSwish(dst[:len(src)], src)
			return
		}
		for i, x := range src {
			y := x*(1.0/6) + 0.5
			if y < 0 {
				y = 0
			}
			if y > 1 {
				y = 1
			}
			dst[i] = x * y
		}
	}, func(x float64) float64 { return x * max(0, min(1, x/6+0.5)) }}
}

// geluTanh is the approximation of Gelu by tanh.
var geluTanh = curve{vecmath.GeluTanhTo, func(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}}

func geluCurve(c *op.Call) curve {
	if c.Node.Attrs.Str("approximate", "none") == "tanh" {
		return geluTanh
	}
	return curve{vecmath.GeluTo, gelu64}
}

func swishCurve(c *op.Call) curve { return swishBy(c.Node.Attrs.Float("alpha", 1)) }

// swishBy is x·sigmoid(a·x).
func swishBy(a float32) curve {
	f64 := func(x float64) float64 { return x * sigmoid64(float64(a)*x) }
	if a == 1 {
		return curve{vecmath.SiluTo, f64}
	}
	mul := element.Mul[float32]()
	return curve{func(dst, src []float32) {
		workspace := floatWorkspaces.Get().(*[element.Block]float32)
		for len(src) > 0 {
			n := min(len(src), len(workspace))
			bell := workspace[:n]
			mul.VectorScalar(bell, src[:n], a)
			vecmath.SigmoidTo(bell, bell)
			mul.Vec(dst[:n], src[:n], bell)
			dst, src = dst[n:], src[n:]
		}
		floatWorkspaces.Put(workspace)
	}, f64}
}

func thresholdCurve(c *op.Call) curve {
	a := c.Node.Attrs.Float("alpha", 1)
	f64 := func(x float64) float64 {
		if x > float64(a) {
			return x
		}
		return 0
	}
	return curve{func(dst, src []float32) {
		n := simd.ElementKernels().Above(dst[:len(src)], src, a)
		loopOf[float32](f64)(dst[n:], src[n:])
	}, f64}
}

func scaledTanhCurve(c *op.Call) curve {
	a, b := c.Node.Attrs.Float("alpha", 1), c.Node.Attrs.Float("beta", 1)
	return curve{func(dst, src []float32) {
		for i, x := range src {
			dst[i] = a * vecmath.Tanh(b*x)
		}
	}, func(x float64) float64 { return float64(a) * math.Tanh(float64(b)*x) }}
}

func parametricSoftplusCurve(c *op.Call) curve {
	a, b := c.Node.Attrs.Float("alpha", 1), c.Node.Attrs.Float("beta", 1)
	return curve{func(dst, src []float32) {
		for i, x := range src {
			dst[i] = a * vecmath.Softplus(b*x)
		}
	}, func(x float64) float64 { return float64(a) * softplus64(float64(b)*x) }}
}
