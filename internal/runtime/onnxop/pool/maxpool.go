package pool

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/kernel/pooling"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// lastMaxPool: 8-bit feature maps have a channels-last kernel, and transpose fast.
func lastMaxPool(c *op.Call) op.NHWCSupport {
	if b, err := lastBytes(c); err != nil || b == nil {
		return op.NHWCNever
	}
	return op.NHWCAny
}

// lastBytes returns the pooling kernel for channels-last 8-bit feature maps; nil if it is missing.
func lastBytes(c *op.Call) (*pooling.Int8, error) {
	w := op.Must(NewPool(c))
	t := c.In[0].Type
	if c.Wants(1) || len(w.Out) != 2 || w.Dilation[0] != 1 || w.Dilation[1] != 1 || t != tensor.Int8 && t != tensor.Uint8 {
		return nil, nil
	}
	b := &pooling.Int8{Shape: shape(c.In[0], w), Max: true, Signed: t == tensor.Int8, Hi: math.MaxUint8}
	if b.Signed {
		b.Lo, b.Hi = math.MinInt8, math.MaxInt8
	}
	if !(move.LayoutConverter{C: b.Shape.C}).HasSIMD() || !b.Prepare() {
		return nil, nil
	}
	return b, nil
}

// prepareLast makes a pool that computes in channels-last order, and transposes inputs or outputs
// in other order.
func prepareLast(c *op.Call, b *pooling.Int8) op.Run {
	c.Kernel = b.Name()
	s := &b.Shape
	from, to := move.LayoutConverter{N: s.N, C: s.C, Area: s.H * s.W}, move.LayoutConverter{N: s.N, C: s.C, Area: s.OH * s.OW}
	lastIn, lastOut := c.NHWCIn, c.NHWCOut
	var in, out []uint8
	if !lastIn {
		in = c.Scratch(c.In[0].Len())
	}
	if !lastOut {
		out = c.Scratch(c.Out[0].Len())
	}
	return func(c *op.Call) error {
		x, y := c.In[0].Data, c.Out[0].Data
		if !lastIn {
			from.ToNHWC(c.Pool, in, x)
			x = in
		}
		if lastOut {
			b.Run(c.Pool, x, y)
			return nil
		}
		b.Run(c.Pool, x, out)
		to.ToNCHW(c.Pool, y, out)
		return nil
	}
}

func prepareMaxPool(c *op.Call) (op.Run, error) {
	if b, err := lastBytes(c); err != nil {
		return nil, err
	} else if b != nil {
		return prepareLast(c, b), nil
	}
	if t := c.In[0].Type; t == tensor.Int8 || t == tensor.Uint8 {
		if run, err := maxBytesApart(c); run != nil || err != nil {
			return run, err
		}
	}
	switch c.In[0].Type {
	case tensor.Int8:
		return prepareMaxPoolOf[int8](-128)(c)
	case tensor.Uint8:
		return prepareMaxPoolOf[uint8](0)(c)
	}
	return elem.PrepareReal(c, prepareMaxPoolOf(float32(math.Inf(-1))), prepareMaxPoolOf(math.Inf(-1)))
}

func prepareMaxPoolOf[T tensor.Number](lowest T) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		w := op.Must(NewPool(c))
		column := c.Node.Attrs.Int("storage_order", 0) == 1
		act := c.Activation
		c.Kernel = w.Way()
		var vec *floats
		if t := c.In[0].Type; !c.Wants(1) && len(w.Out) == 2 && (t == tensor.Int8 || t == tensor.Uint8) {
			bytes := &pooling.MaxInt8{Shape: shape(c.In[0], w), Signed: t == tensor.Int8}
			if bytes.Prepare() {
				c.Kernel = bytes.Name()
				return func(c *op.Call) error {
					bytes.Run(c.Pool, c.In[0].Data, c.Out[0].Data)
					return nil
				}, nil
			}
		}
		if !c.Wants(1) {
			if vec = vectors(c, w); vec != nil {
				vec.largest(act)
			}
		}
		most := func(x []T, at [window.MaxSpatial]int) T {
			m := lowest
			w.Taps(at[:len(w.Out)], func(pos int) { m = max(m, x[pos]) })
			return m
		}
		lines := &sync.Pool{New: func() any { return newPlacedLines(w, tensor.Elements(w.In)) }}
		var planes largest[T]
		if vec == nil && !c.Wants(1) && len(w.Out) == 2 {
			planes = newLargest(w, lowest)
		}
		return func(c *op.Call) error {
			if vec != nil {
				vec.run(c.Pool, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]))
				return nil
			}
			x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
			switch {
			case c.Wants(1):
				eachPlane(c.Pool, w, len(y), places[T]{w, lowest, column, x, y, tensor.Of[int64](c.Out[1]), lines})
			case len(w.Out) == 2:
				planes.x, planes.y = x, y
				eachPlane(c.Pool, w, len(y), planes)
			default:
				eachPlane(c.Pool, w, len(y), pooled[T, T]{w, most, x, y})
			}
			switch y := any(y).(type) {
			case []float32:
				elem.Clamp(act, y)
			case []float64:
				elem.Clamp(act, y)
			}
			return nil
		}, nil
	}
}

// largest holds the arguments of a work item of 2D max pooling, which proceeds tap by tap over
// whole rows of results.
type largest[T tensor.Number] struct {
	w          *window.Window
	lowest     T
	first, end []int // by tap: the columns of results for which it lies in the input
	x, y       []T
}

func newLargest[T tensor.Number](w *window.Window, lowest T) largest[T] {
	q := largest[T]{w: w, lowest: lowest, first: make([]int, w.Kernel[1]), end: make([]int, w.Kernel[1])}
	for k := range q.first {
		off, s := k*w.Dilation[1]-w.Begin[1], w.Stride[1]
		q.first[k] = max(0, (-off+s-1)/s)
		q.end[k] = min(w.Out[1], (w.In[1]-off+s-1)/s)
	}
	return q
}

// Piece computes planes lo to hi.
func (q largest[T]) Piece(lo, hi int) {
	w := q.w
	in, out := tensor.Elements(w.In), tensor.Elements(w.Out)
	for i := lo; i < hi; i++ {
		plane := q.x[i*in:][:in]
		for oy := range w.Out[0] {
			row := q.y[i*out+oy*w.Out[1]:][:w.Out[1]]
			element.Fill(row, q.lowest)
			sy, y0, y1 := w.Span(0, oy)
			for ky := y0; ky < y1; ky++ {
				line := plane[(sy+ky*w.Dilation[0])*w.In[1]:][:w.In[1]]
				for k, first := range q.first {
					if first < q.end[k] {
						maxStrided(row[first:q.end[k]], line[first*w.Stride[1]+k*w.Dilation[1]-w.Begin[1]:], w.Stride[1])
					}
				}
			}
		}
	}
}

func maxStrided[T tensor.Number](row, line []T, stride int) {
	if stride == 1 {
		for j, v := range line[:len(row)] {
			row[j] = max(row[j], v) // without a branch, which random data would mispredict
		}
		return
	}
	at := 0
	for j, m := range row {
		row[j] = max(m, line[at])
		at += stride
	}
}

// places also writes the position of each maximum in the whole input.
type places[T tensor.Number] struct {
	w      *window.Window
	lowest T
	column bool // of a column-major plane
	x, y   []T
	index  []int64
	lines  *sync.Pool // of what newPlacedLines makes
}

// Piece computes planes lo to hi.
func (q places[T]) Piece(lo, hi int) {
	w := q.w
	in, out := tensor.Elements(w.In), tensor.Elements(w.Out)
	var at, src [window.MaxSpatial]int
	lines := q.lines.Get().(*placedLines)
	for i := lo; i < hi; i++ {
		plane, most, places := q.x[i*in:][:in], q.y[i*out:][:out], q.index[i*out:][:out]
		if !largestPlaces(lines, plane, places) {
			clear(at[:])
			for o := range places {
				m, best := q.lowest, -1
				w.Taps(at[:len(w.Out)], func(pos int) {
					if v := plane[pos]; best < 0 || v > m {
						m, best = v, pos
					}
				})
				places[o] = int64(best)
				tensor.Next(at[:len(w.Out)], w.Out)
			}
		}
		for o, best := range places {
			if best < 0 {
				most[o], places[o] = q.lowest, int64(i*in-1)
				continue
			}
			most[o] = plane[best]
			if q.column {
				tensor.Unravel(int(best), w.In, src[:len(w.In)])
				best = 0
				for d := len(w.In) - 1; d >= 0; d-- {
					best = best*int64(w.In[d]) + int64(src[d])
				}
			}
			places[o] = int64(i*in) + best
		}
	}
	q.lines.Put(lines)
}

// placedLines walks windows line by line to find the position of the largest element of each.
type placedLines struct {
	outer      window.Window // without the last axis
	at         []int
	keys       []int64 // of a line of results
	first, end []int   // by tap along the last axis: the results of which it lies in the input
	step       int
	off        []int // of the tap of result 0
	width      int   // of a line of the input
}

// newPlacedLines returns nil for planes whose positions do not fit 32 bits.
func newPlacedLines(w *window.Window, in int) *placedLines {
	if uint64(in) > math.MaxUint32 {
		return nil
	}
	l := len(w.Out) - 1
	v := &placedLines{
		outer: window.Window{In: w.In[:l], Out: w.Out[:l], Kernel: w.Kernel[:l], Stride: w.Stride[:l], Dilation: w.Dilation[:l], Begin: w.Begin[:l], End: w.End[:l]},
		at:    make([]int, l), keys: make([]int64, w.Out[l]), step: w.Stride[l], width: w.In[l],
	}
	for k := range w.Kernel[l] {
		off := k*w.Dilation[l] - w.Begin[l]
		v.off = append(v.off, off)
		v.first = append(v.first, max(0, (-off+v.step-1)/v.step))
		v.end = append(v.end, min(w.Out[l], (w.In[l]-off+v.step-1)/v.step))
	}
	return v
}

// largestPlaces writes the position in a plane of the first of the largest elements of each
// window, or -1. It returns false if that is not possible: an element and its position are
// compared as one integer.
func largestPlaces[T tensor.Number](l *placedLines, plane []T, places []int64) bool {
	if l == nil {
		return false
	}
	switch f := any(plane).(type) {
	case []float64:
		return false
	case []float32:
		if top := element.MaxOf(f); top != top {
			return false
		}
	}
	clear(l.at)
	for n := len(l.keys); len(places) >= n && n > 0; places = places[n:] {
		element.Fill(l.keys, math.MinInt64)
		if len(l.at) == 0 {
			placeLine(l, plane, 0)
		} else {
			l.outer.Taps(l.at, func(line int) { placeLine(l, plane, line*l.width) })
			tensor.Next(l.at, l.outer.Out)
		}
		for i, k := range l.keys {
			if places[i] = math.MaxUint32 - k&math.MaxUint32; k == math.MinInt64 {
				places[i] = -1
			}
		}
	}
	return true
}

// placeLine updates the keys of a line of results with the line of the input that begins at base.
func placeLine[T tensor.Number](l *placedLines, plane []T, base int) {
	line := plane[base:][:l.width]
	for t, first := range l.first {
		if first >= l.end[t] {
			continue
		}
		from := first*l.step + l.off[t]
		keys := l.keys[first:l.end[t]]
		place := math.MaxUint32 - int64(base+from) // the first of equal elements has the largest
		switch v := any(line).(type) {
		case []float32:
			for j, k := range keys {
				b := int32(math.Float32bits(v[from]))
				if b<<1 == 0 {
					b = 0
				}
				keys[j] = max(k, int64(b^int32(uint32(b>>31)>>1))<<32|place)
				from, place = from+l.step, place-int64(l.step)
			}
		default:
			for j, k := range keys {
				keys[j] = max(k, int64(line[from])<<32|place)
				from, place = from+l.step, place-int64(l.step)
			}
		}
	}
}

// inferMaxUnpool inverts a pooling: inputs are values, indices and an optional output shape.
func inferMaxUnpool(c *op.Call) error {
	x := c.In[0]
	n := x.Rank() - 2
	if n < 1 || !slices.Equal(x.Shape, c.In[1].Shape) {
		return fmt.Errorf("values %s with indices %s", tensor.FormatShape(x.Shape), tensor.FormatShape(c.In[1].Shape))
	}
	shape, err := unpooledShape(c)
	if err != nil {
		return err
	}
	if c.Has(2) {
		if shape, err = op.Ints(c.In[2]); err != nil {
			return err
		}
		if len(shape) != x.Rank() {
			return fmt.Errorf("output_shape %v for rank %d", shape, x.Rank())
		}
	}
	return c.Result(x.Type, shape)
}

// unpooledShape returns the shape that the indices of MaxUnpool refer to.
func unpooledShape(c *op.Call) ([]int, error) {
	x, a := c.In[0], c.Node.Attrs
	n := x.Rank() - 2
	k := a.Ints("kernel_shape")
	stride, err := window.PerAxis(a.Ints("strides"), n, "strides")
	if err != nil {
		return nil, err
	}
	pads := a.Ints("pads")
	if pads == nil {
		pads = make([]int, 2*n)
	}
	if len(k) != n || len(pads) != 2*n {
		return nil, fmt.Errorf("kernel_shape %v and pads %v for %d spatial axes", k, pads, n)
	}
	shape := slices.Clone(x.Shape)
	for i := range n {
		shape[2+i] = (shape[2+i]-1)*stride[i] + k[i] - pads[i] - pads[n+i]
	}
	return shape, nil
}

func prepareMaxUnpool[T tensor.Real](c *op.Call) (op.Run, error) {
	if c.In[1].Type != tensor.Int64 {
		return nil, op.Unsupported("indices of %v", c.In[1].Type)
	}
	from := op.Must(unpooledShape(c))
	at := make([]int, len(from))
	total := tensor.Elements(from)
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		to := c.Out[0].Shape
		same := slices.Equal(from, to)
		clear(y)
		for i, p := range tensor.Of[int64](c.In[1]) {
			if p < 0 || p >= int64(total) {
				return fmt.Errorf("index %d of %d elements", p, total)
			}
			pos := int(p)
			if !same {
				tensor.Unravel(int(p), from, at)
				pos = 0
				for d, q := range at {
					if q >= to[d] {
						return fmt.Errorf("index %d lies outside %s", p, tensor.FormatShape(to))
					}
					pos = pos*to[d] + q
				}
			}
			y[pos] = x[i]
		}
		return nil
	}, nil
}
