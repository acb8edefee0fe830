package nn

import (
	"math"
	"sync"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// Prepare is the second stage of an operator.
type Prepare = func(c *op.Call) (op.Run, error)

// real is a floating-point type that kernels compute in.
type real interface{ float32 | float64 }

// floatTypes are the element types that [Floats] serves.
var floatTypes = []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16}

// Floats makes the second stage of an operator over floating-point tensors. The
// first floating-point input chooses: float32 and float64 have a kernel each (nil:
// not supported); float16 and bfloat16 inputs and outputs are widened to float32,
// computed there and rounded once at the end.
func Floats(p32, p64 Prepare) Prepare {
	return func(c *op.Call) (op.Run, error) { return PrepareFloats(c, p32, p64) }
}

// PrepareFloats is the choice that [Floats] makes, for operators that have
// further kernels for other types.
func PrepareFloats(c *op.Call, p32, p64 Prepare) (op.Run, error) {
	kind := tensor.Invalid
	for _, x := range c.In {
		if x == nil {
			continue
		}
		if half(x.Type) {
			return widen(c, p32)
		}
		if kind == tensor.Invalid && (x.Type == tensor.Float32 || x.Type == tensor.Float64) {
			kind = x.Type
		}
	}
	switch {
	case kind == tensor.Float32 && p32 != nil:
		return p32(c)
	case kind == tensor.Float64 && p64 != nil:
		return p64(c)
	case kind == tensor.Invalid && len(c.In) > 0 && c.In[0] != nil:
		kind = c.In[0].Type
	}
	return nil, op.Unsupported("%s of %v", c.Node.Op, kind)
}

func half(t tensor.Type) bool { return t == tensor.Float16 || t == tensor.BFloat16 }

// widened holds the float32 twins of a call's half-precision tensors.
type widened struct {
	call     op.Call
	run      op.Run
	in, out  []*tensor.Tensor // nil where the call's own tensor is used
	constant []bool
}

// widen prepares p on float32 copies. Constants are converted once.
func widen(c *op.Call, p Prepare) (op.Run, error) {
	if p == nil {
		return nil, op.Unsupported("%s of half-precision floats", c.Node.Op)
	}
	w := &widened{
		in: make([]*tensor.Tensor, len(c.In)), out: make([]*tensor.Tensor, len(c.Out)),
		constant: make([]bool, len(c.In)),
	}
	twin := func(x *tensor.Tensor) *tensor.Tensor {
		n := x.Len()
		return &tensor.Tensor{Type: tensor.Float32, Shape: x.Shape, Data: c.Scratch(n * 4)}
	}
	for i, x := range c.In {
		if x == nil || !half(x.Type) {
			continue
		}
		w.in[i] = twin(x)
		if c.Const(i) {
			w.constant[i] = true
			Widen(c.Pool, tensor.Of[float32](w.in[i]), x)
		}
	}
	for i, y := range c.Out {
		if y != nil && half(y.Type) {
			w.out[i] = twin(y)
		}
	}
	in, out := c.In, c.Out
	w.call = *c
	w.call.In, w.call.Out = w.bind(in, w.in), w.bind(out, w.out)
	c.In, c.Out = w.call.In, w.call.Out // so that p's scratch memory counts as this node's
	run, err := p(c)
	c.In, c.Out = in, out
	if err != nil {
		return nil, err
	}
	w.run = run
	return w.exec, nil
}

func (w *widened) bind(own, twins []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(own))
	for i := range own {
		out[i] = own[i]
		if twins[i] != nil {
			out[i] = twins[i]
		}
	}
	return out
}

func (w *widened) exec(c *op.Call) error {
	for i, x := range c.In {
		switch {
		case w.in[i] == nil:
			w.call.In[i] = x
		case !w.constant[i]:
			Widen(c.Pool, tensor.Of[float32](w.in[i]), x)
		}
	}
	for i, y := range c.Out {
		if w.out[i] == nil {
			w.call.Out[i] = y
		}
	}
	w.call.Env, w.call.Pool = c.Env, c.Pool
	if err := w.run(&w.call); err != nil {
		return err
	}
	for i, y := range c.Out {
		if w.out[i] != nil {
			Narrow(c.Pool, y, tensor.Of[float32](w.out[i]))
		}
	}
	return nil
}

// halves maps every float16 to float32: a look-up is faster than the arithmetic.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	var t [1 << 16]float32
	for i := range t {
		t[i] = tensor.F16ToF32(uint16(i))
	}
	return &t
})

// Widen converts a float16 or bfloat16 tensor to float32.
func Widen(p *workers.Pool, dst []float32, x *tensor.Tensor) {
	src := tensor.Of[uint16](x)
	dst = dst[:len(src)]
	table := halves()
	brain := x.Type == tensor.BFloat16
	p.For(len(src), 1<<14, func(lo, hi int) {
		d := dst[lo:hi]
		if brain {
			for i, v := range src[lo:hi] {
				d[i] = tensor.BF16ToF32(v)
			}
			return
		}
		for i, v := range src[lo:hi] {
			d[i] = table[v]
		}
	})
}

// Narrow rounds float32 elements into a float16 or bfloat16 tensor.
func Narrow(p *workers.Pool, y *tensor.Tensor, src []float32) {
	dst := tensor.Of[uint16](y)
	src = src[:len(dst)]
	brain := y.Type == tensor.BFloat16
	p.For(len(src), 1<<14, func(lo, hi int) {
		d := dst[lo:hi]
		if brain {
			for i, v := range src[lo:hi] {
				d[i] = tensor.F32ToBF16(v)
			}
			return
		}
		for i, v := range src[lo:hi] {
			b := math.Float32bits(v)
			if e := b & 0x7f800000; v == 0 {
				d[i] = uint16(b >> 16)
			} else if e >= 113<<23 && e < 142<<23 { // normal before and after
				d[i] = uint16(b>>16)&0x8000 | uint16((b&0x7fffffff+0xfff+b>>13&1)>>13-112<<10)
			} else {
				d[i] = tensor.F32ToF16(v)
			}
		}
	})
}

// clamp applies a fused activation in place.
func clamp[T real](act op.Activation, y []T) {
	if !act.On {
		return
	}
	lo, hi := T(act.Min), T(act.Max)
	for i, v := range y {
		y[i] = min(max(v, lo), hi)
	}
}

// scratch reserves n elements.
func scratch[T tensor.Number](c *op.Call, n int) []T {
	return tensor.Of[T](&tensor.Tensor{Data: c.Scratch(n * width[T]())})
}

func width[T tensor.Number]() int {
	var z T
	switch any(z).(type) {
	case int8, uint8:
		return 1
	case int16, uint16:
		return 2
	case float32, int32, uint32:
		return 4
	}
	return 8
}

// number reads the element at i of a floating-point tensor as float64.
func number(x *tensor.Tensor, i int) float64 {
	switch x.Type {
	case tensor.Float32:
		return float64(tensor.Of[float32](x)[i])
	case tensor.Float64:
		return tensor.Of[float64](x)[i]
	case tensor.Float16:
		return float64(tensor.F16ToF32(tensor.Of[uint16](x)[i]))
	case tensor.BFloat16:
		return float64(tensor.BF16ToF32(tensor.Of[uint16](x)[i]))
	case tensor.Int64:
		return float64(tensor.Of[int64](x)[i])
	case tensor.Int32:
		return float64(tensor.Of[int32](x)[i])
	case tensor.Int16:
		return float64(tensor.Of[int16](x)[i])
	case tensor.Uint16:
		return float64(tensor.Of[uint16](x)[i])
	case tensor.Int8:
		return float64(tensor.Of[int8](x)[i])
	case tensor.Uint8, tensor.Bool:
		return float64(tensor.Of[uint8](x)[i])
	case tensor.Uint32:
		return float64(tensor.Of[uint32](x)[i])
	case tensor.Uint64:
		return float64(tensor.Of[uint64](x)[i])
	}
	return 0
}
