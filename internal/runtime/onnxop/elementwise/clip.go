package elementwise

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// prepareClip reads the bounds from attributes before operator set 11 and from scalar inputs
// since.
func prepareClip(c *op.Call) (op.Run, error) {
	for i := 1; i < min(3, len(c.In)); i++ {
		if x := c.In[i]; x != nil && (x.Type != c.In[0].Type || x.Len() != 1) {
			return nil, fmt.Errorf("bound is %v of shape %s, want a scalar of %v", x.Type, tensor.FormatShape(x.Shape), c.In[0].Type)
		}
	}
	if c.In[0].Type.IsHalf() {
		return clipped(c, func(f func(dst, src []float32)) op.Run { return elem.RunHalves(c, f) }, func(x *tensor.Tensor) float32 { return float32(tensor.At(x, 0)) }), nil
	}
	if f := tensor.PickNumber(c.In[0].Type, clip[float32], clip[float64], clip[int8], clip[int16], clip[int32], clip[int64], clip[uint8], clip[uint16], clip[uint32], clip[uint64]); f != nil {
		return f(c), nil
	}
	return nil, elem.BadType(c, 0)
}

func clip[T tensor.Number](c *op.Call) op.Run {
	return clipped(c, RunUnary[T, T], tensor.Single[T])
}

// clipped makes a run with all, which applies a loop to all elements; bound reads a limit.
func clipped[T tensor.Number](c *op.Call, all func(f func(dst, src []T)) op.Run, bound func(x *tensor.Tensor) T) op.Run {
	attrs := c.Node.Version < 11
	var lo, hi T
	var hasLo, hasHi bool
	if attrs {
		hasLo, hasHi = c.Node.Attrs.Has("min"), c.Node.Attrs.Has("max")
		lo, hi = T(c.Node.Attrs.Float("min", 0)), T(c.Node.Attrs.Float("max", 0))
	}
	run := all(func(dst, src []T) {
		src = src[:len(dst)]
		lo, hi := lo, hi // out of the loops' way
		if f, ok := any(src).([]float32); ok {
			if e := simd.ElementKernels(); e != nil {
				// Infinite bounds have no effect.
				l, h := float32(math.Inf(-1)), float32(math.Inf(1))
				if hasLo {
					l = float32(lo)
				}
				if hasHi {
					h = float32(hi)
				}
				e.Limit(any(dst).([]float32), f, l, h)
				return
			}
		}
		if d, ok := any(src).([]float64); ok {
			l, h := math.Inf(-1), math.Inf(1)
			if hasLo {
				l = float64(lo)
			}
			if hasHi {
				h = float64(hi)
			}
			n := simd.ElementKernels().LimitDoubles(any(dst).([]float64), d, l, h)
			src, dst = src[n:], dst[n:]
		}
		src, dst = limitBytes(dst, src, lo, hi, hasLo, hasHi)
		switch {
		case hasLo && hasHi && T(1)/2 == 0: // Integers, without data-dependent branches.
			for i, x := range src {
				dst[i] = min(max(x, lo), hi)
			}
		case hasLo && hasHi:
			for i, x := range src {
				if x < lo {
					x = lo
				}
				if x > hi { // last, so that the maximum wins when the bounds cross
					x = hi
				}
				dst[i] = x
			}
		case hasLo:
			for i, x := range src {
				if x < lo {
					x = lo
				}
				dst[i] = x
			}
		case hasHi:
			for i, x := range src {
				if x > hi {
					x = hi
				}
				dst[i] = x
			}
		default:
			copy(dst, src)
		}
	})
	return func(c *op.Call) error {
		if !attrs {
			if hasLo = c.Has(1); hasLo {
				lo = bound(c.In[1])
			}
			if hasHi = c.Has(2); hasHi {
				hi = bound(c.In[2])
			}
		}
		return run(c)
	}
}

// limitBytes clips 8-bit numbers with SIMD and returns the rest of src and dst; for other types
// it returns everything.
func limitBytes[T tensor.Number](dst, src []T, lo, hi T, hasLo, hasHi bool) (restSrc, restDst []T) {
	e := simd.ElementKernels()
	if e == nil || len(dst) == 0 {
		return src, dst
	}
	n := 0
	switch from := any(src).(type) {
	case []uint8:
		l, h := uint8(0), uint8(math.MaxUint8)
		if hasLo {
			l = uint8(lo)
		}
		if hasHi {
			h = uint8(hi)
		}
		n = e.LimitBytes(any(dst).([]uint8), from, l, h, false)
	case []int8:
		l, h := int8(math.MinInt8), int8(math.MaxInt8)
		if hasLo {
			l = int8(lo)
		}
		if hasHi {
			h = int8(hi)
		}
		n = e.LimitBytes(unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(any(dst).([]int8)))), len(dst)), unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(from))), len(from)), uint8(l), uint8(h), true)
	}
	return src[n:], dst[n:]
}

// prepareFastGelu is the tanh approximation of Gelu with an optional bias along the last
// dimension.
func prepareFastGelu(c *op.Call) (op.Run, error) {
	if c.Has(1) {
		return biasGelu(c, geluTanh)
	}
	return prepareCurve(func(*op.Call) curve { return geluTanh }, false, nil)(c)
}

func prepareBiasGelu(c *op.Call) (op.Run, error) { return biasGelu(c, curve{vecmath.GeluTo, gelu64}) }

func biasGelu(c *op.Call, f curve) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	switch c.In[0].Type {
	case tensor.Float32:
		return prepareLoops(c, after(element.Add[float32](), f.f32))
	case tensor.Float64:
		return prepareLoops(c, after(element.Add[float64](), loopOf[float64](f.f64)))
	}
	return nil, elem.BadType(c, 0)
}

// after makes loops that pass the result through f.
func after[T tensor.Number](l element.Loops[T, T], f func(dst, src []T)) element.Loops[T, T] {
	return element.Loops[T, T]{Vec: func(dst, a, b []T) {
		l.Vec(dst, a, b)
		f(dst, dst)
	}}
}
