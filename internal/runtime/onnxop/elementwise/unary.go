package elementwise

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// curve is a function of one real variable: a loop for float32, if there is a fast one, and the
// function itself for float64 and for types without a loop.
type curve struct {
	f32 func(dst, src []float32)
	f64 func(float64) float64
}

// RunUnary applies f to ranges of input 0 in parallel.
func RunUnary[T, R tensor.Number](f func(dst []R, src []T)) op.Run {
	return runUnary(f, tensor.Of[T], tensor.Of[R], element.Grain/2)
}

// RunLookup is [RunUnary] on the bit patterns of 8-bit elements, signed or unsigned, which f
// looks up in a table.
func RunLookup(f func(dst, src []uint8)) op.Run {
	return runUnary(f, tensor.Words[uint8], tensor.Words[uint8], element.LookupGrain())
}

func runUnary[T, R any](f func(dst []R, src []T), in func(*tensor.Tensor) []T, out func(*tensor.Tensor) []R, grain int) op.Run {
	work := func(c *op.Call, lo, hi int) { f(out(c.Out[0])[lo:hi], in(c.In[0])[lo:hi]) }
	return func(c *op.Call) error {
		workers.Do(c.Pool, c.Out[0].Len(), grain, c, work)
		return nil
	}
}

// loopOf converts a function of float64 to a loop over any type.
func loopOf[T tensor.Number](f func(float64) float64) func(dst, src []T) {
	return func(dst, src []T) {
		src = src[:len(dst)]
		for i, x := range src {
			dst[i] = T(f(float64(x)))
		}
	}
}

func runFunc[T tensor.Number](f func(float64) float64) op.Run { return RunUnary(loopOf[T](f)) }

// prepareCurve makes an operator whose attributes determine a real function. With ints set,
// integers are computed in float64 and truncated; doubles, if not nil, is the loop of float64.
func prepareCurve(mk func(c *op.Call) curve, ints bool, doubles func(dst, src []float64)) elem.Prepare {
	wide := elem.Widen(func(c *op.Call) (op.Run, error) {
		f := mk(c)
		switch t := c.In[0].Type; {
		case t == tensor.Float32 && f.f32 != nil:
			return RunUnary(f.f32), nil
		case t == tensor.Float32:
			return runFunc[float32](f.f64), nil
		case t == tensor.Float64 && doubles != nil:
			return RunUnary(doubles), nil
		case t == tensor.Float64:
			return runFunc[float64](f.f64), nil
		case ints:
			if loop := tensor.PickInteger(t, runFunc[int8], runFunc[int16], runFunc[int32], runFunc[int64], runFunc[uint8], runFunc[uint16], runFunc[uint32], runFunc[uint64]); loop != nil {
				return loop(f.f64), nil
			}
		}
		return nil, elem.BadType(c, 0)
	})
	return func(c *op.Call) (op.Run, error) {
		if c.In[0].Type.IsHalf() {
			if f := mk(c); f.f32 != nil {
				return elem.RunHalves(c, f.f32), nil
			}
		}
		return wide(c)
	}
}

// exact identifies unary operators that integers compute exactly.
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
	if f := tensor.PickNumber(t, realExact[float32], realExact[float64],
		intExact[int8], intExact[int16], intExact[int32], intExact[int64], intExact[uint8], intExact[uint16], intExact[uint32], intExact[uint64]); f != nil && (k != complement || t.IsInteger()) {
		return f(k), nil
	}
	return nil, elem.BadType(c, 0)
}

// halfExact works on the bit patterns of 16-bit floats, without float32. inf is the bit pattern
// of infinity: larger magnitudes are NaN. It returns nil for operators without such a form.
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
			if e := simd.ElementKernels(); e != nil {
				n := e.ReluHalf(dst, src, inf)
				dst, src = dst[n:], src[n:]
			}
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

func prepareHalfExact(k exact) elem.Prepare {
	wide := elem.Widen(func(c *op.Call) (op.Run, error) { return prepareExact(c, k) })
	return func(c *op.Call) (op.Run, error) {
		inf := map[tensor.Type]uint16{tensor.Float16: 0x7c00, tensor.BFloat16: 0x7f80}[c.In[0].Type]
		if f := halfExact(k, inf); f != nil && inf != 0 {
			return RunUnary(f), nil
		}
		return wide(c)
	}
}

func realExact[T tensor.Real](k exact) op.Run {
	var f func(dst, src []T)
	var single any
	switch k {
	case absolute:
		single = element.Abs
		f = func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				// Branch-free on the bits, because signs are unpredictable.
				dst[i] = T(math.Abs(float64(x)))
			}
		}
	case signum:
		if single = element.Sign; unsafe.Sizeof(T(0)) == 8 {
			single = signDoubles
		}
	case negative:
		by := element.Mul[T]().VectorScalar
		f = func(dst, src []T) { by(dst, src, -1) }
	default:
		f = rectifier[T]()
	}
	if g, ok := single.(func(dst, src []T)); ok {
		f = g
	}
	return RunUnary(f)
}

// signDoubles writes 1 or -1 with the sign of each value except zero and NaN, which stay. It
// works on the bits, because signs are unpredictable.
func signDoubles(dst, src []float64) {
	src = src[:len(dst)]
	n := simd.ElementKernels().WholeDoubles(simd.DoublesSign, dst, src)
	dst, src = dst[n:], src[n:]
	for i, x := range src {
		b := math.Float64bits(x)
		all := -uint64(tensor.Truth(x > 0) | tensor.Truth(x < 0))
		dst[i] = math.Float64frombits(b&^(all>>1) | all&0x3ff<<52)
	}
}

func intExact[T tensor.Integer](k exact) op.Run {
	if k == absolute {
		if T(0)-1 > 0 { // no sign
			return RunUnary(func(dst, src []T) { copy(dst, src) })
		}
		return RunUnary(func(dst, src []T) {
			src = src[:len(dst)]
			// Branch-free, because signs are unpredictable.
			down := 8*unsafe.Sizeof(T(0)) - 1
			for i, x := range src {
				sign := x >> down
				dst[i] = (x ^ sign) - sign
			}
		})
	}
	if k == complement {
		return func(c *op.Call) error {
			workers.Do(c.Pool, len(c.Out[0].Data), element.Grain, [2][]byte{c.Out[0].Data, c.In[0].Data}, func(v [2][]byte, lo, hi int) {
				flipBits(v[0][lo:hi], v[1][lo:hi], 0xff)
			})
			return nil
		}
	}
	if k == signum {
		return RunUnary(func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				dst[i] = T(tensor.Truth(x > 0)) - T(tensor.Truth(x < 0))
			}
		})
	}
	if k == rectify && T(0)-1 < 0 {
		zeros, most := make([]T, element.Block), element.Max[T]().Vec
		return RunUnary(func(dst, src []T) {
			for at := 0; at < len(dst); at += element.Block {
				n := min(element.Block, len(dst)-at)
				most(dst[at:][:n], src[at:][:n], zeros[:n])
			}
		})
	}
	if k == negative {
		return RunUnary(func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				dst[i] = -x
			}
		})
	}
	return RunUnary(rectifier[T]())
}

// rectifier returns the loop that replaces negative numbers by zero; NaN passes.
func rectifier[T tensor.Number]() func(dst, src []T) {
	if e := simd.ElementKernels(); e != nil {
		if f, ok := any(func(dst, src []float32) { e.Limit(dst, src[:len(dst)], 0, float32(math.Inf(1))) }).(func(dst, src []T)); ok {
			return f
		}
		if f, ok := any(func(dst, src []float64) {
			for i := e.LimitDoubles(dst, src, 0, math.Inf(1)); i < len(dst); i++ {
				dst[i] = src[i]
				if src[i] < 0 {
					dst[i] = 0
				}
			}
		}).(func(dst, src []T)); ok {
			return f
		}
	}
	return func(dst, src []T) {
		src = src[:len(dst)]
		for i, x := range src {
			if x < 0 {
				x = 0
			}
			dst[i] = x
		}
	}
}

// classify makes IsNaN and IsInf: a predicate on float64, which represents every value of the
// smaller types, a loop for float32, and a test of bit patterns for other floats.
func classify(mk func(c *op.Call) (func(float64) bool, func(dst []uint8, src []float32), classBits)) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		f, loop, bits := mk(c)
		if !c.In[0].Type.IsFloat() {
			return nil, elem.BadType(c, 0)
		}
		switch c.In[0].Type {
		case tensor.Float32:
			return RunUnary(loop), nil
		case tensor.Float64:
			return runUnary(classLoop[uint64](bits, 0x7ff<<52), tensor.Words[uint64], tensor.Of[uint8], element.Grain/2), nil
		case tensor.Float16:
			return runUnary(classLoop[uint16](bits, 0x7c00), tensor.Words[uint16], tensor.Of[uint8], element.Grain/2), nil
		case tensor.BFloat16:
			return runUnary(classLoop[uint16](bits, 0x7f80), tensor.Words[uint16], tensor.Of[uint8], element.Grain/2), nil
		}
		return op.Parallel(c.Out[0].Len(), element.Grain/2, func(c *op.Call, lo, hi int) {
			x, y := c.In[0], tensor.Of[uint8](c.Out[0])
			var block [element.Block]float64
			for ; lo < hi; lo += element.Block {
				b := block[:min(element.Block, hi-lo)]
				tensor.Read(b, x, lo)
				for i, v := range b {
					y[lo+i] = tensor.Truth(f(v))
				}
			}
		}), nil
	}
}

// classBits selects classes of numbers by their bits.
type classBits struct{ nan, pos, neg bool }

// classLoop writes 1 for numbers of a class; inf is the bit pattern of infinity.
func classLoop[T uint16 | uint64](k classBits, inf T) func(dst []uint8, src []T) {
	sign := T(1) << (8*unsafe.Sizeof(inf) - 1)
	if k.nan {
		return func(dst []uint8, src []T) {
			for i, b := range src[:len(dst)] {
				dst[i] = tensor.Truth(b&^sign > inf)
			}
		}
	}
	first, second := inf, inf|sign
	switch {
	case !k.pos && !k.neg:
		return func(dst []uint8, _ []T) { clear(dst) }
	case !k.pos:
		first = second
	case !k.neg:
		second = first
	}
	return func(dst []uint8, src []T) {
		for i, b := range src[:len(dst)] {
			dst[i] = tensor.Truth(b == first) | tensor.Truth(b == second)
		}
	}
}

func isNaN(*op.Call) (func(float64) bool, func(dst []uint8, src []float32), classBits) {
	unlike := element.NotEqual[float32]().Vec
	return math.IsNaN, func(dst []uint8, src []float32) { unlike(dst, src, src) }, classBits{nan: true}
}

func isInf(c *op.Call) (func(float64) bool, func(dst []uint8, src []float32), classBits) {
	pos, neg := c.Node.Attrs.Bool("detect_positive", true), c.Node.Attrs.Bool("detect_negative", true)
	// Infinities by their bits, of which the first is the sign.
	const bits = 0x7f800000
	mask, want := uint32(1<<32-1), uint32(bits)
	switch {
	case pos && neg:
		mask >>= 1
	case neg:
		want |= 1 << 31
	case !pos:
		mask = 0 // nothing is wanted
	}
	is := func(x float64) bool { return pos && math.IsInf(x, 1) || neg && math.IsInf(x, -1) }
	if e := simd.ElementKernels(); e != nil && pos && neg && simd.HasCompare[float32](simd.RelationKernels()) {
		return is, infinite(e), classBits{pos: pos, neg: neg}
	}
	return is, func(dst []uint8, src []float32) {
		src = src[:len(dst)]
		for i, x := range src {
			dst[i] = tensor.Truth(math.Float32bits(x)&mask == want)
		}
	}, classBits{pos: pos, neg: neg}
}

// infinite finds infinities of both signs with SIMD.
func infinite(e *simd.Elements) func(dst []uint8, src []float32) {
	infinities, equal := make([]float32, element.Block), element.Equal[float32]().Vec
	element.Fill(infinities, float32(math.Inf(1)))
	return func(dst []uint8, src []float32) {
		workspace := floatWorkspaces.Get().(*[element.Block]float32)
		for at := 0; at < len(dst); at += element.Block {
			x := src[at:min(at+element.Block, len(dst))]
			size := workspace[:len(x)]
			e.Abs(size, x)
			equal(dst[at:][:len(x)], size, infinities[:len(x)])
		}
		floatWorkspaces.Put(workspace)
	}
}

func prepareNot(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, elem.BadType(c, 0)
	}
	return RunUnary(func(dst, src []uint8) { flipBits(dst, src, 1) }), nil
}

// flipBits writes bytes with the bits of by inverted.
func flipBits(dst, src []uint8, by uint8) {
	n := simd.ElementKernels().XorBytes(dst, src, by)
	dst, src = dst[n:], src[n:]
	for all := uint64(by) * 0x0101010101010101; len(src) >= 8; dst, src = dst[8:], src[8:] {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src)^all)
	}
	for i, b := range src {
		dst[i] = b ^ by
	}
}
