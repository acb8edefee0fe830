package quant

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elementwise"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// affine is a per-tensor quantisation read from a scale and a zero-point input.
type affine struct {
	scale, zero float32
}

// readAffine reads the scalars at inputs i and i+1; the zero point may be absent.
func readAffine(c *op.Call, i int) affine {
	var a affine
	var v [1]float32
	tensor.Read(v[:], c.In[i], 0)
	a.scale = v[0]
	if z := c.Input(i + 1); z != nil {
		tensor.Read(v[:], z, 0)
		a.zero = v[0]
	}
	return a
}

// checkQuantised fails unless input x has 8 bits, and each of the given inputs is a scalar scale
// that a scalar zero point may follow.
func checkQuantised(c *op.Call, x int, scales ...int) error {
	if !IsByte(c.In[x]) {
		return elem.BadType(c, x)
	}
	for _, i := range scales {
		if s := c.Input(i); s == nil || s.Len() != 1 || s.Type != tensor.Float32 {
			return op.Unsupported("%s with a scale at input %d that is not a float32 scalar", c.Node.Op, i)
		}
		if z := c.Input(i + 1); z != nil && z.Len() != 1 {
			return op.Unsupported("%s with a zero point at input %d that is not a scalar", c.Node.Op, i+1)
		}
	}
	return nil
}

// realTable fills the real value of each value of an 8-bit type.
func (a affine) realTable(dst *[256]float32, t tensor.Type) {
	for i := range dst {
		q := float32(i)
		if t == tensor.Int8 {
			q = float32(int8(i))
		}
		dst[i] = (q - a.zero) * a.scale
	}
}

// code quantises to an 8-bit type.
func (a affine) code(v float32, t tensor.Type) uint8 {
	lo, hi := intRange(t)
	return uint8(int32(quantizeOne(v/a.scale, lo-a.zero, hi-a.zero)) + int32(a.zero))
}

// inferQLinear broadcasts inputs 0 and 3.
func inferQLinear(c *op.Call) error {
	if !c.Has(3) || !c.Has(6) {
		return c.Errorf("inputs 3 and 6 are needed")
	}
	if c.In[0].Type != c.In[3].Type {
		return c.Errorf("input 0 is %v, input 3 is %v", c.In[0].Type, c.In[3].Type)
	}
	return elem.InferBroadcast(c, c.In[0].Type, 0, 3)
}

// prepareQLinear makes QLinearAdd and QLinearMul: both operands are dequantised by table,
// combined and quantised again.
func prepareQLinear(c *op.Call, product bool) (op.Run, error) {
	if err := checkQuantised(c, 0, 1, 4, 6); err != nil {
		return nil, err
	}
	shapes := [][]int{c.Out[0].Shape, c.In[0].Shape, c.In[3].Shape}
	if c.NHWCIn {
		for i, s := range shapes {
			shapes[i] = []int{s[0], s[2], s[3], s[1]}
		}
	}
	plan, err := elementwise.NewBroadcast(shapes[0], shapes[1], shapes[2])
	if err != nil {
		return nil, err
	}
	t := c.In[0].Type
	lo, hi := Limits(t, c.Activation)
	var ta, tb [256]float32
	var y affine
	loops := element.FromFunc(func(a, b uint8) uint8 {
		v := ta[a] + tb[b]
		if product {
			v = ta[a] * tb[b]
		}
		return uint8(int32(quantizeOne(v/y.scale, lo-y.zero, hi-y.zero)) + int32(y.zero))
	})
	codes := new(simd.Codes)
	if e := simd.ElementKernels(); e != nil {
		plain := loops.Vec
		loops = element.Loops[uint8, uint8]{Vec: func(dst, a, b []uint8) {
			n := e.Combine(dst, a, b, codes, t == tensor.Int8, product)
			plain(dst[n:], a[n:], b[n:])
		}}
	}
	r := element.NewBinary(c.Pool, plan, loops)
	return func(c *op.Call) error {
		a, b := readAffine(c, 1), readAffine(c, 4)
		a.realTable(&ta, t)
		b.realTable(&tb, t)
		y = readAffine(c, 6)
		*codes = simd.NewCodes(a.scale, a.zero, b.scale, b.zero, y.scale, y.zero, lo, hi, product)
		r.Run(c.Pool, c.Out[0].Data, c.In[0].Data, c.In[3].Data)
		return nil
	}, nil
}

// prepareQTable makes operators of one 8-bit tensor: the whole function is a table of 256 values,
// recomputed for each run because its scales are inputs.
func prepareQTable(mk func(c *op.Call) func(float32) float32) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		if err := checkQuantised(c, 0, 1, 3); err != nil {
			return nil, err
		}
		f, t := mk(c), c.In[0].Type
		var table [256]uint8
		var reals [256]float32
		look := elementwise.RunLookup(func(dst, src []uint8) { element.Lookup(dst, src, &table) })
		var from, to affine // of the table, if there is one
		made := false
		return func(c *op.Call) error {
			if x, y := readAffine(c, 1), readAffine(c, 3); !made || x != from || y != to {
				x.realTable(&reals, t)
				for i, v := range reals {
					table[i] = y.code(f(v), t)
				}
				from, to, made = x, y, true
			}
			return look(c)
		}, nil
	}
}

// LookUp: quantised values, then a table of 256 entries in the order of the 8-bit patterns, or
// [C, 256] with one table for each channel of [N, C, ...].

func inferLookUp(c *op.Call) error {
	x, t := c.In[0], c.In[1]
	if !IsByte(x) || !IsByte(t) || t.Len() != lookUps && (len(t.Shape) != 2 || t.Shape[1] != lookUps || len(x.Shape) < 2 || x.Shape[1] != t.Shape[0]) {
		return op.Unsupported("looking %v %s up in %v %s", x.Type, tensor.FormatShape(x.Shape), t.Type, tensor.FormatShape(t.Shape))
	}
	return c.Result(t.Type, x.Shape)
}

// lookUps is the number of entries of a table.
const lookUps = 256

func prepareLookUp(c *op.Call) (op.Run, error) {
	if c.Kernel = "table"; c.In[1].Len() != lookUps {
		return lookUpEach, nil
	}
	var table *[lookUps]uint8
	run := elementwise.RunLookup(func(dst, src []uint8) { element.Lookup(dst, src, table) })
	return func(c *op.Call) error {
		table = (*[lookUps]uint8)(c.In[1].Data)
		return run(c)
	}, nil
}

// lookUpEach looks up each channel in its table.
func lookUpEach(c *op.Call) error {
	planes := c.In[0].Shape[0] * c.In[1].Shape[0]
	if planes == 0 || len(c.In[0].Data) == 0 {
		return nil
	}
	workers.Do(c.Pool, planes, max(1, element.LookupGrain()*planes/len(c.In[0].Data)), c, func(c *op.Call, lo, hi int) {
		y, x, tables, channels := c.Out[0].Data, c.In[0].Data, c.In[1].Data, c.In[1].Shape[0]
		n := len(x) / (c.In[0].Shape[0] * channels)
		for i := lo; i < hi; i++ {
			element.Lookup(y[i*n:(i+1)*n], x[i*n:(i+1)*n], (*[lookUps]uint8)(tables[i%channels*lookUps:]))
		}
	})
	return nil
}

// lastOfLookUp is NHWCAll for a table shared by all channels.
func lastOfLookUp(c *op.Call) op.NHWCSupport {
	if c.In[1].Len() != lookUps {
		return op.NHWCNever
	}
	return op.NHWCAll
}

// lastOfTwo allows channels-last order for operands of the same shape, and for one operand with a
// single number for each channel of the other.
func lastOfTwo(c *op.Call) op.NHWCSupport {
	a, b := c.In[0].Shape, c.In[3].Shape
	if c.Const(0) || c.Const(3) || len(a) != 4 || len(b) != 4 || !slices.Equal(a, b) && !eachChannel(a, b) && !eachChannel(b, a) {
		return op.NHWCNever
	}
	return op.NHWCAll
}

// eachChannel reports whether b has one number for each channel of a.
func eachChannel(a, b []int) bool { return a[0] == b[0] && a[1] == b[1] && b[2] == 1 && b[3] == 1 }

// leaky is LeakyRelu.
func leaky(c *op.Call) func(float32) float32 {
	a := c.Node.Attrs.Float("alpha", 0.01)
	return func(x float32) float32 {
		if x < 0 {
			return a * x
		}
		return x
	}
}

func inferQuant(c *op.Call) error { return elem.InferBroadcast(c, c.In[0].Type, 0, 1, 2) }

// roundings are the rounding modes of QONNX's Quant.
var roundings = map[string]func(float64) float64{
	"ROUND": math.RoundToEven, "HALF_EVEN": math.RoundToEven, "CEIL": math.Ceil, "FLOOR": math.Floor,
	"ROUND_TO_ZERO": math.Trunc, "DOWN": math.Trunc,
	"UP":        func(x float64) float64 { return math.Copysign(math.Ceil(math.Abs(x)), x) },
	"HALF_UP":   math.Round,
	"HALF_DOWN": func(x float64) float64 { return math.Copysign(math.Ceil(math.Abs(x)-0.5), x) },
}

// prepareQuant quantises to a bit width and back, so that values stay real: (round(clip(x/scale +
// zero)) - zero)·scale.
func prepareQuant(c *op.Call) (op.Run, error) {
	for i := range 4 {
		if c.In[i].Type != tensor.Float32 {
			return nil, elem.BadType(c, i)
		}
	}
	if c.In[3].Len() != 1 {
		return nil, op.Unsupported("Quant with several bit widths")
	}
	round := roundings[c.Node.Attrs.Str("rounding_mode", "ROUND")]
	if round == nil {
		return nil, op.Unsupported("rounding mode %q", c.Node.Attrs.Str("rounding_mode", ""))
	}
	signed, narrow := c.Node.Attrs.Bool("signed", true), c.Node.Attrs.Bool("narrow", false)
	plan, err := elementwise.NewBroadcast(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape, c.In[2].Shape)
	if err != nil {
		return nil, err
	}
	var lo, hi float64
	work := func(c *op.Call, a, b int) {
		x, scale, zero, dst := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.In[2]), tensor.Of[float32](c.Out[0])
		for it := plan.Runs(a, b); it.Next(); {
			for i := range it.N {
				s, z := scale[it.Off[1]+i*plan.Step[1]], zero[it.Off[2]+i*plan.Step[2]]
				v := round(max(lo, min(hi, float64(x[it.Off[0]+i*plan.Step[0]]/s+z))))
				dst[it.Dst+i] = (float32(v) - z) * s
			}
		}
	}
	return func(c *op.Call) error {
		lo, hi = bitRange(float64(tensor.Single[float32](c.In[3])), signed, narrow)
		workers.Do(c.Pool, plan.Len, element.Grain, c, work)
		return nil
	}, nil
}

func bitRange(bits float64, signed, narrow bool) (lo, hi float64) {
	if signed {
		lo, hi = -math.Exp2(bits-1), math.Exp2(bits-1)-1
		if narrow {
			lo++
		}
		return lo, hi
	}
	hi = math.Exp2(bits) - 1
	if narrow {
		hi--
	}
	return 0, hi
}

// Some 8-bit operators of the Microsoft domain have no useful integer form: they are their
// float32 counterparts between a table look-up and a quantisation.

// AroundFloat prepares the float32 operator that mk makes from a call whose input 0 and output 0
// are real, and wraps it. Scale and zero point of the input are inputs 1 and 2, those of the
// output 3 and 4.
func AroundFloat(mk elem.Prepare) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		if err := checkQuantised(c, 0, 1, 3); err != nil {
			return nil, err
		}
		w := *c
		w.In = []*tensor.Tensor{{Type: tensor.Float32, Shape: c.In[0].Shape, Data: c.Scratch(4 * c.In[0].Len())}}
		w.Out = []*tensor.Tensor{{Type: tensor.Float32, Shape: c.Out[0].Shape, Data: c.Scratch(4 * c.Out[0].Len())}}
		run, err := mk(&w)
		if err != nil {
			return nil, err
		}
		t := c.In[0].Type
		lo, hi := intRange(t)
		// Of a run; allocated once.
		var x, y affine
		var codes []uint8
		wide, narrow := tensor.Of[float32](w.In[0]), tensor.Of[float32](w.Out[0])
		widen := func(a, b int) { toReals(wide[a:b], codes[a:b], t == tensor.Int8, int32(x.zero), x.scale) }
		round := func(a, b int) { toCodes(codes[a:b], narrow[a:b], y.scale, lo-y.zero, hi-y.zero, int32(y.zero)) }
		return func(c *op.Call) error {
			x, y = readAffine(c, 1), readAffine(c, 3)
			codes = c.In[0].Data
			c.Pool.For(len(wide), element.Grain, widen)
			if err := run(&w); err != nil {
				return err
			}
			codes = c.Out[0].Data
			c.Pool.For(len(narrow), element.Grain, round)
			return nil
		}, nil
	}
}

// qSoftmaxCall follows the attribute "opset", which selects the version of Softmax.
func qSoftmaxCall(c *op.Call) *op.Call {
	n := *c.Node
	n.Version = n.Attrs.Int("opset", 13)
	w := *c
	w.Node = &n
	return &w
}

// qReduceCall hides the inputs after the first: input 1 is a scale, not the axes.
func qReduceCall(c *op.Call) *op.Call {
	w := *c
	w.In = c.In[:1]
	return &w
}

// inferQWhere: condition, X with its scale and zero point, the same for Y, then scale and zero
// point of the result.
func inferQWhere(c *op.Call) error {
	if len(c.In) < 8 || !c.Has(0) || !c.Has(1) || !c.Has(4) {
		return c.Errorf("inputs are missing")
	}
	if c.In[1].Type != c.In[4].Type {
		return c.Errorf("operands are %v and %v", c.In[1].Type, c.In[4].Type)
	}
	return elem.InferBroadcast(c, c.In[1].Type, 0, 1, 4)
}

func prepareQWhere(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, elem.BadType(c, 0)
	}
	if err := checkQuantised(c, 1, 2, 5, 7); err != nil {
		return nil, err
	}
	plan, err := elementwise.NewBroadcast(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape, c.In[4].Shape)
	if err != nil {
		return nil, err
	}
	t := c.In[1].Type
	var codes [2][256]uint8 // from the codes of Y and X to those of the result
	var reals [256]float32
	return func(c *op.Call) error {
		z := readAffine(c, 7)
		for k, i := range []int{5, 2} {
			readAffine(c, i).realTable(&reals, t)
			for q, v := range reals {
				codes[k][q] = z.code(v, t)
			}
		}
		cond, x, y, dst := c.In[0].Data, c.In[1].Data, c.In[4].Data, c.Out[0].Data
		for it := plan.Runs(0, plan.Len); it.Next(); {
			for i := range it.N {
				if cond[it.Off[0]+i*plan.Step[0]] != 0 {
					dst[it.Dst+i] = codes[1][x[it.Off[1]+i*plan.Step[1]]]
				} else {
					dst[it.Dst+i] = codes[0][y[it.Off[2]+i*plan.Step[2]]]
				}
			}
		}
		return nil
	}, nil
}
