package arith

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// binaryQuant holds the scales of two inputs and an output. Products and quotients of scales are
// computed in float32 wherever the reference kernels do so.
type binaryQuant struct {
	S1, S2, So float32
	Z1, Z2, zo int32
	lo, hi     int32
}

// NewBinaryQuant reads the scales of inputs 0 and 1 and of output 0, which must be positive.
func NewBinaryQuant(c *op.Call) (q binaryQuant, err error) {
	var s [3]float32
	for i, t := range []*tensor.Tensor{c.In[0], c.In[1], c.Out[0]} {
		if s[i], *[]*int32{&q.Z1, &q.Z2, &q.zo}[i], err = layer.ScaleOf(t); err != nil {
			return q, err
		}
		if !(s[i] > 0) {
			return q, c.Errorf("scale %v", s[i])
		}
	}
	q.S1, q.S2, q.So = s[0], s[1], s[2]
	q.lo, q.hi, err = layer.ClampOf(c)
	return q, err
}

// Range returns the zero point of the output and its limits.
func (q *binaryQuant) Range() (zero, lo, hi int32) { return q.zo, q.lo, q.hi }

// Clamp adds the zero point of the output and saturates to its range.
func (q *binaryQuant) Clamp(v int32) int32 { return min(max(v+q.zo, q.lo), q.hi) }

func quantArith[T int8 | uint8 | int16](c *op.Call, k recipe.PlainKind, w *broadcast.Walk) (op.Run, error) {
	if c.Out[0].Type != c.In[0].Type {
		return nil, op.Unsupported("%v inputs with %v output", c.In[0].Type, c.Out[0].Type)
	}
	q, err := NewBinaryQuant(c)
	if err != nil {
		return nil, err
	}
	wide := c.In[0].Type == tensor.Int16
	switch k {
	case recipe.PlainAdd, recipe.PlainSub, recipe.PlainSquaredDifference:
		return sumQuant[T](c, k, w, q, wide)
	case recipe.PlainMul:
		// TensorFlow Lite multiplies the scales in float32, TFLite Micro in float64, whose
		// results match the reference outputs.
		m := fixed.FromReal(float64(q.S1) * float64(q.S2) / float64(q.So))
		c.Recipe = recipe.Product{A: c.In[0].Shape, B: c.In[1].Shape, ZeroA: q.Z1, ZeroB: q.Z2, Mul: m, Zero: q.zo, Min: q.lo, Max: q.hi}
		z1, z2 := q.Z1, q.Z2
		pair, ok := quantise.NewMul[T](z1, z2, m, q.zo, q.lo, q.hi)
		if !ok {
			pair = nil
		}
		return sums(c, w, q.scaled(m), pair, func(dst []int32, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = (int32(a[i]) - z1) * (int32(b[i]) - z2)
			}
		}), nil
	case recipe.PlainDiv:
		return divQuant[T](c, w, q)
	}
	return nil, op.Unsupported("%v inputs", c.In[0].Type)
}

// sumQuant converts both inputs to a common finer scale, adds or subtracts there and scales once
// more. For 8-bit inputs the first step is a table.
func sumQuant[T int8 | uint8 | int16](c *op.Call, k recipe.PlainKind, w *broadcast.Walk, q binaryQuant, wide bool) (op.Run, error) {
	shift := 20
	switch {
	case k == recipe.PlainSquaredDifference && wide:
		shift = 0
	case k == recipe.PlainSquaredDifference:
		shift = 7
	case wide:
		shift = 15
	}
	twice := 2 * float64(max(q.S1, q.S2))
	m1, m2 := fixed.FromReal(float64(q.S1)/twice), fixed.FromReal(float64(q.S2)/twice)
	mo := fixed.FromReal(twice / (float64(int(1)<<shift) * float64(q.So)))
	if k == recipe.PlainSquaredDifference {
		mo = fixed.FromReal(twice * twice / (float64(int(1)<<(2*shift)) * float64(q.So)))
	}
	c.Recipe = recipe.Sum{
		Kind: sumKind(k), A: c.In[0].Shape, B: c.In[1].Shape, Shift: shift, ZeroA: q.Z1, ZeroB: q.Z2, MulA: m1, MulB: m2, MulOut: mo,
		Zero: q.zo, Min: q.lo, Max: q.hi,
	}
	first := func(x int32) int32 { return m1.Apply((x - q.Z1) << shift) }
	second := func(y int32) int32 { return m2.Apply((y - q.Z2) << shift) }
	finish := func(a, b int32) T {
		switch k {
		case recipe.PlainAdd:
			return T(q.Clamp(mo.Apply(a + b)))
		case recipe.PlainSub:
			return T(q.Clamp(mo.Apply(a - b)))
		}
		d := a - b
		return T(q.Clamp(mo.Apply(d * d)))
	}
	var pair *quantise.Binary[T]
	var ok bool
	if k == recipe.PlainSquaredDifference {
		pair, ok = quantise.NewSquaredDifference[T](shift, q.Z1, q.Z2, m1, m2, mo, q.zo, q.lo, q.hi)
	} else {
		pair, ok = quantise.NewAdd[T](k == recipe.PlainSub, shift, q.Z1, q.Z2, m1, m2, mo, q.zo, q.lo, q.hi)
	}
	switch {
	case ok && wide:
		return RunPair(c, w, pair), nil
	case wide:
		return RunBinary(c, w, element.FromFunc(func(x, y T) T { return finish(first(int32(x)), second(int32(y))) })), nil
	}
	if !ok {
		pair = nil
	}
	tables := sync.OnceValue(func() *[2][256]int32 {
		var t [2][256]int32
		for i := range 256 {
			t[0][i], t[1][i] = first(int32(T(i))), second(int32(T(i)))
		}
		return &t
	})
	return sums(c, w, q.scaled(mo), pair, func(dst []int32, a, b []T) {
		t := tables()
		t1, t2 := &t[0], &t[1]
		a, b = a[:len(dst)], b[:len(dst)]
		switch k {
		case recipe.PlainAdd:
			for i := range dst {
				dst[i] = t1[uint8(a[i])] + t2[uint8(b[i])]
			}
		case recipe.PlainSub:
			for i := range dst {
				dst[i] = t1[uint8(a[i])] - t2[uint8(b[i])]
			}
		default:
			for i := range dst {
				d := t1[uint8(a[i])] - t2[uint8(b[i])]
				dst[i] = d * d
			}
		}
	}), nil
}

// scaled returns a function that makes the requantisation by a multiplier, for kernels over pairs
// that do not include it.
func (q *binaryQuant) scaled(m fixed.Multiplier) func() *quantise.Uniform {
	zero, lo, hi := q.Range()
	return func() *quantise.Uniform { return quantise.NewUniform(m, zero, lo, hi) }
}

func sumKind(k recipe.PlainKind) recipe.SumKind {
	switch k {
	case recipe.PlainSub:
		return recipe.Sub
	case recipe.PlainSquaredDifference:
		return recipe.SquaredDifference
	}
	return recipe.Add
}

// sums runs f, which combines two inputs, and quantises its results, block by block. pair, if not
// nil, does both with SIMD. For 8-bit values with a single constant a table holds the results.
func sums[T int8 | uint8 | int16](c *op.Call, w *broadcast.Walk, scaled func() *quantise.Uniform, pair *quantise.Binary[T], f func(dst []int32, a, b []T)) op.Run {
	for i := range 2 {
		if x := c.In[i]; c.Const(i) && x.Len() == 1 && x.Type != tensor.Int16 && c.Out[0].Len() == c.In[1-i].Len() {
			return layer.Lookup(1-i, tabulate(scaled(), tensor.Of[T](x)[0], i == 0, f))
		}
	}
	if pair != nil {
		return RunPair(c, w, pair)
	}
	u := scaled()
	// Several workers run the kernel: each uses its own scratch memory.
	free := sync.Pool{New: func() any { return new([quantise.RequantBlock]int32) }}
	return RunBinary(c, w, element.Loops[T, T]{Vec: func(dst, a, b []T) {
		workspace := free.Get().(*[quantise.RequantBlock]int32)
		for len(dst) > 0 {
			n := min(len(dst), quantise.RequantBlock)
			f(workspace[:n], a, b)
			quantise.UniformRow(u, dst[:n], workspace[:n])
			dst, a, b = dst[n:], a[n:], b[n:]
		}
		free.Put(workspace)
	}})
}

// RunPair applies kernels on quantised values to two inputs and an output of one type.
func RunPair[T quantise.Integer](c *op.Call, w *broadcast.Walk, pair *quantise.Binary[T]) op.Run {
	return RunBinary(c, w, element.Loops[T, T]{Vec: pair.Run, Rows: pair.Rows})
}

// tabulate computes the results for all quantised values with a constant, which is the first or
// second operand.
func tabulate[T int8 | uint8 | int16](u *quantise.Uniform, v T, first bool, f func(dst []int32, a, b []T)) *[256]uint8 {
	a, b := make([]T, 256), slices.Repeat([]T{v}, 256)
	for i := range a {
		a[i] = T(i)
	}
	if first {
		a, b = b, a
	}
	sums, out := make([]int32, 256), make([]T, 256)
	f(sums, a, b)
	quantise.UniformRow(u, out, sums)
	var table [256]uint8
	for i, v := range out {
		table[i] = uint8(v)
	}
	return &table
}

func divQuant[T int8 | uint8 | int16](c *op.Call, w *broadcast.Walk, q binaryQuant) (op.Run, error) {
	m := fixed.FromReal(float64(q.S1 / (q.S2 * q.So)))
	finish := func(x scaledNumber, inv scaledNumber) T {
		total := m.Shift - inv.bits - x.bits
		return T(q.Clamp(fixed.RoundShift(fixed.DoublingHighMul(fixed.DoublingHighMul(x.m, inv.m), m.M), -total)))
	}
	// Both operands change sign if the divisor is negative.
	quotient := func(xq, yq T) T {
		x, y := int32(xq)-q.Z1, int32(yq)-q.Z2
		if y < 0 {
			x, y = -x, -y
		}
		return finish(dividend(x), divisor(y))
	}
	loops := element.FromFunc(quotient)
	if c.In[0].Type != tensor.Int16 {
		// Computing the operand of a value costs some fifty times as much as its table look-up.
		tables := sync.OnceValue(func() *quotientTables {
			t := new(quotientTables)
			for i := range 256 {
				x, y := int32(T(i))-q.Z1, int32(T(i))-q.Z2
				t.dividends[0][i], t.dividends[1][i] = dividend(x), dividend(-x)
				if y < 0 {
					y, t.negative[i] = -y, 1
				}
				if y != 0 {
					t.divisors[i] = divisor(y)
				}
			}
			return t
		})
		loops.Vec = func(dst, a, b []T) {
			t := tables()
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				y := uint8(b[i])
				dst[i] = finish(t.dividends[t.negative[y]&1][uint8(a[i])], t.divisors[y])
			}
		}
	}
	run := RunBinary(c, w, loops)
	return func(c *op.Call) error {
		for _, v := range tensor.Of[T](c.In[1]) {
			if int32(v) == q.Z2 {
				return errDivision
			}
		}
		return run(c)
	}, nil
}

// scaledNumber is m·2^-bits, with as many bits in m as fit.
type scaledNumber struct {
	m    int32
	bits int
}

// quotientTables holds the operands of a division by quantised value: dividends with both signs,
// for positive and negative divisors; divisors as reciprocals of magnitudes.
type quotientTables struct {
	dividends [2][256]scaledNumber
	divisors  [256]scaledNumber
	negative  [256]uint8
}

func dividend(x int32) scaledNumber {
	head := signBits(x)
	return scaledNumber{x << uint(head), head}
}

// divisor returns 1/y, y > 0.
func divisor(y int32) scaledNumber {
	inv, e := fixed.Reciprocal(y, 31)
	return scaledNumber{inv, e}
}

// signBits returns the number of leading bits of x that repeat the sign.
func signBits(x int32) int {
	if x >= 0 {
		return bits.LeadingZeros32(uint32(x)) - 1
	}
	if x == math.MinInt32 {
		return 0
	}
	return bits.LeadingZeros32(2*uint32(-x)-1) - 1
}

func inferAddN(c *op.Call) error {
	if err := c.NeedInputs(len(c.In)); err != nil {
		return err
	}
	if len(c.In) == 0 {
		return c.Errorf("no input")
	}
	for i, x := range c.In {
		if x.Type != c.In[0].Type || tensor.FormatShape(x.Shape) != tensor.FormatShape(c.In[0].Shape) {
			return c.Errorf("input %d is %v %s, input 0 %v %s", i, x.Type, tensor.FormatShape(x.Shape), c.In[0].Type, tensor.FormatShape(c.In[0].Shape))
		}
	}
	return layer.InferSame(c)
}

func prepareAddN(c *op.Call) (op.Run, error) {
	if f := tensor.PickNumber(c.In[0].Type, addN[float32], nil, nil, nil, addN[int32], addN[int64], nil, nil, nil, nil); f != nil {
		return f, nil
	}
	switch t := c.In[0].Type; t {
	case tensor.Int8:
		return addNQuant(c)
	default:
		return nil, op.Unsupported("%v inputs", t)
	}
}

func addN[T float32 | int32 | int64](c *op.Call) error {
	out := tensor.Of[T](c.Out[0])
	copy(out, tensor.Of[T](c.In[0]))
	for _, x := range c.In[1:] {
		for i, v := range tensor.Of[T](x) {
			out[i] += v
		}
	}
	return nil
}

// addNQuant adds int8 inputs of one quantisation at a finer scale.
func addNQuant(c *op.Call) (op.Run, error) {
	const shift = 20
	si, so, zi, zo, err := layer.InOut(c)
	if err != nil {
		return nil, err
	}
	twice := 2 * float64(si)
	m := fixed.FromReal(float64(si) / twice)
	mo := fixed.FromReal(twice / ((1 << shift) * float64(so)))
	return func(c *op.Call) error {
		out := tensor.Of[int8](c.Out[0])
		for i := range out {
			var s int32
			for _, x := range c.In {
				s += m.Apply((int32(int8(x.Data[i])) - zi) << shift)
			}
			out[i] = int8(min(max(mo.Apply(s)+zo, math.MinInt8), math.MaxInt8))
		}
		return nil
	}, nil
}
