// Package quant implements TFLite's operators that quantise and dequantise.
package quant

import (
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		{Name: "QUANTIZE", Infer: layer.InferSame, Prepare: prepareQuantize},
		{Name: "DEQUANTIZE", Infer: inferDequantize, Prepare: prepareDequantize},
		{Name: "FAKE_QUANT", Types: layer.FloatOnly, Infer: layer.InferSame, Prepare: prepareFakeQuant, InPlace: true},
	}
	return layer.InTFLite(defs)
}

func prepareQuantize(c *op.Call) (op.Run, error) {
	x, y := c.In[0].Type, c.Out[0].Type
	var f func(c *op.Call) (op.Run, error)
	switch x {
	case tensor.Float32:
		f = tensor.PickInteger(y, quantizeFloat[int8], quantizeFloat[int16], quantizeFloat[int32], nil, quantizeFloat[uint8], nil, nil, nil)
	case tensor.Int8:
		f = requantizeTo[int8](y)
	case tensor.Uint8:
		f = requantizeTo[uint8](y)
	case tensor.Int16:
		f = requantizeTo[int16](y)
	case tensor.Int32:
		f = requantizeTo[int32](y)
	}
	if f == nil {
		return nil, op.Unsupported("%v to %v", x, y)
	}
	return f(c)
}

func quantizeFloat[Y int8 | uint8 | int16 | int32](c *op.Call) (op.Run, error) {
	if !layer.Quantised(c.Out[0]) {
		return nil, op.Unsupported("output without quantisation")
	}
	lo, hi := layer.Limits(c.Out[0].Type)
	store := func(v, s float32, z int32) Y {
		q := math.Round(float64(v/s)) + float64(z)
		if q != q {
			return Y(z)
		}
		return Y(min(max(q, float64(lo)), float64(hi)))
	}
	if len(c.Out[0].Quant.Scale) > 1 {
		of := layer.Scales(&tensor.Tensor{Type: c.Out[0].Type, Shape: c.Out[0].Shape, Quant: c.Out[0].Quant})
		return func(c *op.Call) error {
			x, y := tensor.Of[float32](c.In[0]), tensor.Of[Y](c.Out[0])
			for i, v := range x {
				s, z := of(i)
				y[i] = store(v, s, z)
			}
			return nil
		}, nil
	}
	s, z, err := layer.ScaleOf(c.Out[0])
	if err != nil {
		return nil, err
	}
	c.Recipe = recipe.Quantise{Scale: s, Zero: z, Min: lo, Max: hi}
	e := simd.ElementKernels()
	var all []float32 // set by each run; the closure is allocated once
	var out []Y
	work := func(from, to int) {
		x, y := all[from:to], out[from:to]
		if e != nil && unsafe.Sizeof(Y(0)) == 1 && len(y) > 0 {
			n := e.QuantiseAway(unsafe.Slice((*uint8)(unsafe.Pointer(&y[0])), len(y)), x, s, float32(lo-z), float32(hi-z), z)
			x, y = x[n:], y[n:]
		}
		if words, ok := any(y).([]int16); ok {
			n := e.QuantiseAway16(words, x, s, float32(lo-z), float32(hi-z), z)
			x, y = x[n:], y[n:]
		}
		for i, v := range x {
			y[i] = store(v, s, z)
		}
	}
	return func(c *op.Call) error {
		all, out = tensor.Of[float32](c.In[0]), tensor.Of[Y](c.Out[0])
		c.Pool.For(len(out), 1<<14, work)
		return nil
	}, nil
}

func requantizeTo[X int8 | uint8 | int16 | int32](y tensor.Type) func(c *op.Call) (op.Run, error) {
	return tensor.PickInteger(y, requantize[X, int8], requantize[X, int16], requantize[X, int32], nil, requantize[X, uint8], nil, nil, nil)
}

func requantize[X, Y int8 | uint8 | int16 | int32](c *op.Call) (op.Run, error) {
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	m := fixed.FromReal(float64(si) / float64(so))
	lo, hi := layer.Limits(c.Out[0].Type)
	one := func(v int32) Y {
		q := int64(m.Apply(v-zi)) + int64(zo)
		return Y(min(max(q, int64(lo)), int64(hi)))
	}
	if c.In[0].Type.Bits() > 8 {
		c.Recipe = recipe.Rescale{ZeroIn: zi, Mul: m, Zero: zo, Min: lo, Max: hi}
		if c.In[0].Type == tensor.Int16 && c.Out[0].Type == tensor.Int16 {
			if loop, ok := quantise.NewLeaky(zi, m, m, zo, lo, hi); ok {
				return layer.MapRows(loop.RunUnary), nil
			}
		}
		return layer.Map(func(v X) Y { return one(int32(v)) }), nil
	}
	var t [256]Y
	for i := range t {
		t[i] = one(int32(X(i)))
	}
	if c.Out[0].Type.Bits() == 8 {
		var bits [256]uint8
		for i := range bits {
			bits[i] = uint8(t[i])
		}
		return layer.Lookup(0, &bits), nil
	}
	return layer.Map(func(v X) Y { return t[uint8(v)] }), nil
}

func inferDequantize(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, tensor.Float32, c.In[0].Shape)
	return nil
}

func prepareDequantize(c *op.Call) (op.Run, error) {
	copied := func(c *op.Call) error {
		v, err := layer.Floats(c.In[0])
		copy(tensor.Of[float32](c.Out[0]), v)
		return err
	}
	if len(c.In[0].Shape) > 0 && c.In[0].Quant != nil && len(c.In[0].Quant.Scale) > 1 {
		return copied, nil
	}
	if f := tensor.PickInteger(c.In[0].Type, dequantizeInt[int8], dequantizeInt[int16], dequantizeInt[int32], nil, dequantizeInt[uint8], nil, nil, nil); f != nil {
		return f(c)
	}
	switch t := c.In[0].Type; t {
	case tensor.Float16, tensor.BFloat16:
		return func(c *op.Call) error {
			y, e := tensor.Of[float32](c.Out[0]), simd.ElementKernels()
			c.Pool.For(len(y), layer.Grain, func(lo, hi int) {
				if e != nil && c.In[0].Type == tensor.Float16 {
					lo += e.FromHalf(y[lo:hi], tensor.Of[uint16](c.In[0])[lo:])
				}
				tensor.Read(y[lo:hi], c.In[0], lo)
			})
			return nil
		}, nil
	case tensor.Float32, tensor.Int4, tensor.Int2:
		return copied, nil
	default:
		return nil, op.Unsupported("%v input", t)
	}
}

func dequantizeInt[X int8 | uint8 | int16 | int32](c *op.Call) (op.Run, error) {
	s, z, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	scale := float64(s)
	one := func(v X) float32 { return float32(scale * float64(int64(v)-int64(z))) }
	if c.In[0].Type.Bits() > 8 {
		c.Recipe = recipe.Dequantise{Scale: s, Zero: z}
		return layer.Map(one), nil
	}
	e, signed := simd.ElementKernels(), c.In[0].Type == tensor.Int8
	if e == nil || z < -255 || z > 255 { // differences that float32 holds
		return layer.Map(one), nil
	}
	return dequantiseBytes(e, s, z, signed), nil
}

// dequantiseBytes is dequantizeInt with SIMD. It is not generic, because the closures of a
// generic function would be allocated in each run.
func dequantiseBytes(e *simd.Elements, s float32, z int32, signed bool) op.Run {
	type args struct {
		e      *simd.Elements
		y      []float32
		x      []uint8
		s      float32
		z      int32
		signed bool
	}
	return func(c *op.Call) error {
		a := args{e, tensor.Of[float32](c.Out[0]), c.In[0].Data, s, z, signed}
		workers.Do(c.Pool, len(a.y), layer.Grain, a, func(a args, lo, hi int) {
			x, y := a.x[lo:hi], a.y[lo:hi]
			for i := a.e.Dequantise(y, x, a.z, a.s, a.signed); i < len(y); i++ {
				v := int32(x[i])
				if a.signed {
					v = int32(int8(x[i]))
				}
				y[i] = float32(v-a.z) * a.s
			}
		})
		return nil
	}
}

// prepareFakeQuant rounds floats to the grid of a hypothetical integer type.
func prepareFakeQuant(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%v input", c.In[0].Type)
	}
	a := c.Node.Attrs
	lo, hi, bits := a.Float("min", 0), a.Float("max", 0), a.Int("num_bits", 8)
	if bits < 2 || bits > 16 || !(lo < hi) {
		return nil, c.Errorf("range [%v, %v] in %d bits", lo, hi, bits)
	}
	qmin, qmax := float32(0), float32(int(1)<<bits-1)
	if a.Bool("narrow_range", false) {
		qmin = 1
	}
	// The range is shifted so that zero is on the grid.
	scale := (hi - lo) / (qmax - qmin)
	zero := qmin - lo/scale
	nudged := fixed.RoundHalfAway(min(max(zero, qmin), qmax))
	from, to := (qmin-nudged)*scale, (qmax-nudged)*scale
	inv := 1 / scale
	return layer.Map(func(v float32) float32 {
		v = min(max(v, from), to) - from
		return float32(math.Floor(float64(v*inv+0.5)))*scale + from
	}), nil
}
