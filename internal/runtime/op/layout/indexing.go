package layout

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Positions reads indices into n elements to buf, which may be nil. With wrap, negative indices
// count from the end. Any other index that is out of range is an error, which names the first
// one.
func Positions(pool *workers.Pool, buf []int, x *tensor.Tensor, n int, wrap bool) ([]int, error) {
	switch x.Type {
	case tensor.Int64:
		return resolve(pool, buf, tensor.Of[int64](x), n, wrap)
	case tensor.Int32:
		return resolve(pool, buf, tensor.Of[int32](x), n, wrap)
	}
	v, err := op.Ints(x)
	if err != nil {
		return nil, err
	}
	return resolve(pool, buf, v, n, wrap)
}

func resolve[T int | int32 | int64](pool *workers.Pool, buf []int, v []T, n int, wrap bool) ([]int, error) {
	buf = slices.Grow(buf[:0], len(v))[:len(v)]
	// sharing between threads would allocate
	if grain := workers.Grain(1); len(v) <= grain || pool.Threads() == 1 {
		if i := resolveRange(buf, v, n, wrap); i < len(v) {
			return nil, outOfRange(v[i], n)
		}
	} else {
		var first atomic.Int64
		first.Store(int64(len(v)))
		pool.For(len(v), grain, func(lo, hi int) {
			bad := lo + resolveRange(buf[lo:hi], v[lo:hi], n, wrap)
			for at := first.Load(); bad < hi && int64(bad) < at && !first.CompareAndSwap(at, int64(bad)); at = first.Load() {
			}
		})
		if i := int(first.Load()); i < len(v) {
			return nil, outOfRange(v[i], n)
		}
	}
	return buf, nil
}

func outOfRange[T int | int32 | int64](i T, n int) error {
	return fmt.Errorf("index %d is outside %d elements", i, n)
}

// resolveRange returns the position of the first index that is out of range, else the number of
// indices.
func resolveRange[T int | int32 | int64](buf []int, v []T, n int, wrap bool) int {
	for at, i := range v {
		k := int(i)
		if k < 0 && wrap {
			k += n
		}
		if k < 0 || k >= n {
			return at
		}
		buf[at] = k
	}
	return len(v)
}

// Once wraps f, which depends only on input i of a call: if that input is constant, f is computed
// in the first run only.
func Once(c *op.Call, i int, f func(c *op.Call) ([]int, error)) func(c *op.Call) ([]int, error) {
	if !c.Const(i) {
		return f
	}
	var kept []int
	return func(c *op.Call) (at []int, err error) {
		if kept == nil {
			kept, err = f(c)
		}
		return kept, err
	}
}

// Gather selects the slices of x along an axis by index. x and idx share the first batch axes.
// With wrap, negative indices count from the end.
func Gather(x, idx []int, axis, batch int, wrap bool) (Geometry, error) {
	out := slices.Concat(x[:axis], idx[batch:], x[axis+1:])
	batches, rows := tensor.Elements(x[:batch]), tensor.Elements(x[batch:axis])
	n, inner, picks := x[axis], Inner(x, axis), tensor.Elements(idx[batch:])
	return Geometry{out, func(c *op.Call) (op.Run, error) {
		var buf []int
		g := move.Blocks{Rows: rows, SrcRow: n * inner, Len: inner}
		positions := Once(c, 1, func(c *op.Call) (at []int, err error) {
			buf, err = Positions(c.Pool, buf, c.In[1], n, wrap)
			return buf, err
		})
		fixed := c.Const(1) && batches == 1
		return func(c *op.Call) (err error) {
			at, err := positions(c)
			if err != nil {
				return err
			}
			dst, src := Of(c.Out[0]), Of(c.In[0])
			if fixed {
				if g.At == nil {
					g.At = at
					g.Join()
				}
				g.Gather(c.Pool, dst, src)
				return nil
			}
			for b := range batches {
				g.At = at[b*picks : (b+1)*picks]
				g.Gather(c.Pool, dst.From(b*rows*picks*inner), src.From(b*rows*n*inner))
			}
			return nil
		}, nil
	}}, nil
}

// GatherND fills output 0 with the blocks of input 0 that the index tuples in input 1 select.
func GatherND(x, idx []int, batch int, wrap bool) (Geometry, error) {
	g, err := NewTuples(x, idx, batch, wrap)
	if err != nil {
		return Geometry{}, err
	}
	return Geometry{slices.Concat(idx[:len(idx)-1], x[batch+g.K:]), func(c *op.Call) (op.Run, error) {
		b := move.Blocks{Rows: 1, Len: g.Block}
		offsets := Once(c, 1, func(c *op.Call) ([]int, error) { return g.Offsets(c.In[1]) })
		fixed := c.Const(1)
		return func(c *op.Call) (err error) {
			if !fixed || b.At == nil {
				if b.At, err = offsets(c); err != nil {
					return err
				}
				if fixed {
					b.Join()
				}
			}
			b.Gather(c.Pool, Of(c.Out[0]), Of(c.In[0]))
			return nil
		}, nil
	}}, nil
}

// Tuples is the geometry of GatherND and ScatterND: tuples of K indices, the last axis of an
// index tensor, select blocks of Block elements of the data.
type Tuples struct {
	K, Block int
	batches  int
	dims     []int // the K indexed dimensions
	wrap     bool
	at       []int
	wide     []int64 // indices widened from smaller types
}

// NewTuples checks the shapes of data and indices, which share the first batch axes. With wrap,
// negative indices count from the end.
func NewTuples(data, idx []int, batch int, wrap bool) (*Tuples, error) {
	if len(idx) == 0 || batch < 0 || batch >= len(idx) || batch > len(data) {
		return nil, fmt.Errorf("indices have rank %d with %d batch dimensions", len(idx), batch)
	}
	k := idx[len(idx)-1]
	if k+batch > len(data) {
		return nil, fmt.Errorf("indices of length %d do not fit data of rank %d", k, len(data))
	}
	if !slices.Equal(data[:batch], idx[:batch]) {
		return nil, fmt.Errorf("batch dimensions of %s and %s differ", tensor.FormatShape(data), tensor.FormatShape(idx))
	}
	return &Tuples{
		K: k, Block: tensor.Elements(data[batch+k:]),
		batches: tensor.Elements(data[:batch]), dims: slices.Clone(data[batch : batch+k]), wrap: wrap,
	}, nil
}

// Offsets returns the offset of each tuple's block, in units of blocks.
func (g *Tuples) Offsets(idx *tensor.Tensor) ([]int, error) {
	n := tensor.Elements(idx.Shape[:idx.Rank()-1])
	var v []int64
	switch idx.Type {
	case tensor.Int64:
		v = tensor.Of[int64](idx)
	case tensor.Int32:
		g.wide = g.wide[:0]
		for _, i := range tensor.Of[int32](idx) {
			g.wide = append(g.wide, int64(i))
		}
		v = g.wide
	default:
		w, err := op.Ints(idx)
		if err != nil {
			return nil, err
		}
		for _, i := range w {
			v = append(v, int64(i))
		}
	}
	g.at = g.at[:0]
	per := tensor.Elements(g.dims)
	for t := range n {
		o := 0
		for i, d := range g.dims {
			k := int(v[t*g.K+i])
			if k < 0 && g.wrap {
				k += d
			}
			if k < 0 || k >= d {
				return nil, fmt.Errorf("index %d is outside %d elements", v[t*g.K+i], d)
			}
			o = o*d + k
		}
		g.at = append(g.at, t/(n/g.batches)*per+o)
	}
	return g.at, nil
}

// OneHot fills output 0 with the first element of off, except at the given offsets, which get the
// first element of on.
func OneHot(c *op.Call, on, off move.Slice, at []int) error {
	y := Of(c.Out[0])
	if y.Len() > 0 {
		move.Fill(c.Pool, y, off)
		move.Mark(y, on, at)
	}
	return nil
}

// OneHotOffset returns the offset of the "on" element of a one-hot tensor for index number i with
// the value k. The axis has depth entries with inner elements after it.
func OneHotOffset(i, k, depth, inner int) int { return (i/inner*depth+k)*inner + i%inner }

// shortRuns is the length below which the runs of a walk are selected several at a time: a call
// costs as much as a few of their elements.
const shortRuns = 32

// Select fills output 0 from input 1 where input 0, a condition, is true and from input 2
// elsewhere. The walk broadcasts the three inputs.
func Select(w *broadcast.Walk, grain int) op.Run {
	p := selection{w: w}
	if w.Inner < w.Len && w.Inner < shortRuns {
		p.spans = w.Spans(1 << 10)
	}
	return func(c *op.Call) error {
		p := p
		p.cond, p.y, p.a, p.b = tensor.Of[uint8](c.In[0]), Of(c.Out[0]), Of(c.In[1]), Of(c.In[2])
		workers.Do(c.Pool, w.Len, grain, p, selection.selectRange)
		return nil
	}
}

// selection holds the arguments of a work item of Select.
type selection struct {
	w       *broadcast.Walk
	spans   *broadcast.Spans // nil if runs are long
	cond    []uint8
	y, a, b move.Slice
}

// selectRange selects elements lo to hi.
func (p selection) selectRange(lo, hi int) {
	if p.spans == nil && p.w.Step[0] == 0 && p.y.Width > 0 {
		p.selectRuns(lo, hi)
		return
	}
	if p.spans == nil {
		for r := p.w.Runs(lo, hi); r.Next(); {
			move.Pick(p.y.From(r.Dst).To(r.N), p.a.From(r.Off[1]), p.b.From(r.Off[2]), p.cond[r.Off[0]:], p.w.Step)
		}
		return
	}
	for r := p.spans.Pieces(lo, hi); r.Next(); {
		at := p.spans.Table
		for k := range at {
			if at[k] != nil {
				at[k] = at[k][r.Place:]
			}
		}
		move.PickPlaces(p.y.From(r.Dst).To(r.N), p.a.From(r.Off[1]), p.b.From(r.Off[2]), p.cond[r.Off[0]:], at)
	}
}

// selectRuns handles runs that come from one side as a whole.
func (p selection) selectRuns(lo, hi int) {
	width := p.y.Width
	var filled []byte // bytes filled with the side's only element
	var of *byte
	for r := p.w.Runs(lo, hi); r.Next(); {
		from, k := p.a.Bytes, 1
		if p.cond[r.Off[0]] == 0 {
			from, k = p.b.Bytes, 2
		}
		from = from[r.Off[k]*width:]
		dst := p.y.Bytes[r.Dst*width:][:r.N*width]
		switch {
		case p.w.Step[k] == 1:
			copy(dst, from)
		case of == &from[0] && len(filled) >= len(dst):
			copy(dst, filled)
		default:
			for n := copy(dst, from[:width]); n < len(dst); n *= 2 {
				copy(dst[n:], dst[:n])
			}
			filled, of = dst, &from[0]
		}
	}
}

// EachNonZero calls f with the index of every element that is not zero.
func EachNonZero(x *tensor.Tensor, f func(i int)) error {
	switch {
	case x.Type.IsNumber():
		var block [256]float64
		for lo, n := 0, x.Len(); lo < n; lo += len(block) {
			b := block[:min(len(block), n-lo)]
			tensor.Read(b, x, lo)
			nonZero(b, func(i int) { f(lo + i) })
		}
	case x.Type == tensor.Complex64:
		nonZero(tensor.Of[complex64](x), f)
	case x.Type == tensor.Complex128:
		nonZero(tensor.Of[complex128](x), f)
	case x.Type == tensor.String:
		nonZero(x.Strings, f)
	default:
		return op.Unsupported("truth of %v", x.Type)
	}
	return nil
}

func nonZero[T comparable](v []T, f func(i int)) {
	var zero T
	for i, x := range v {
		if x != zero {
			f(i)
		}
	}
}

// nonZeroBlock is the number of elements that are examined together.
const nonZeroBlock = 256

// nonZeroIndices lists the indices, relative to lo, of the non-zero elements from lo to hi, at
// most nonZeroBlock of them. It avoids branches that cannot be predicted.
func nonZeroIndices(at *[nonZeroBlock + 1]int32, x *tensor.Tensor, lo, hi int) []int32 {
	var n int
	switch x.Type {
	case tensor.Bool, tensor.Int8, tensor.Uint8:
		n = nonZeroIndicesOf(at, x.Data[lo:hi])
	case tensor.Int32:
		n = nonZeroIndicesOf(at, tensor.Of[int32](x)[lo:hi])
	case tensor.Int64:
		n = nonZeroIndicesOf(at, tensor.Of[int64](x)[lo:hi])
	case tensor.Float32:
		n = nonZeroIndicesOf(at, tensor.Of[float32](x)[lo:hi])
	case tensor.Float64:
		n = nonZeroIndicesOf(at, tensor.Of[float64](x)[lo:hi])
	default:
		var v [nonZeroBlock]float64
		tensor.Read(v[:hi-lo], x, lo)
		n = nonZeroIndicesOf(at, v[:hi-lo])
	}
	return at[:n]
}

func nonZeroIndicesOf[T comparable](at *[nonZeroBlock + 1]int32, v []T) (n int) {
	var zero T
	for i, x := range v {
		at[n] = int32(i)
		n += int(tensor.Truth(x != zero))
	}
	return n
}

// CountNonZero returns the number of non-zero elements of x, or [op.ErrDynamic] when they are not
// known.
func CountNonZero(x *tensor.Tensor) (n int, err error) {
	switch {
	case !x.Known():
		return 0, op.ErrDynamic
	case x.Type == tensor.Bool:
		return len(x.Data) - bytes.Count(x.Data, []byte{0}), nil
	case x.Type.IsNumber():
		var at [nonZeroBlock + 1]int32
		for lo, all := 0, x.Len(); lo < all; lo += nonZeroBlock {
			n += len(nonZeroIndices(&at, x, lo, min(lo+nonZeroBlock, all)))
		}
		return n, nil
	}
	err = EachNonZero(x, func(int) { n++ })
	return n, err
}

// NonZeroCoordinates writes the coordinates of every non-zero element of x: coordinate d of the
// k-th such element goes to out[k*step + d*axis].
func NonZeroCoordinates(out []int64, x *tensor.Tensor, step, axis int) error {
	k := 0
	if last := len(x.Shape) - 1; (x.Type == tensor.Bool || x.Type.IsNumber()) && last >= 0 {
		var workspace [nonZeroBlock + 1]int32
		at, n := make([]int, last), x.Shape[last]
		for line, all := 0, x.Len(); line < all; line += n {
			for lo := 0; lo < n; lo += nonZeroBlock {
				found := nonZeroIndices(&workspace, x, line+lo, line+min(lo+nonZeroBlock, n))
				for d, q := range at {
					for j := range found {
						out[(k+j)*step+d*axis] = int64(q)
					}
				}
				for j, i := range found {
					out[(k+j)*step+last*axis] = int64(lo) + int64(i)
				}
				k += len(found)
			}
			tensor.Next(at, x.Shape[:last])
		}
		return nil
	}
	return EachNonZero(x, func(i int) {
		for d := len(x.Shape) - 1; d >= 0; d-- {
			out[k*step+d*axis] = int64(i % x.Shape[d])
			i /= x.Shape[d]
		}
		k++
	})
}
