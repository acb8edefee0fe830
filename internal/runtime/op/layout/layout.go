package layout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Of returns the elements of a tensor as a slice for moving. Packed types are viewed as bytes.
func Of(x *tensor.Tensor) move.Slice {
	if x.Type == tensor.String {
		return move.Slice{Strings: x.Strings}
	}
	return move.Slice{Bytes: x.Data, Width: max(x.Type.Bits(), 8) / 8}
}

// Aliased reports whether both tensors share memory because the planner let the operator work in
// place.
func Aliased(a, b *tensor.Tensor) bool {
	return len(a.Data) > 0 && len(b.Data) > 0 && &a.Data[0] == &b.Data[0]
}

// Copy copies every element of src to dst, which has the same number of bytes. It does nothing
// when they share memory. Containers share their elements, which are never written after
// creation.
func Copy(pool *workers.Pool, dst, src *tensor.Tensor) {
	switch {
	case src.Type == tensor.String:
		copy(dst.Strings, src.Strings)
		return
	case src.Type == tensor.Resource || src.Type.IsContainer():
		dst.Strings, dst.Elems, dst.Elem = src.Strings, src.Elems, src.Elem
		return
	case Aliased(dst, src):
		return
	}
	move.Copy(pool, dst.Data, src.Data)
}

// PrepareOnce calls build once, while preparing, if all inputs that are parameters are constant,
// and again in every run otherwise. Without params, all inputs but the first are parameters.
func PrepareOnce(build Prepare, params ...int) Prepare {
	return func(c *op.Call) (op.Run, error) {
		for i := range c.In {
			decides := slices.Contains(params, i) || len(params) == 0 && i > 0
			if decides && c.Has(i) && !c.Const(i) {
				return func(c *op.Call) error {
					run, err := build(c)
					if err != nil {
						return err
					}
					return run(c)
				}, nil
			}
		}
		return build(c)
	}
}

// RunPlan copies input 0 to output 0 by a copy plan.
func RunPlan(c *op.Call, p *move.Plan) (op.Run, error) {
	noteContiguous(c, p, 0, 0)
	return func(c *op.Call) error {
		p.Run(c.Pool, Of(c.Out[0]), Of(c.In[0]))
		return nil
	}, nil
}

// noteContiguous records a copy that is contiguous on both sides, for the memory planner.
func noteContiguous(c *op.Call, p *move.Plan, out, in int) {
	x := c.In[in]
	if to, from, n, ok := p.Together(x.Type.Bits() / 8); ok && n > 0 {
		c.NoteCopy(op.CopyRange{Out: out, OutOffset: to, In: in, InOffset: from, Bytes: n})
	}
}

// CopyAll copies every element of input 0 to output 0, unless they share memory.
func CopyAll(c *op.Call) (op.Run, error) {
	c.NoteCopy(op.CopyRange{Bytes: c.In[0].Bytes()})
	return func(c *op.Call) error {
		Copy(c.Pool, c.Out[0], c.In[0])
		return nil
	}, nil
}

// View fills a dense output 0 of the shape from a strided view of input 0.
func View(c *op.Call, shape, strides []int, from int) (op.Run, error) {
	return RunPlan(c, move.View(shape, strides, from))
}

// ViewGeometry is the geometry of [View] where the result's shape out differs from the shape that
// is walked: axes may be split or omitted.
func ViewGeometry(out, shape, strides []int, from int) (Geometry, error) {
	return Geometry{out, func(c *op.Call) (op.Run, error) { return View(c, shape, strides, from) }}, nil
}

// Transpose permutes the axes of input 0, which has the given shape. Negative axes count from the
// end.
func Transpose(shape, perm []int) (Geometry, error) {
	if len(perm) != len(shape) {
		return Geometry{}, fmt.Errorf("permutation %v for rank %d", perm, len(shape))
	}
	in, seen := tensor.Strides(shape), make([]bool, len(shape))
	dims, src := make([]int, len(perm)), make([]int, len(perm))
	for i, a := range perm {
		a, err := op.Axis(a, len(shape))
		if err != nil || seen[a] {
			return Geometry{}, fmt.Errorf("%v is not a permutation of %d axes", perm, len(shape))
		}
		dims[i], src[i], seen[a] = shape[a], in[a], true
	}
	return ViewGeometry(dims, dims, src, 0)
}

// Expand broadcasts input 0, of the given shape, to the shape out by NumPy's rules.
func Expand(shape, out []int) (Geometry, error) {
	src, err := broadcast.Strides(shape, out)
	if err != nil {
		return Geometry{}, err
	}
	return ViewGeometry(out, out, src, 0)
}

// StridedSlice takes count elements along each axis of input 0, of the given shape, from start on
// at intervals of step. Steps may be negative.
func StridedSlice(shape, start, step, count []int) (Geometry, error) {
	src, from := tensor.Strides(shape), 0
	for i, n := range count {
		from += src[i] * start[i]
		if n > 1 {
			src[i] *= step[i]
		} else {
			src[i] = 0 // the step is irrelevant
		}
	}
	return ViewGeometry(count, count, src, from)
}

// Tile repeats input 0, of the given shape, along its axes.
func Tile(shape, times []int) (Geometry, error) {
	if len(times) != len(shape) {
		return Geometry{}, fmt.Errorf("%d repeats for rank %d", len(times), len(shape))
	}
	out, st := make([]int, len(shape)), tensor.Strides(shape)
	var dims, src []int
	for i, d := range shape {
		if times[i] < 0 || d > 0 && times[i] > tensor.MaxBytes/d {
			return Geometry{}, fmt.Errorf("cannot repeat %d times", times[i])
		}
		out[i] = d * times[i]
		dims, src = append(dims, times[i], d), append(src, 0, st[i])
	}
	return ViewGeometry(out, dims, src, 0)
}

// Map fills an output of the shape out with the elements of input 0, of the given shape, that
// axis selects along each axis, see [move.Maps]. Other elements get the value of input number
// value, or of zero when that is absent.
func Map(shape, out []int, axis func(i int) []int, value int, zero *tensor.Tensor) Geometry {
	return Geometry{out, func(c *op.Call) (op.Run, error) {
		total := 0
		for _, n := range out {
			total += 8 * n
		}
		if err := c.Afford(total); err != nil {
			return nil, err
		}
		axes := make([][]int, len(out))
		for i := range axes {
			axes[i] = axis(i)
		}
		m := move.NewMaps(shape, axes)
		return func(c *op.Call) error {
			v := c.Input(value)
			if v == nil {
				v = zero
			}
			m.Run(c.Pool, Of(c.Out[0]), Of(c.In[0]), Of(v))
			return nil
		}, nil
	}}
}

// SpreadAxis returns the axis of a [Map] that places n elements at intervals of step, the first
// at low, into an axis of length out. Elements that fall outside are dropped.
func SpreadAxis(n, out, low, step int) []int {
	axis := slices.Repeat([]int{-1}, out)
	for k := range n {
		if at := low + k*step; at >= 0 && at < out {
			axis[at] = k
		}
	}
	return axis
}

// DynamicUpdateSlice copies input 0 to output 0 and input 1 over it. The start position is
// clamped so that the update fits.
func DynamicUpdateSlice(shape, update []int, start func(c *op.Call) ([]int, error)) (op.Run, error) {
	if len(update) != len(shape) {
		return nil, fmt.Errorf("update of rank %d for rank %d", len(update), len(shape))
	}
	for i, d := range update {
		if d > shape[i] {
			return nil, fmt.Errorf("update %s is larger than %s", tensor.FormatShape(update), tensor.FormatShape(shape))
		}
	}
	strides := tensor.Strides(shape)
	p := move.New(update, strides, tensor.Strides(update), 0, 0)
	return func(c *op.Call) error {
		at, err := start(c)
		if err != nil {
			return err
		}
		p.To = fitted(at, shape, update, strides)
		Copy(c.Pool, c.Out[0], c.In[0])
		p.Run(c.Pool, Of(c.Out[0]), Of(c.In[1]))
		return nil
	}, nil
}

// Fitted returns the element at which a window of the size begins when start is clamped so that
// the window lies inside the shape.
func Fitted(start, shape, size []int) int { return fitted(start, shape, size, tensor.Strides(shape)) }

func fitted(start, shape, size, strides []int) int {
	at := 0
	for i, s := range strides {
		at += min(max(start[i], 0), shape[i]-size[i]) * s
	}
	return at
}

// ReversedSequences reverses the first steps of each sequence of input 0, of the given shape;
// input 1 holds their number for each entry of the batch axis.
func ReversedSequences(shape []int, seq, batch int) (op.Run, error) {
	st := tensor.Strides(shape)
	dims, back := slices.Clone(shape), slices.Clone(st)
	dims[batch], back[seq] = 1, -st[seq]
	var p move.Plan
	return func(c *op.Call) error {
		lengths, err := op.Ints(c.In[1])
		if err != nil {
			return err
		}
		Copy(c.Pool, c.Out[0], c.In[0])
		for b, n := range lengths {
			if n < 0 || n > shape[seq] {
				return fmt.Errorf("length %d of sequence %d is outside 0 to %d", n, b, shape[seq])
			}
			if n == 0 {
				continue
			}
			dims[seq] = n
			at := b * st[batch]
			p.Set(dims, st, back, at, at+(n-1)*st[seq])
			p.Run(c.Pool, Of(c.Out[0]), Of(c.In[0]))
		}
		return nil
	}, nil
}

// Join concatenates all inputs along an axis of output 0, which has the given shape.
func Join(c *op.Call, shape []int, axis int, sizes []int) (op.Run, error) {
	plans := move.Pieces(shape, axis, sizes, true)
	for i := range plans {
		noteContiguous(c, &plans[i], 0, i)
	}
	one := func(c *op.Call, pool *workers.Pool, i int) { plans[i].Run(pool, Of(c.Out[0]), Of(c.In[i])) }
	return func(c *op.Call) error {
		partCopies{c, one}.run(len(plans), len(c.Out[0].Data))
		return nil
	}, nil
}

// Split is the inverse of [Join]: it splits the given input, of the given shape, into the
// outputs. Outputs that are not requested are skipped.
func Split(c *op.Call, input int, shape []int, axis int, sizes []int) (op.Run, error) {
	plans := move.Pieces(shape, axis, sizes, false)
	for i := range plans {
		noteContiguous(c, &plans[i], i, input)
	}
	one := func(c *op.Call, pool *workers.Pool, i int) {
		if y := c.Out[i]; y != nil {
			plans[i].Run(pool, Of(y), Of(c.In[input]))
		}
	}
	return func(c *op.Call) error {
		partCopies{c, one}.run(len(c.Out), len(c.In[input].Data))
		return nil
	}, nil
}

// partCopies copies parts of a tensor: many small parts in parallel, otherwise one after the
// other with all threads each.
type partCopies struct {
	c        *op.Call
	copyPart func(c *op.Call, pool *workers.Pool, i int)
}

// run copies n parts, bytes in total.
func (p partCopies) run(n, bytes int) {
	if n >= 4*p.c.Pool.Threads() {
		workers.Do(p.c.Pool, n, max(1, workers.Grain(bytesRate)/max(1, bytes/n)), p, partCopies.copyRange)
		return
	}
	for i := range n {
		p.copyPart(p.c, p.c.Pool, i)
	}
}

// copyRange copies parts lo to hi.
func (p partCopies) copyRange(lo, hi int) {
	for i := lo; i < hi; i++ {
		p.copyPart(p.c, nil, i)
	}
}

// bytesRate is roughly how many bytes a thread copies per nanosecond.
const bytesRate = 13

// SetSplitOutputs gives the outputs the shapes of the parts into which [Split] divides x.
func SetSplitOutputs(c *op.Call, x *tensor.Tensor, axis int, sizes []int) {
	for i, n := range sizes {
		shape := slices.Clone(x.Shape)
		shape[axis] = n
		c.SetOut(i, x.Type, shape)
	}
}

// Sizes returns the lengths of tensors along an axis.
func Sizes(x []*tensor.Tensor, axis int) []int {
	s := make([]int, len(x))
	for i, x := range x {
		s[i] = x.Shape[axis]
	}
	return s
}

// Concat concatenates all inputs along an axis. They must have the same type and, except for the
// axis, the same shape.
func Concat(x []*tensor.Tensor, axis int) (Geometry, error) {
	out := slices.Clone(x[0].Shape)
	for i, y := range x[1:] {
		if y.Type != x[0].Type || y.Rank() != len(out) {
			return Geometry{}, fmt.Errorf("input %d is %v %s and input 0 is %v %s", i+1, y.Type, tensor.FormatShape(y.Shape), x[0].Type, tensor.FormatShape(x[0].Shape))
		}
		for k, d := range y.Shape {
			if k == axis {
				out[k] += d
			} else if d != out[k] {
				return Geometry{}, fmt.Errorf("input %d is %s: dimension %d does not match %d", i+1, tensor.FormatShape(y.Shape), k, out[k])
			}
		}
	}
	return Geometry{out, func(c *op.Call) (op.Run, error) { return Join(c, out, axis, Sizes(x, axis)) }}, nil
}

// Stack concatenates all inputs along a new axis. They must have the same type and shape.
func Stack(x []*tensor.Tensor, axis int) (Geometry, error) {
	for i, y := range x {
		if y == nil || y.Type != x[0].Type || !slices.Equal(y.Shape, x[0].Shape) {
			return Geometry{}, fmt.Errorf("input %d differs from input 0, %v %s", i, x[0].Type, tensor.FormatShape(x[0].Shape))
		}
	}
	axis, err := op.Axis(axis, x[0].Rank()+1)
	if err != nil {
		return Geometry{}, err
	}
	out := slices.Insert(slices.Clone(x[0].Shape), axis, len(x))
	return Geometry{out, func(c *op.Call) (op.Run, error) { return Join(c, out, axis, slices.Repeat([]int{1}, len(x))) }}, nil
}

// Scalar reads a known integer tensor of one element.
func Scalar(x *tensor.Tensor) (int, error) {
	v, err := op.Ints(x)
	if err != nil {
		return 0, err
	}
	if len(v) != 1 {
		return 0, fmt.Errorf("%d elements where one is expected", len(v))
	}
	return v[0], nil
}

// PutInts writes integers to a tensor of type int64, int32 or int16.
func PutInts(x *tensor.Tensor, v []int) error {
	if x.Len() != len(v) {
		return errors.New("shape has changed since planning")
	}
	switch x.Type {
	case tensor.Int64:
		putInts(tensor.Of[int64](x), v)
	case tensor.Int16:
		putInts(tensor.Of[int16](x), v)
	default:
		putInts(tensor.Of[int32](x), v)
	}
	return nil
}

func putInts[T int16 | int32 | int64](dst []T, v []int) {
	for i, d := range v {
		dst[i] = T(d)
	}
}

// Outer returns the product of the dimensions before an axis.
func Outer(shape []int, axis int) int { return tensor.Elements(shape[:axis]) }

// Inner returns the product of the dimensions after an axis.
func Inner(shape []int, axis int) int { return tensor.Elements(shape[axis+1:]) }
