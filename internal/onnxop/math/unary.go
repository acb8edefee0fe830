package math

import (
	"math"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// curve is a function of one real number: a loop for float32, where there is a
// fast one, and the function itself for float64 and for what has no loop.
type curve struct {
	f32 func(dst, src []float32)
	f64 func(float64) float64
}

// unary is a prepared element-wise operator of one operand.
type unary[T, R any] struct {
	f    func(dst []R, src []T)
	in   []T
	out  []R
	body func(worker, lo, hi int)
}

// runUnary applies f to ranges of input 0 in parallel.
func runUnary[T, R tensor.Number](f func(dst []R, src []T)) op.Run {
	r := &unary[T, R]{f: f}
	r.body = func(_, lo, hi int) { r.f(r.out[lo:hi], r.in[lo:hi]) }
	return func(c *op.Call) error {
		r.in, r.out = tensor.Of[T](c.In[0]), tensor.Of[R](c.Out[0])
		c.Pool.ForWorker(len(r.out), grain/4, r.body)
		r.in, r.out = nil, nil
		return nil
	}
}

// loopOf turns a function of float64 into a loop over any type.
func loopOf[T tensor.Number](f func(float64) float64) func(dst, src []T) {
	return func(dst, src []T) {
		src = src[:len(dst)]
		for i, x := range src {
			dst[i] = T(f(float64(x)))
		}
	}
}

// prepareCurve makes an operator of real functions whose attributes make the
// curve. With ints set, integers are computed in float64 and truncated.
func prepareCurve(mk func(c *op.Call) curve, ints bool) prepare {
	return Widen(func(c *op.Call) (op.Run, error) {
		f := mk(c)
		switch t := c.In[0].Type; {
		case t == tensor.Float32 && f.f32 != nil:
			return runUnary(f.f32), nil
		case t == tensor.Float32:
			return runUnary(loopOf[float32](f.f64)), nil
		case t == tensor.Float64:
			return runUnary(loopOf[float64](f.f64)), nil
		case ints:
			if run := integerRun(t, f.f64); run != nil {
				return run, nil
			}
		}
		return nil, badType(c, 0)
	})
}

func integerRun(t tensor.Type, f func(float64) float64) op.Run {
	switch t {
	case tensor.Int8:
		return runUnary(loopOf[int8](f))
	case tensor.Int16:
		return runUnary(loopOf[int16](f))
	case tensor.Int32:
		return runUnary(loopOf[int32](f))
	case tensor.Int64:
		return runUnary(loopOf[int64](f))
	case tensor.Uint8:
		return runUnary(loopOf[uint8](f))
	case tensor.Uint16:
		return runUnary(loopOf[uint16](f))
	case tensor.Uint32:
		return runUnary(loopOf[uint32](f))
	case tensor.Uint64:
		return runUnary(loopOf[uint64](f))
	}
	return nil
}

// exact names operators of one number that integers compute exactly.
type exact uint8

const (
	absolute exact = iota
	negative
	signum
	rectify
	complement
)

func prepareExact(c *op.Call, k exact) (op.Run, error) {
	t := c.In[0].Type
	if k == complement && t.IsFloat() {
		return nil, badType(c, 0)
	}
	switch t {
	case tensor.Float32:
		return runUnary(realExact[float32](k)), nil
	case tensor.Float64:
		return runUnary(realExact[float64](k)), nil
	case tensor.Int8:
		return runUnary(intExact[int8](k)), nil
	case tensor.Int16:
		return runUnary(intExact[int16](k)), nil
	case tensor.Int32:
		return runUnary(intExact[int32](k)), nil
	case tensor.Int64:
		return runUnary(intExact[int64](k)), nil
	case tensor.Uint8:
		return runUnary(intExact[uint8](k)), nil
	case tensor.Uint16:
		return runUnary(intExact[uint16](k)), nil
	case tensor.Uint32:
		return runUnary(intExact[uint32](k)), nil
	case tensor.Uint64:
		return runUnary(intExact[uint64](k)), nil
	}
	return nil, badType(c, 0)
}

// halfExact works on the bits of halves, without the way over float32. inf is
// the code of infinity: larger magnitudes are NaN. It returns nil for operators
// that have no such form.
func halfExact(k exact, inf uint16) func(dst, src []uint16) {
	switch k {
	case absolute:
		return func(dst, src []uint16) {
			src = src[:len(dst)]
			for i, h := range src {
				dst[i] = h &^ 0x8000
			}
		}
	case negative:
		return func(dst, src []uint16) {
			src = src[:len(dst)]
			for i, h := range src {
				dst[i] = h ^ 0x8000
			}
		}
	case rectify:
		return func(dst, src []uint16) {
			src = src[:len(dst)]
			for i, h := range src {
				if h > 0x8000 && h <= 0x8000|inf {
					h = 0
				}
				dst[i] = h
			}
		}
	}
	return nil
}

func prepareHalfExact(k exact) prepare {
	wide := Widen(func(c *op.Call) (op.Run, error) { return prepareExact(c, k) })
	return func(c *op.Call) (op.Run, error) {
		inf := map[tensor.Type]uint16{tensor.Float16: 0x7c00, tensor.BFloat16: 0x7f80}[c.In[0].Type]
		if f := halfExact(k, inf); f != nil && inf != 0 {
			return runUnary(f), nil
		}
		return wide(c)
	}
}

func realExact[T real](k exact) func(dst, src []T) {
	if k == absolute {
		return func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				if x <= 0 { // turns -0 into 0 as well
					x = 0 - x
				}
				dst[i] = x
			}
		}
	}
	return numberExact[T](k)
}

func intExact[T integer](k exact) func(dst, src []T) {
	if k == complement {
		return func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				dst[i] = ^x
			}
		}
	}
	return numberExact[T](k)
}

func numberExact[T tensor.Number](k exact) func(dst, src []T) {
	switch k {
	case absolute:
		return func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				if x < 0 {
					x = -x
				}
				dst[i] = x
			}
		}
	case negative:
		return func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				dst[i] = -x
			}
		}
	case signum:
		return func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				switch {
				case x > 0:
					x = 1
				case x < 0:
					x = 0
					x--
				}
				dst[i] = x
			}
		}
	}
	return func(dst, src []T) { // rectify; NaN passes
		src = src[:len(dst)]
		for i, x := range src {
			if x < 0 {
				x = 0
			}
			dst[i] = x
		}
	}
}

// classify makes IsNaN and IsInf: a predicate on float32, which holds every
// value of the narrower types.
func classify(mk func(c *op.Call) func(float64) bool) prepare {
	return func(c *op.Call) (op.Run, error) {
		f := mk(c)
		switch t := c.In[0].Type; {
		case t == tensor.Float64:
			return runUnary(func(dst []uint8, src []float64) {
				for i, x := range src {
					dst[i] = truth(f(x))
				}
			}), nil
		case t == tensor.Float32:
			return runUnary(func(dst []uint8, src []float32) {
				for i, x := range src {
					dst[i] = truth(f(float64(x)))
				}
			}), nil
		case t == tensor.Float16:
			return runUnary(func(dst []uint8, src []uint16) {
				for i, x := range src {
					dst[i] = truth(f(float64(tensor.F16ToF32(x))))
				}
			}), nil
		case t == tensor.BFloat16:
			return runUnary(func(dst []uint8, src []uint16) {
				for i, x := range src {
					dst[i] = truth(f(float64(tensor.BF16ToF32(x))))
				}
			}), nil
		case t.Bits() == 8 && tensor.Float8Table(t) != nil:
			tab := tensor.Float8Table(t)
			return runUnary(func(dst, src []uint8) {
				for i, x := range src {
					dst[i] = truth(f(float64(tab[x])))
				}
			}), nil
		}
		return nil, badType(c, 0)
	}
}

func isInf(c *op.Call) func(float64) bool {
	pos, neg := c.Node.Attrs.Bool("detect_positive", true), c.Node.Attrs.Bool("detect_negative", true)
	return func(x float64) bool { return pos && math.IsInf(x, 1) || neg && math.IsInf(x, -1) }
}

func prepareNot(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, badType(c, 0)
	}
	return runUnary(func(dst, src []uint8) {
		for i, b := range src {
			dst[i] = b ^ 1
		}
	}), nil
}

func unaryDefs() []op.Def {
	var out []op.Def
	for _, e := range []struct {
		name  string
		since int
		kind  exact
		types []tensor.Type
	}{
		{"Abs", 1, absolute, numberTypes},
		{"Neg", 1, negative, join(floatTypes, signedTypes)},
		{"Sign", 9, signum, numberTypes},
		{"Relu", 1, rectify, join(floatTypes, signedTypes)},
		{"BitwiseNot", 18, complement, integerTypes},
	} {
		out = append(out, op.Def{
			Domain: graph.ONNX, Name: e.name, Since: e.since, Types: e.types, Infer: sameAs, InPlace: true,
			Prepare: prepareHalfExact(e.kind),
		})
	}
	out = append(out,
		op.Def{Domain: graph.ONNX, Name: "Not", Since: 1, Types: boolTypes, Infer: sameAs, InPlace: true, Prepare: prepareNot},
		op.Def{
			Domain: graph.ONNX, Name: "IsNaN", Since: 9, Types: join(floatTypes, float8Types), Infer: sameAsBool,
			Prepare: classify(func(*op.Call) func(float64) bool { return math.IsNaN }),
		},
		op.Def{Domain: graph.ONNX, Name: "IsInf", Since: 10, Types: join(floatTypes, float8Types), Infer: sameAsBool, Prepare: classify(isInf)},
		op.Def{Domain: graph.ONNX, Name: "Clip", Since: 1, Types: numberTypes, Infer: sameAs, InPlace: true, Prepare: Widen(prepareClip)},
		op.Def{Domain: graph.Microsoft, Name: "FastGelu", Since: 1, Types: floatTypes, Infer: sameAs, Prepare: Widen(prepareFastGelu)},
		op.Def{Domain: graph.Microsoft, Name: "BiasGelu", Since: 1, Types: floatTypes, Infer: inferBinary(tensor.Invalid), Prepare: Widen(prepareBiasGelu)},
	)
	for _, e := range curves() {
		types := floatTypes
		if e.ints {
			types = numberTypes
		}
		out = append(out, op.Def{
			Domain: e.domain, Name: e.name, Since: e.since, Types: types, Infer: sameAs, InPlace: true,
			Prepare: prepareCurve(e.make, e.ints),
		})
	}
	return out
}
