package nn

import (
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/fixed"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// reduction is an input seen as alternating kept and reduced axes.
type reduction struct {
	shape   []int // of the output
	dims    []int // joined axes
	reduced []bool
	count   int // elements that become one
	kept    int
}

func shapeReduce(c *op.Call) (*reduction, error) {
	if err := c.NeedInputs(2); err != nil {
		return nil, err
	}
	x := c.In[0].Shape
	axes, err := op.Ints(c.In[1])
	if err != nil {
		return nil, err
	}
	drop := make([]bool, len(x))
	for _, a := range axes {
		if len(x) == 0 && (a == 0 || a == -1) {
			continue
		}
		i, err := op.Axis(a, len(x))
		if err != nil {
			return nil, err
		}
		drop[i] = true
	}
	r := &reduction{shape: []int{}, count: 1, kept: 1}
	keep := c.Node.Attrs.Bool("keep_dims", false)
	for i, d := range x {
		switch {
		case !drop[i]:
			r.shape = append(r.shape, d)
			r.kept *= d
		case keep:
			r.shape = append(r.shape, 1)
			r.count *= d
		default:
			r.count *= d
		}
		if n := len(r.dims); n > 0 && r.reduced[n-1] == drop[i] {
			r.dims[n-1] *= d
		} else {
			r.dims, r.reduced = append(r.dims, d), append(r.reduced, drop[i])
		}
	}
	return r, nil
}

func inferReduce(c *op.Call) error {
	r, err := shapeReduce(c)
	if err != nil {
		return err
	}
	c.SetOut(0, outType(c, c.In[0].Type), r.shape)
	return nil
}

// fold reduces x into acc, which has r.kept elements. row folds many elements
// into one, vec folds elements into accumulators one to one.
func fold[T tensor.Number, A tensor.Number](p *workers.Pool, r *reduction, x []T, acc []A, start A, row func(A, []T) A, vec func([]A, []T)) {
	for i := range acc {
		acc[i] = start
	}
	if len(x) == 0 {
		return
	}
	if len(r.dims) == 0 {
		acc[0] = row(acc[0], x)
		return
	}
	if r.reduced[0] || len(r.dims) == 1 {
		foldAxes(r.dims, r.reduced, x, acc, row, vec)
		return
	}
	in, out := len(x)/r.dims[0], len(acc)/r.dims[0]
	p.For(r.dims[0], max(1, grain/max(in, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			foldAxes(r.dims[1:], r.reduced[1:], x[i*in:(i+1)*in], acc[i*out:(i+1)*out], row, vec)
		}
	})
}

func foldAxes[T tensor.Number, A tensor.Number](dims []int, reduced []bool, x []T, acc []A, row func(A, []T) A, vec func([]A, []T)) {
	if len(dims) == 1 {
		if reduced[0] {
			acc[0] = row(acc[0], x)
		} else {
			vec(acc, x)
		}
		return
	}
	in := len(x) / dims[0]
	for i := range dims[0] {
		a := acc
		if !reduced[0] {
			n := len(acc) / dims[0]
			a = acc[i*n : (i+1)*n]
		}
		foldAxes(dims[1:], reduced[1:], x[i*in:(i+1)*in], a, row, vec)
	}
}

func foldSum[T tensor.Number, A tensor.Number](p *workers.Pool, r *reduction, x []T, acc []A) {
	fold(p, r, x, acc, 0, func(a A, v []T) A {
		for _, e := range v {
			a += A(e)
		}
		return a
	}, func(a []A, v []T) {
		a = a[:len(v)]
		for i, e := range v {
			a[i] += A(e)
		}
	})
}

// prepareSum makes SUM and MEAN.
func prepareSum(mean bool) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		r, err := shapeReduce(c)
		if err != nil {
			return nil, err
		}
		x, y := c.In[0].Type, c.Out[0].Type
		if x != y {
			return nil, op.Unsupported("%v input with %v output", x, y)
		}
		if quantised(c.In[0]) {
			if f := tensor.PickInteger(x, quantSum[int8], quantSum[int16], nil, nil, quantSum[uint8], nil, nil, nil); f != nil {
				return f(c, r, mean)
			}
		}
		switch x {
		case tensor.Float32:
			return plainSum[float32, float32](c, r, mean)
		case tensor.Int32:
			return plainSum[int32, int64](c, r, mean)
		case tensor.Int64:
			return plainSum[int64, int64](c, r, mean)
		}
		return nil, op.Unsupported("%v input", x)
	}
}

// plainSum sums in order and in the type of the reference kernels: float32, or
// 64-bit integers.
func plainSum[T float32 | int32 | int64, A float32 | int64](c *op.Call, r *reduction, mean bool) (op.Run, error) {
	typ := tensor.Int64
	if c.In[0].Type == tensor.Float32 {
		typ = tensor.Float32
	}
	acc := op.ScratchOf[A](c, r.kept)
	return func(c *op.Call) error {
		foldSum(c.Pool, r, tensor.Of[T](c.In[0]), acc)
		y := tensor.Of[T](c.Out[0])
		for i, v := range acc {
			if mean && (r.count > 0 || typ == tensor.Float32) { // the mean of nothing is not a number
				v /= A(r.count)
			}
			y[i] = T(v)
		}
		return nil
	}, nil
}

func quantSum[T int8 | uint8 | int16](c *op.Call, r *reduction, mean bool) (op.Run, error) {
	si, so, zi, zo, err := inOut(c)
	if err != nil {
		return nil, err
	}
	m := fixed.FromReal(float64(si) / float64(so))
	if mean {
		m = m.Mean(r.count)
	}
	lo, hi := limits(c.Out[0].Type)
	acc := op.ScratchOf[int32](c, r.kept)
	offset := zi * int32(r.count)
	return func(c *op.Call) error {
		foldSum(c.Pool, r, tensor.Of[T](c.In[0]), acc)
		y := tensor.Of[T](c.Out[0])
		for i, v := range acc {
			y[i] = T(min(max(m.Apply(v-offset)+zo, lo), hi))
		}
		return nil
	}, nil
}

// prepareExtreme makes REDUCE_MAX and REDUCE_MIN, which copy stored values.
func prepareExtreme(least bool) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		r, err := shapeReduce(c)
		if err != nil {
			return nil, err
		}
		if c.In[0].Type != c.Out[0].Type {
			return nil, op.Unsupported("%v input with %v output", c.In[0].Type, c.Out[0].Type)
		}
		switch t := c.In[0].Type; t {
		case tensor.Float32:
			inf := float32(math.Inf(1))
			return extreme(r, least, -inf, inf), nil
		case tensor.Int8:
			return extreme[int8](r, least, math.MinInt8, math.MaxInt8), nil
		case tensor.Uint8:
			return extreme[uint8](r, least, 0, math.MaxUint8), nil
		case tensor.Int16:
			return extreme[int16](r, least, math.MinInt16, math.MaxInt16), nil
		case tensor.Int32:
			return extreme[int32](r, least, math.MinInt32, math.MaxInt32), nil
		case tensor.Int64:
			return extreme[int64](r, least, math.MinInt64, math.MaxInt64), nil
		default:
			return nil, op.Unsupported("%v input", t)
		}
	}
}

func extreme[T float32 | int8 | uint8 | int16 | int32 | int64](r *reduction, least bool, lowest, highest T) op.Run {
	pick, start := func(a, b T) T { return max(a, b) }, lowest
	if least {
		pick, start = func(a, b T) T { return min(a, b) }, highest
	}
	return func(c *op.Call) error {
		fold(c.Pool, r, tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), start, func(a T, v []T) T {
			for _, e := range v {
				a = pick(a, e)
			}
			return a
		}, func(a []T, v []T) {
			for i, e := range v {
				a[i] = pick(a[i], e)
			}
		})
		return nil
	}
}

func prepareProd(c *op.Call) (op.Run, error) {
	r, err := shapeReduce(c)
	if err != nil {
		return nil, err
	}
	if c.In[0].Type != c.Out[0].Type || quantised(c.In[0]) {
		return nil, op.Unsupported("%v input with %v output", c.In[0].Type, c.Out[0].Type)
	}
	if f := tensor.PickNumber(c.In[0].Type, prod[float32], nil, nil, nil, prod[int32], prod[int64], nil, nil, nil, nil); f != nil {
		return f(r), nil
	}
	return nil, op.Unsupported("%v input", c.In[0].Type)
}

func prod[T float32 | int32 | int64](r *reduction) op.Run {
	return func(c *op.Call) error {
		fold(c.Pool, r, tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), 1, func(a T, v []T) T {
			for _, e := range v {
				a *= e
			}
			return a
		}, func(a []T, v []T) {
			for i, e := range v {
				a[i] *= e
			}
		})
		return nil
	}
}

// prepareLogic makes REDUCE_ANY and REDUCE_ALL.
func prepareLogic(all bool) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		r, err := shapeReduce(c)
		if err != nil {
			return nil, err
		}
		if c.In[0].Type != tensor.Bool || c.Out[0].Type != tensor.Bool {
			return nil, op.Unsupported("%v input", c.In[0].Type)
		}
		start := uint8(0)
		join := func(a, b uint8) uint8 { return a | min(b, 1) }
		if all {
			start, join = 1, func(a, b uint8) uint8 { return a & min(b, 1) }
		}
		return func(c *op.Call) error {
			fold(c.Pool, r, c.In[0].Data, c.Out[0].Data, start, func(a uint8, v []uint8) uint8 {
				for _, e := range v {
					a = join(a, e)
				}
				return a
			}, func(a, v []uint8) {
				for i, e := range v {
					a[i] = join(a[i], e)
				}
			})
			return nil
		}, nil
	}
}

func prepareCumsum(c *op.Call) (op.Run, error) {
	axes, err := op.Ints(c.In[1])
	if err != nil || len(axes) != 1 {
		return nil, op.Unsupported("axis that is not one known number")
	}
	a, err := op.Axis(axes[0], c.In[0].Rank())
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(c.In[0].Shape)
	exclusive, reverse := c.Node.Attrs.Bool("exclusive", false), c.Node.Attrs.Bool("reverse", false)
	n, inner := shape[a], tensor.Elements(shape[a+1:])
	if f := tensor.PickNumber(c.In[0].Type, cumsum[float32], nil, nil, nil, cumsum[int32], cumsum[int64], nil, nil, nil, nil); f != nil {
		return f(n, inner, exclusive, reverse), nil
	}
	return nil, op.Unsupported("%v input", c.In[0].Type)
}

func inferCumsum(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, c.In[0].Shape)
	if !c.In[1].Known() {
		return op.ErrDynamic
	}
	return nil
}

func cumsum[T float32 | int32 | int64](n, inner int, exclusive, reverse bool) op.Run {
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		if n*inner == 0 {
			return nil
		}
		for o := 0; o < len(x); o += n * inner {
			for j := range inner {
				var s T
				for k := range n {
					if reverse {
						k = n - 1 - k
					}
					i := o + k*inner + j
					if exclusive {
						y[i] = s
						s += x[i]
					} else {
						s += x[i]
						y[i] = s
					}
				}
			}
		}
		return nil
	}
}
