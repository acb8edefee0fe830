package elementwise

import (
	"cmp"
	"math"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func compareDefs() []op.Def {
	var l []op.Def
	for _, name := range []string{"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"} {
		l = append(l, lite(name, inferBinary(tensor.Bool), prepareCompare))
	}
	return append(l,
		lite("LOGICAL_AND", inferBinary(tensor.Bool), prepareLogical(func(a, b uint8) uint8 { return a & b })),
		lite("LOGICAL_OR", inferBinary(tensor.Bool), prepareLogical(func(a, b uint8) uint8 { return a | b })),
		lite("LOGICAL_NOT", inferNot, prepareNot))
}

func prepareCompare(c *op.Call) (op.Run, error) {
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		return compare(c, both(tensor.Of[float32]))
	case tensor.Float64:
		return compare(c, both(tensor.Of[float64]))
	case tensor.Float16:
		return compare(c, both(halves))
	case tensor.Int8:
		if scaled(c) {
			return compareScaled[int8](c)
		}
		return compare(c, both(tensor.Of[int8]))
	case tensor.Uint8:
		if scaled(c) {
			return compareScaled[uint8](c)
		}
		return compare(c, both(tensor.Of[uint8]))
	case tensor.Bool:
		return compare(c, both(tensor.Of[uint8]))
	case tensor.Int16:
		return compare(c, both(tensor.Of[int16]))
	case tensor.Uint16:
		return compare(c, both(tensor.Of[uint16]))
	case tensor.Int32:
		return compare(c, both(tensor.Of[int32]))
	case tensor.Uint32:
		return compare(c, both(tensor.Of[uint32]))
	case tensor.Int64:
		return compare(c, both(tensor.Of[int64]))
	case tensor.Uint64:
		return compare(c, both(tensor.Of[uint64]))
	case tensor.String:
		return compare(c, both(func(x *tensor.Tensor) []string { return x.Strings }))
	default:
		return nil, op.Unsupported("elements of type %v", t)
	}
}

func halves(x *tensor.Tensor) []float32 {
	h := tensor.Of[uint16](x)
	y := make([]float32, len(h))
	for i, v := range h {
		y[i] = tensor.F16ToF32(v)
	}
	return y
}

// compare knows <, <=, == and !=; the other two are the first with the operands
// exchanged.
func compare[T cmp.Ordered](c *op.Call, view [2]func(*tensor.Tensor) []T) (op.Run, error) {
	var f rowFunc[T, bool]
	switch c.Node.Op {
	case "EQUAL":
		f = equalRow[T]
	case "NOT_EQUAL":
		f = notEqualRow[T]
	case "LESS":
		f = lessRow[T]
	case "LESS_EQUAL":
		f = lessEqualRow[T]
	case "GREATER":
		f = func(y []bool, a, b []T, as, bs int) { lessRow(y, b, a, bs, as) }
	default:
		f = func(y []bool, a, b []T, as, bs int) { lessEqualRow(y, b, a, bs, as) }
	}
	return overRows(c, view, tensor.Of[bool], f)
}

func equalRow[T comparable](y []bool, a, b []T, as, bs int) {
	i, j := 0, 0
	for k := range y {
		y[k] = a[i] == b[j]
		i += as
		j += bs
	}
}

func notEqualRow[T comparable](y []bool, a, b []T, as, bs int) {
	i, j := 0, 0
	for k := range y {
		y[k] = a[i] != b[j]
		i += as
		j += bs
	}
}

func lessRow[T cmp.Ordered](y []bool, a, b []T, as, bs int) {
	i, j := 0, 0
	for k := range y {
		y[k] = a[i] < b[j]
		i += as
		j += bs
	}
}

func lessEqualRow[T cmp.Ordered](y []bool, a, b []T, as, bs int) {
	i, j := 0, 0
	for k := range y {
		y[k] = a[i] <= b[j]
		i += as
		j += bs
	}
}

// scaled reports whether both inputs are quantised differently, so that their
// codes cannot be compared as they are.
func scaled(c *op.Call) bool {
	a, b := c.In[0].Quant, c.In[1].Quant
	if a == nil || b == nil || len(a.Scale) != 1 || len(b.Scale) != 1 || len(a.Zero) < 1 || len(b.Zero) < 1 {
		return false
	}
	return a.Scale[0] != b.Scale[0] || a.Zero[0] != b.Zero[0]
}

// compareScaled brings both operands to a common fixed-point scale with eight
// extra bits, as the reference kernels do, and compares those.
func compareScaled[T int8 | uint8](c *op.Call) (op.Run, error) {
	low := 0
	if c.In[0].Type == tensor.Int8 {
		low = math.MinInt8
	}
	var views [2]func(*tensor.Tensor) []int32
	for k := range views {
		q := c.In[k].Quant
		m, e := multiplier(float64(q.Scale[0]))
		var table [256]int32
		for v := low; v < low+256; v++ {
			table[uint8(v)] = apply(int32((int64(v)-q.Zero[0])<<8), m, e)
		}
		wide := make([]int32, c.In[k].Len())
		views[k] = func(x *tensor.Tensor) []int32 {
			for i, v := range x.Data {
				wide[i] = table[v]
			}
			return wide
		}
	}
	return compare(c, views)
}

// multiplier splits a real factor into a Q0.31 mantissa and a power of two.
func multiplier(f float64) (m int32, e int) {
	if f == 0 {
		return 0, 0
	}
	frac, e := math.Frexp(f)
	q := int64(math.Round(frac * (1 << 31)))
	if q == 1<<31 {
		q /= 2
		e++
	}
	if e < -31 {
		return 0, 0
	}
	return int32(q), e
}

// apply multiplies with rounding in two steps: the doubled high half, then the
// shift, both to the nearest.
func apply(x, m int32, e int) int32 {
	if e > 0 {
		x <<= e
	}
	p := int64(x) * int64(m)
	nudge := int64(1 << 30)
	if p < 0 {
		nudge = 1 - nudge
	}
	h := int32((p + nudge) / (1 << 31))
	if e >= 0 {
		return h
	}
	n := -e
	mask := int32(1)<<n - 1
	if n >= 31 {
		mask = math.MaxInt32
	}
	threshold := mask >> 1
	if h < 0 {
		threshold++
	}
	r := h >> n
	if h&mask > threshold {
		r++
	}
	return r
}

func prepareLogical(f func(a, b uint8) uint8) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		if c.In[0].Type != tensor.Bool {
			return nil, op.Unsupported("elements of type %v", c.In[0].Type)
		}
		return numbers(c, by(f))
	}
}

func inferNot(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	c.SetOut(0, tensor.Bool, c.In[0].Shape)
	return nil
}

func prepareNot(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Bool {
		return nil, op.Unsupported("elements of type %v", c.In[0].Type)
	}
	return func(c *op.Call) error {
		y := tensor.Of[bool](c.Out[0])
		for i, v := range tensor.Of[bool](c.In[0]) {
			y[i] = !v
		}
		return nil
	}, nil
}
