// Package activation implements TFLite's activations, softmax and mathematical functions of one
// tensor, for floats and quantised values.
package activation

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/libm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/arith"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	inf := float32(math.Inf(1))
	var defs []op.Def
	add := func(name string, types []tensor.Type, prepare func(c *op.Call) (op.Run, error)) {
		defs = append(defs, op.Def{Name: name, Types: types, Infer: layer.InferSame, Prepare: prepare, InPlace: true})
	}
	add("LOGISTIC", layer.ConvTypes, logisticOp.prepare)
	add("TANH", layer.ConvTypes, tanhOp.prepare)
	add("RELU", layer.ConvTypes, prepareClamp(0, inf))
	add("RELU6", layer.ConvTypes, prepareClamp(0, 6))
	add("RELU_N1_TO_1", layer.ConvTypes, prepareClamp(-1, 1))
	add("RELU_0_TO_1", layer.ConvTypes, prepareClamp(0, 1))
	add("LEAKY_RELU", layer.ConvTypes, prepareLeaky)
	add("GELU", layer.ConvTypes, prepareGelu)
	add("HARD_SWISH", layer.ByteTypes, prepareHardSwish)
	for _, name := range slices.Sorted(maps.Keys(unaries)) {
		add(name, layer.ConvTypes, prepareUnary(name))
	}
	return layer.InTFLite(append(defs,
		op.Def{Name: "SOFTMAX", Types: layer.ConvTypes, Infer: layer.InferSame, Prepare: prepareSoftmax},
		op.Def{Name: "LOG_SOFTMAX", Types: layer.ByteTypes, Infer: layer.InferSame, Prepare: prepareLogSoftmax},
		op.Def{Name: "PRELU", Types: layer.ByteTypes, Infer: inferPrelu, Prepare: preparePrelu}))
}

// byValue prepares an activation of integers, given as a function of the stored value: a table
// for 8 bits, element by element for 16.
func byValue(c *op.Call, f func(int32) int32) (op.Run, error) {
	t := c.In[0].Type
	if t != c.Out[0].Type {
		return nil, op.Unsupported("%v input with %v output", t, c.Out[0].Type)
	}
	switch t {
	case tensor.Int8, tensor.Uint8:
		return layer.Lookup(0, tabulate8(t, f)), nil
	case tensor.Int16:
		return layer.Map(func(v int16) int16 { return int16(min(max(f(int32(v)), math.MinInt16), math.MaxInt16)) }), nil
	}
	return nil, op.Unsupported("%v input", t)
}

// prepareClamp makes the RELU family.
func prepareClamp(lo, hi float32) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		if c.In[0].Type == tensor.Float32 && c.Out[0].Type == tensor.Float32 {
			return layer.MapRows(func(y, x []float32) { element.Limit(y, x, lo, hi) }), nil
		}
		if c.In[0].Type == tensor.Int32 || c.In[0].Type == tensor.Int64 {
			return nil, op.Unsupported("%v input", c.In[0].Type)
		}
		si, so, zi, zo, err := layer.InOut(c)
		if err != nil {
			return nil, err
		}
		m := fixed.FromReal(float64(si / so))
		qlo, qhi := layer.Limits(c.Out[0].Type)
		if !math.IsInf(float64(lo), 0) {
			qlo = max(qlo, zo+layer.Round(lo/so))
		}
		if !math.IsInf(float64(hi), 0) {
			qhi = min(qhi, zo+layer.Round(hi/so))
		}
		if c.In[0].Type == tensor.Int16 && c.Out[0].Type == tensor.Int16 {
			c.Recipe = recipe.Rescale{ZeroIn: zi, Mul: m, Zero: zo, Min: qlo, Max: qhi}
		}
		return byValue(c, func(q int32) int32 { return min(max(m.Apply(q-zi)+zo, qlo), qhi) })
	}
}

// saturating is the logistic function or tanh: float and uint8 functions, the int16 function and
// the int8 one.
type saturating struct {
	rows  func(dst, src []float32)
	one   func(float32) float32
	tanh  bool
	words func(int16, int32, int) int16
	bytes *curve8
}

func (s saturating) prepare(c *op.Call) (op.Run, error) {
	switch c.In[0].Type {
	case tensor.Float32, tensor.Uint8:
		if c.Node.Attrs.Bool(op.AttrTimesInput, false) {
			s.rows = logisticProduct
		}
		return unary{rows: s.rows, one: s.one}.prepare(c)
	case tensor.Int16:
		return saturating16(c, s.tanh, s.words)
	}
	return s.bytes.prepare(c)
}

var (
	logisticOp = saturating{libm.SigmoidTo, sigmoid, false, fixed.Logistic16, &logistic8}
	tanhOp     = saturating{libm.TanhTo, wrap64(math.Tanh), true, fixed.Tanh16, &tanh8}
)

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

func saturating16(c *op.Call, tanh bool, f func(int16, int32, int) int16) (op.Run, error) {
	if c.Out[0].Type != tensor.Int16 {
		return nil, op.Unsupported("int16 input with %v output", c.Out[0].Type)
	}
	s, _, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	maxPow := 0
	if tanh {
		maxPow = 1
	}
	m, shift := fixed.Activation16(s, maxPow)
	c.Recipe = recipe.Curve16{Tanh: tanh, Mul: m, Shift: shift}
	lines := linesOf(tanh, m, shift)
	return layer.MapRows(func(dst, src []int16) {
		for i := simd.ElementKernels().Curve16(dst, src, lines); i < len(src); i++ {
			dst[i] = f(src[i], m, shift)
		}
	}), nil
}

// linesOf is [fixed.Logistic16] or [fixed.Tanh16] for SIMD.
func linesOf(tanh bool, m int32, shift int) *simd.Curve16 {
	if m == 0 {
		m, shift = 3<<shift, 0
	}
	c := &simd.Curve16{Mul: m, Shift: int32(shift), Bits: 9, Above: 1 << 9, Below: 1<<25 + 1<<9 - 1, Out: 10}
	if shift > 0 {
		c.Round = 1 << (shift - 1)
	}
	table, end := fixed.SigmoidTable(), uint32(0x7FFF<<1)
	if tanh {
		c.Bits, c.Above, c.Below, c.Out, end = 8, 1<<7-1<<23, 1<<23+1<<7-1, 8, 0xFFFF
	}
	c.Mask = 1<<c.Bits - 1
	for i := range len(table) - 1 {
		c.Table[i] = uint32(table[i]) | uint32(table[i+1]-table[i])<<16
	}
	c.Table[len(table)-1] = end
	return c
}

func prepareLeaky(c *op.Call) (op.Run, error) {
	alpha := c.Node.Attrs.Float("alpha", 0)
	if c.In[0].Type == tensor.Float32 {
		by := element.PRelu[float32]().VectorScalar
		return unary{rows: func(dst, src []float32) { by(dst, src, alpha) }}.prepare(c)
	}
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	up, down := fixed.FromReal(float64(si/so)), fixed.FromReal(float64(si*alpha/so))
	if c.In[0].Type == tensor.Int16 && c.Out[0].Type == tensor.Int16 {
		c.Recipe = recipe.Leaky{ZeroIn: zi, Up: up, Down: down, Zero: zo}
		if loop, ok := quantise.NewLeaky(zi, up, down, zo, math.MinInt16, math.MaxInt16); ok {
			return layer.MapRows(loop.RunUnary), nil
		}
	}
	return byValue(c, func(q int32) int32 {
		v := q - zi
		if v >= 0 {
			return up.Apply(v) + zo
		}
		return down.Apply(v) + zo
	})
}

func inferPrelu(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	s, err := tensor.Broadcast(c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return err
	}
	c.SetOut(0, layer.OutType(c, c.In[0].Type), s)
	return nil
}

func preparePrelu(c *op.Call) (op.Run, error) {
	w, err := arith.NewBroadcast(c.In[0].Shape, c.In[1].Shape)
	if err != nil {
		return nil, err
	}
	if c.In[0].Type != c.In[1].Type || c.In[0].Type != c.Out[0].Type {
		return nil, op.Unsupported("%v input with %v slope", c.In[0].Type, c.In[1].Type)
	}
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return arith.RunBinary(c, w, element.PRelu[float32]()), nil
	case tensor.Int8:
		return quantPrelu[int8](c, w)
	case tensor.Uint8:
		return quantPrelu[uint8](c, w)
	default:
		return nil, op.Unsupported("%v input", t)
	}
}

func quantPrelu[T int8 | uint8](c *op.Call, w *broadcast.Walk) (op.Run, error) {
	q, err := arith.NewBinaryQuant(c)
	if err != nil {
		return nil, err
	}
	up, down := fixed.FromReal(float64(q.S1/q.So)), fixed.FromReal(float64(q.S1*q.S2/q.So))
	zero, lo, hi := q.Range()
	c.Recipe = recipe.PRelu{A: c.In[0].Shape, B: c.In[1].Shape, ZeroA: q.Z1, ZeroB: q.Z2, Up: up, Down: down, Zero: zero, Min: lo, Max: hi}
	one := func(xq, aq T) T {
		x := int32(xq) - q.Z1
		if x >= 0 {
			return T(q.Clamp(up.Apply(x)))
		}
		return T(q.Clamp(down.Apply(x * (int32(aq) - q.Z2))))
	}
	if pair, ok := quantise.NewPRelu[T](q.Z1, q.Z2, up, down, zero, lo, hi); ok {
		return arith.RunPair(c, w, pair), nil
	}
	if channels := slopeChannels(c); channels > 0 {
		return preluTable(c, channels, one), nil
	}
	return arith.RunBinary(c, w, element.FromFunc(one)), nil
}

// slopeChannels returns the number of constant slopes, one per channel of the last axis, or 0 if
// they are arranged otherwise, or if the input is too small for a table of all results of each
// channel.
func slopeChannels(c *op.Call) int {
	x, a := c.In[0].Shape, c.In[1].Shape
	if !c.Const(1) || len(x) == 0 || len(a) == 0 || len(a) > len(x) {
		return 0
	}
	n := x[len(x)-1]
	if n == 0 || a[len(a)-1] != n || c.In[1].Len() != n || c.In[0].Len() < 256*n {
		return 0
	}
	return n
}

// preluTable looks up results in tables of 256 entries per channel.
func preluTable[T int8 | uint8](c *op.Call, channels int, one func(x, a T) T) op.Run {
	table := make([][256]T, channels)
	for i, a := range tensor.Of[T](c.In[1]) {
		for v := range 256 {
			table[i][v] = one(T(v), a)
		}
	}
	return layer.Ranges(c.In[0].Len()/channels, max(1, layer.Grain/channels), func(y, x []T, lo, hi int) {
		for r := lo; r < hi; r++ {
			from, to := x[r*channels:][:len(table)], y[r*channels:][:len(table)]
			for i := range table {
				to[i] = table[i][uint8(from[i])]
			}
		}
	})
}

func prepareGelu(c *op.Call) (op.Run, error) {
	u := unary{rows: vecmath.GeluTo, one: vecmath.Gelu}
	if c.Node.Attrs.Bool("approximate", false) {
		u = unary{rows: vecmath.GeluTanhTo, one: vecmath.GeluTanh}
	}
	return u.prepare(c)
}

func prepareHardSwish(c *op.Call) (op.Run, error) {
	if c.In[0].Type == tensor.Float32 {
		return unary{rows: hardSwish}.prepare(c)
	}
	if c.In[0].Type == tensor.Int16 {
		return nil, op.Unsupported("int16 input")
	}
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	fine := si * (1.0 / 128)
	out, outShift := short(fixed.FromReal(float64(fine / so)))
	relu, reluShift := short(fixed.FromReal(float64(fine / (3.0 / 32768))))
	return byValue(c, func(q int32) int32 {
		v := int16((q - zi) << 7)
		pre := fixed.DoublingHighMul16(v, out)
		r := v
		if reluShift > 0 {
			r = fixed.Saturate16(int32(r) << uint(reluShift-1))
		}
		r = fixed.DoublingHighMul16(r, relu)
		if reluShift > 0 {
			r = fixed.Saturate16(int32(r) << 1)
		} else if reluShift < 0 {
			r = int16(fixed.RoundShift(int32(r), -reluShift))
		}
		r = int16((int32(r) + 1<<15) >> 1)
		y := int32(fixed.TruncatingHighMul16(r, pre))
		if outShift > 0 {
			return int32(int16(y<<uint(outShift))) + zo
		}
		return fixed.RoundShift(y, -outShift) + zo
	})
}

var swishWorkspaces = sync.Pool{New: func() any { return new([element.Block]float32) }}

var swish = struct {
	add, div func(dst, a []float32, b float32)
	mul      func(dst, a, b []float32)
}{element.Add[float32]().VectorScalar, element.Div[float32]().VectorScalar, element.Mul[float32]().Vec}

// hardSwish writes x·min(max(x+3, 0), 6)/6, rounded after each step; dst may be src.
func hardSwish(dst, src []float32) {
	if c := simd.CurveKernels(); c != nil {
		c.LibmHardSwish(dst, src)
		return
	}
	workspace := swishWorkspaces.Get().(*[element.Block]float32)
	defer swishWorkspaces.Put(workspace)
	for len(dst) > 0 {
		n := min(len(dst), len(workspace))
		x, y := src[:n], workspace[:n]
		swish.add(y, x, 3)
		element.Bound(y, 0, 6)
		swish.mul(dst[:n], x, y)
		swish.div(dst[:n], dst[:n], 6)
		dst, src = dst[n:], src[n:]
	}
}

// logisticProduct writes x·logistic(x), rounded after each step; dst may be src.
func logisticProduct(dst, src []float32) {
	workspace := swishWorkspaces.Get().(*[element.Block]float32)
	defer swishWorkspaces.Put(workspace)
	for len(dst) > 0 {
		n := min(len(dst), len(workspace))
		libm.SigmoidTo(workspace[:n], src[:n])
		swish.mul(dst[:n], src[:n], workspace[:n])
		dst, src = dst[n:], src[n:]
	}
}

// short reduces a multiplier to 16 bits.
func short(m fixed.Multiplier) (int16, int) {
	if m.M >= math.MaxInt32-1<<15 {
		return math.MaxInt16, m.Shift
	}
	return int16((m.M + 1<<15) >> 16), m.Shift
}
