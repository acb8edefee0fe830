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
		all := func(f func(dst, src []float32)) op.Run { return elem.RunHalves(c, f) }
		bound := func(x *tensor.Tensor) float32 { return float32(tensor.At(x, 0)) }
		return clipped(c, all, bound, float32(math.Inf(-1)), float32(math.Inf(1))), nil
	}
	if f := tensor.PickNumber(c.In[0].Type, clipReal[float32], clipReal[float64], clipInt[int8], clipInt[int16], clipInt[int32], clipInt[int64], clipInt[uint8], clipInt[uint16], clipInt[uint32], clipInt[uint64]); f != nil {
		return f(c), nil
	}
	return nil, elem.BadType(c, 0)
}

func clipReal[T tensor.Real](c *op.Call) op.Run {
	return clipped(c, RunUnary[T, T], tensor.Single[T], T(math.Inf(-1)), T(math.Inf(1)))
}

func clipInt[T tensor.Integer](c *op.Call) op.Run {
	lowest, highest := tensor.Bounds[T]()
	return clipped(c, RunUnary[T, T], tensor.Single[T], lowest, highest)
}

// clipped makes a run with all, which applies a loop to all elements; bound reads a limit. lowest
// and highest stand for absent limits.
func clipped[T tensor.Number](c *op.Call, all func(f func(dst, src []T)) op.Run, bound func(x *tensor.Tensor) T, lowest, highest T) op.Run {
	attrs, lo, hi := c.Node.Version < 11, lowest, highest
	if attrs && c.Node.Attrs.Has("min") {
		lo = T(c.Node.Attrs.Float("min", 0))
	}
	if attrs && c.Node.Attrs.Has("max") {
		hi = T(c.Node.Attrs.Float("max", 0))
	}
	run := all(func(dst, src []T) {
		src = src[:len(dst)]
		lo, hi := lo, hi // local copies for the loops
		n := 0
		switch x := any(src).(type) {
		case []float32:
			if e := simd.ElementKernels(); e != nil {
				e.Limit(any(dst).([]float32), x, float32(lo), float32(hi))
				return
			}
		case []float64:
			n = simd.ElementKernels().LimitDoubles(any(dst).([]float64), x, float64(lo), float64(hi))
		case []uint8:
			n = limitBytes(any(dst).([]uint8), x, uint8(lo), uint8(hi), false)
		case []int8:
			n = limitBytes(asBytes(any(dst).([]int8)), asBytes(x), uint8(int8(lo)), uint8(int8(hi)), true)
		}
		src, dst = src[n:], dst[n:]
		if T(1)/2 == 0 { // Integers, without data-dependent branches.
			for i, x := range src {
				dst[i] = min(max(x, lo), hi)
			}
			return
		}
		for i, x := range src {
			if x < lo {
				x = lo
			}
			if x > hi { // last, so that the maximum wins when the bounds cross
				x = hi
			}
			dst[i] = x
		}
	})
	return func(c *op.Call) error {
		if !attrs {
			if lo = lowest; c.Has(1) {
				lo = bound(c.In[1])
			}
			if hi = highest; c.Has(2) {
				hi = bound(c.In[2])
			}
		}
		return run(c)
	}
}

// limitBytes clips 8-bit numbers with SIMD and returns the number of them.
func limitBytes(dst, src []uint8, lo, hi uint8, signed bool) int {
	e := simd.ElementKernels()
	if e == nil || len(dst) == 0 {
		return 0
	}
	return e.LimitBytes(dst, src, lo, hi, signed)
}

// asBytes views the bit patterns of 8-bit integers.
func asBytes(v []int8) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
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
