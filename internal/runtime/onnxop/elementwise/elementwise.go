// Package elementwise implements ONNX's element-wise operators: arithmetic, comparisons, logic,
// functions of one variable, selection and casts, of all operator-set versions.
//
// Kernels have three layers. A walk of internal/kernel/broadcast splits any shapes into
// contiguous runs; the loops of internal/kernel/element work on runs; a definition selects the
// loops for its element type. float16 and bfloat16 are computed in float32 and rounded once at
// the end. Types of eight bits and fewer occur only where the standard has them: casts and
// classification.
package elementwise

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	own, truth := inferBinary(tensor.Invalid), inferBinary(tensor.Bool)
	def := func(name string, since int, types []tensor.Type, infer func(*op.Call) error, p elem.Prepare) op.Def {
		return op.Def{Name: name, Since: since, Types: types, Infer: infer, Prepare: p}
	}
	inPlace := func(name string, since int, types []tensor.Type, infer func(*op.Call) error, p elem.Prepare) op.Def {
		d := def(name, since, types, infer, p)
		d.InPlace = true
		return d
	}
	binary := func(name string, k arith) op.Def { return inPlace(name, 1, elem.Numbers, own, arithPrepare(k)) }
	many := func(name string, types []tensor.Type, k arith, mean bool) op.Def {
		return def(name, 1, types, inferMany, elem.Widen(func(c *op.Call) (op.Run, error) { return prepareMany(c, k, mean) }))
	}
	relate := func(name string, since int, types []tensor.Type, k relation) op.Def {
		return def(name, since, types, truth, elem.Widen(elem.With(prepareCompare, k)))
	}
	logic := func(name string, k bitop) op.Def {
		return inPlace(name, 1, elem.Bools, truth, elem.With(prepareLogic, k))
	}
	bits := func(name string, k bitop) op.Def {
		return inPlace(name, 18, elem.Integers, own, elem.With(prepareBits, k))
	}
	integral := func(name string, since int, types []tensor.Type, k exact) op.Def {
		return inPlace(name, since, types, elem.Same, prepareHalfExact(k))
	}
	signed, text := slices.Concat(elem.Floats, elem.Signed), []tensor.Type{tensor.String}
	allFloats := slices.Concat(elem.Floats, elem.Float8s)
	castable := slices.Concat(elem.Numbers, elem.Bools, text, elem.Float8s, []tensor.Type{tensor.Float8E8M0}, elem.Packed)
	defs := []op.Def{
		elem.Fusing(binary("Add", add)), elem.Fusing(binary("Sub", sub)), elem.Fusing(binary("Mul", mul)), binary("Div", div),
		inPlace("Mod", 10, elem.Numbers, own, elem.Widen(prepareMod)),
		inPlace("PRelu", 1, slices.Concat(elem.Floats, elem.Signed[2:], elem.Unsigned[2:]), op.Needs(2, inferPRelu), elem.Widen(preparePRelu)),
		inPlace("Pow", 1, slices.Concat(elem.Floats, elem.Signed[2:]), own, elem.Widen(preparePow)),
		many("Max", elem.Numbers, maximum, false), many("Min", elem.Numbers, minimum, false),
		many("Sum", elem.Floats, add, false), many("Mean", elem.Floats, add, true),
		inPlace("SwiGLU", 28, elem.Floats, op.Needs(2, inferSwiGLU), elem.Widen(prepareSwiGLU)),
		def("Where", 9, nil, op.Needs(3, inferWhere), layout.WithUnpacked(prepareWhere)),
		relate("Equal", 1, slices.Concat(elem.Numbers, elem.Bools, text), equal),
		relate("Less", 1, elem.Numbers, less), relate("Greater", 1, elem.Numbers, greater),
		relate("LessOrEqual", 12, elem.Numbers, lessEqual), relate("GreaterOrEqual", 12, elem.Numbers, greaterEqual),
		logic("And", bitAnd), logic("Or", bitOr), logic("Xor", bitXor),
		bits("BitwiseAnd", bitAnd), bits("BitwiseOr", bitOr), bits("BitwiseXor", bitXor),
		inPlace("BitShift", 11, elem.Integers, own, prepareShift),
		integral("Abs", 1, elem.Numbers, absolute), integral("Neg", 1, signed, negative), integral("Sign", 9, elem.Numbers, signum),
		integral("Relu", 1, signed, rectify), integral("BitwiseNot", 18, elem.Integers, complement),
		inPlace("Not", 1, elem.Bools, elem.Same, prepareNot),
		def("IsNaN", 9, allFloats, elem.SameTruth, classify(isNaN)), def("IsInf", 10, allFloats, elem.SameTruth, classify(isInf)),
		{Name: "Clip", Since: 1, Types: elem.Numbers, Infer: elem.Same, InPlace: true, Prepare: prepareClip, NHWC: elem.AllLast},
		{Domain: graph.Microsoft, Name: "FastGelu", Since: 1, Types: elem.Floats, Infer: elem.Same, Prepare: elem.Widen(prepareFastGelu)},
		{Domain: graph.Microsoft, Name: "BiasGelu", Since: 1, Types: elem.Floats, Infer: own, Prepare: elem.Widen(prepareBiasGelu)},
		def("Cast", 1, castable, op.Needs(1, inferCast), prepareCast), def("CastLike", 15, castable, op.Needs(2, inferCastLike), prepareCast),
		inPlace("BitCast", 26, nil, op.Needs(1, inferBitCast), op.Simple(func(c *op.Call) error {
			copy(c.Out[0].Data, c.In[0].Data)
			return nil
		})),
		// Experimental in early operator sets, and then dropped, like Affine and Scale among the curves.
		inPlace("ImageScaler", 1, elem.Floats, elem.Same, elem.Widen(prepareImageScaler)),
		def("Crop", 1, elem.Floats, op.Needs(1, inferCrop), prepareCrop),
	}
	for _, e := range curves() {
		types := elem.Floats
		if e.ints {
			types = elem.Numbers
		}
		defs = append(defs, op.Def{
			Domain: e.domain, Name: e.name, Since: e.since, Types: types, Infer: elem.Same, InPlace: true,
			Prepare: prepareCurve(e.make, e.ints, e.doubles),
		})
	}
	return defs
}

// Broadcast is the walk over operands and a result.
type Broadcast = broadcast.Walk

// NewBroadcast plans the walk over operands of the given shapes; it returns an unsupported error
// if the walk cannot handle them.
func NewBroadcast(out []int, operands ...[]int) (*Broadcast, error) {
	b, err := broadcast.New(out, operands...)
	if err != nil {
		return nil, op.Unsupported("%v", err)
	}
	return b, nil
}

// operands plans the walk over inputs 0 and 1.
func operands(c *op.Call) (*Broadcast, error) {
	a, b, out, err := operandShapes(c)
	if err != nil {
		return nil, err
	}
	return NewBroadcast(out, a, b)
}

// operandShapes returns the shapes of inputs 0 and 1 for broadcasting and the result's shape.
// Before operator set 7 the attributes broadcast and axis aligned the second operand with the
// first.
func operandShapes(c *op.Call) (a, b, out []int, err error) {
	a, b = c.In[0].Shape, c.In[1].Shape
	if c.Node.Version < 7 && c.Node.Domain == "" && c.Node.Attrs.Bool("broadcast", false) {
		if tensor.Elements(b) == 1 {
			return a, nil, a, nil
		}
		if c.Node.Attrs.Has("axis") {
			axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), len(a))
			if err != nil {
				return nil, nil, nil, err
			}
			if axis+len(b) > len(a) {
				return nil, nil, nil, c.Errorf("shape %s at axis %d does not fit %s", tensor.FormatShape(b), axis, tensor.FormatShape(a))
			}
			b = slices.Clone(b)
			for len(b) < len(a)-axis {
				b = append(b, 1)
			}
		}
	}
	out, err = tensor.Broadcast(a, b)
	return a, b, out, err
}

// inferBinary sets the type of a binary operator's result to t, or to the operands' own for
// Invalid.
func inferBinary(t tensor.Type) func(c *op.Call) error {
	return op.Needs(2, func(c *op.Call) error {
		_, _, out, err := operandShapes(c)
		if err != nil {
			return err
		}
		ty := t
		if ty == tensor.Invalid {
			ty = c.In[0].Type
		}
		return c.Result(ty, out)
	})
}

// prepareLoops plans the broadcast of the two inputs and runs the loops over it.
func prepareLoops[T, R tensor.Number](c *op.Call, l element.Loops[T, R]) (op.Run, error) {
	plan, err := operands(c)
	if err != nil {
		return nil, err
	}
	r := element.NewBinary(c.Pool, plan, l)
	return func(c *op.Call) error {
		r.Run(c.Pool, tensor.Of[R](c.Out[0]), tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]))
		return nil
	}, nil
}

// arith identifies a binary operator whose result has the type of its operands.
type arith uint8

const (
	add arith = iota
	sub
	mul
	div
	modFloor
	modTrunc
	maximum
	minimum
	prelu
)

// prepareArith selects the loops for the type of input 0.
func prepareArith(c *op.Call, k arith) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	if act := c.Activation; act.On && c.In[0].Type == tensor.Float32 {
		l := element.Clamped(realLoops[float32](k), act.Min, act.Max)
		if k == add {
			l = element.ClampedAdd(act.Min, act.Max)
		}
		return prepareLoops(c, l)
	} else if act.On {
		return nil, op.Unsupported("clamped %s of %v", c.Node.Op, c.In[0].Type)
	}
	if f := tensor.PickNumber(c.In[0].Type, realArith[float32], realArith[float64], intArith[int8], intArith[int16], intArith[int32], intArith[int64], intArith[uint8], intArith[uint16], intArith[uint32], intArith[uint64]); f != nil {
		return f(c, k)
	}
	return nil, elem.BadType(c, 0)
}

func realArith[T tensor.Real](c *op.Call, k arith) (op.Run, error) {
	return prepareLoops(c, realLoops[T](k))
}

func intArith[T tensor.Integer](c *op.Call, k arith) (op.Run, error) {
	return prepareLoops(c, intLoops[T](k))
}

// commonLoops covers the operators with the same loops for all numeric types.
func commonLoops[T tensor.Number](k arith) element.Loops[T, T] {
	switch k {
	case add:
		return element.Add[T]()
	case sub:
		return element.Sub[T]()
	case mul:
		return element.Mul[T]()
	case maximum:
		return element.Max[T]()
	case minimum:
		return element.Min[T]()
	}
	return element.PRelu[T]()
}

func realLoops[T tensor.Real](k arith) element.Loops[T, T] {
	switch k {
	case div:
		return element.Div[T]()
	case modFloor:
		return element.ModFloor[T]()
	case modTrunc:
		return element.ModTrunc[T]()
	}
	return commonLoops[T](k)
}

func intLoops[T tensor.Integer](k arith) element.Loops[T, T] {
	switch k {
	case div:
		return element.IntDiv[T]()
	case modFloor:
		return element.IntModFloor[T]()
	case modTrunc:
		return element.IntModTrunc[T]()
	}
	return commonLoops[T](k)
}

func arithPrepare(k arith) elem.Prepare {
	wide := elem.Widen(func(c *op.Call) (op.Run, error) { return prepareArith(c, k) })
	return func(c *op.Call) (op.Run, error) {
		if t := c.In[0].Type; t.IsHalf() && len(c.In) == 2 && c.In[1].Type == t && c.Out[0].Type == t {
			return prepareHalves(c, k)
		}
		return wide(c)
	}
}

// prepareMod reads the rounding of the quotient from the attribute.
func prepareMod(c *op.Call) (op.Run, error) {
	if c.Node.Attrs.Bool("fmod", false) {
		return prepareArith(c, modTrunc)
	}
	return prepareArith(c, modFloor)
}

// inferPRelu: the slope broadcasts to the input, never the other way round. Before operator set
// 7, and in many later files, a slope of C elements belongs to dimension 1.
func inferPRelu(c *op.Call) error {
	if _, err := slopeShape(c); err != nil {
		return err
	}
	return c.Result(c.In[0].Type, c.In[0].Shape)
}

func slopeShape(c *op.Call) ([]int, error) {
	x, s := c.In[0].Shape, c.In[1].Shape
	if tensor.Elements(s) == 1 {
		return nil, nil
	}
	if b, err := tensor.Broadcast(x, s); err == nil && tensor.Elements(b) == tensor.Elements(x) && len(b) == len(x) && (c.Node.Version >= 7 || len(s) != 1) {
		return s, nil
	}
	if len(s) == 1 && len(x) >= 2 && s[0] == x[1] {
		v := []int{s[0]}
		for range len(x) - 2 {
			v = append(v, 1)
		}
		return v, nil
	}
	return nil, c.Errorf("slope of shape %s does not fit input of shape %s", tensor.FormatShape(s), tensor.FormatShape(x))
}

func preparePRelu(c *op.Call) (op.Run, error) {
	s := op.Must(slopeShape(c))
	// prepareArith reads the shapes from the inputs: pass it the reshaped slope.
	v := *c
	slope := *c.In[1]
	slope.Shape = s
	v.In = []*tensor.Tensor{c.In[0], &slope}
	run, err := prepareArith(&v, prelu)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error { return run(c) }, nil
}

// halfBlock is the number of results of a binary float16 operator that are computed together, in
// float32: a block stays in the cache.
const halfBlock = 1024

// prepareHalves runs the float32 loops on 16-bit operands.
func prepareHalves(c *op.Call, k arith) (op.Run, error) {
	walk, err := operands(c)
	if err != nil {
		return nil, err
	}
	l := realLoops[float32](k)
	if act := c.Activation; act.On {
		l = element.Clamped(l, act.Min, act.Max)
	}
	workspaces := make([]float32, 2*halfBlock*c.Pool.Threads()) // two blocks per thread
	return op.ParallelWorkers(walk.Len, element.Grain, func(c *op.Call, worker, lo, hi int) {
		workspace := workspaces[worker*2*halfBlock:]
		a, b, n := workspace[:halfBlock], workspace[halfBlock:2*halfBlock], 0
		flush := func() {
			l.Vec(a[:n], a[:n], b[:n])
			elem.WriteHalves(c.Out[0], lo, a[:n])
			lo, n = lo+n, 0
		}
		for it := walk.Runs(lo, hi); it.Next(); {
			for at := 0; at < it.N; {
				m := min(it.N-at, halfBlock-n)
				takeHalves(a[n:n+m], c.In[0], it.Off[0], at, walk.Step[0])
				takeHalves(b[n:n+m], c.In[1], it.Off[1], at, walk.Step[1])
				if at, n = at+m, n+m; n == halfBlock {
					flush()
				}
			}
		}
		if n > 0 {
			flush()
		}
	}), nil
}

// takeHalves widens a part of a run of an operand, or repeats a broadcast one.
func takeHalves(dst []float32, x *tensor.Tensor, off, at, step int) {
	if step == 1 {
		elem.ReadHalves(dst, x, off+at)
		return
	}
	elem.ReadHalves(dst[:1], x, off)
	element.Fill(dst, dst[0])
}

// relation identifies a comparison.
type relation uint8

const (
	equal relation = iota
	less
	lessEqual
	greater
	greaterEqual
)

func prepareCompare(c *op.Call, k relation) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	if f := tensor.PickNumber(c.In[0].Type, compareOf[float32], compareOf[float64],
		compareOf[int8], compareOf[int16], compareOf[int32], compareOf[int64], compareOf[uint8], compareOf[uint16], compareOf[uint32], compareOf[uint64]); f != nil {
		return f(c, k)
	}
	switch t := c.In[0].Type; {
	case t == tensor.Bool && k == equal:
		return compareOf[uint8](c, k)
	case t == tensor.String && k == equal:
		return equalStrings(c)
	}
	return nil, elem.BadType(c, 0)
}

func compareOf[T tensor.Number](c *op.Call, k relation) (op.Run, error) {
	return prepareLoops(c, compareLoops[T](k))
}

func compareLoops[T cmp.Ordered](k relation) element.Loops[T, uint8] {
	switch k {
	case equal:
		return element.Equal[T]()
	case less:
		return element.Less[T]()
	case lessEqual:
		return element.LessEqual[T]()
	case greater:
		return element.Greater[T]()
	}
	return element.GreaterEqual[T]()
}

func equalStrings(c *op.Call) (op.Run, error) {
	plan, err := operands(c)
	if err != nil {
		return nil, err
	}
	r := element.NewBinary(c.Pool, plan, element.Equal[string]())
	return func(c *op.Call) error {
		r.Run(c.Pool, tensor.Of[uint8](c.Out[0]), c.In[0].Strings, c.In[1].Strings)
		return nil
	}, nil
}

// bitop identifies a binary operator on bit patterns or booleans.
type bitop uint8

const (
	bitAnd bitop = iota
	bitOr
	bitXor
	shiftLeft
	shiftRight
)

func prepareBits(c *op.Call, k bitop) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	if f := tensor.PickInteger(c.In[0].Type, bitsOf[int8], bitsOf[int16], bitsOf[int32], bitsOf[int64], bitsOf[uint8], bitsOf[uint16], bitsOf[uint32], bitsOf[uint64]); f != nil {
		return f(c, k)
	}
	return nil, elem.BadType(c, 0)
}

func bitsOf[T tensor.Integer](c *op.Call, k bitop) (op.Run, error) {
	return prepareLoops(c, bitLoops[T](k))
}

func bitLoops[T tensor.Integer](k bitop) element.Loops[T, T] {
	switch k {
	case bitAnd:
		return element.And[T]()
	case bitOr:
		return element.Or[T]()
	case bitXor:
		return element.Xor[T]()
	case shiftLeft:
		return element.ShiftLeft[T]()
	}
	return element.ShiftRight[T]()
}

// prepareLogic runs the bit operators on booleans, which are 0 or 1.
func prepareLogic(c *op.Call, k bitop) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, elem.BadType(c, 0)
	}
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	return prepareLoops(c, bitLoops[uint8](k))
}

func prepareShift(c *op.Call) (op.Run, error) {
	switch d := c.Node.Attrs.Str("direction", ""); d {
	case "LEFT":
		return prepareBits(c, shiftLeft)
	case "RIGHT":
		return prepareBits(c, shiftRight)
	default:
		return nil, c.Errorf("direction %q is neither LEFT nor RIGHT", d)
	}
}
