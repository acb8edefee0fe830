// Package pool implements ONNX's pooling over windows and over whole planes.
package pool

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := []op.Def{
		elem.Fusing(elem.RealDef("AveragePool", op.Needs(1, op.Infer(NewPool)), PrepareAveragePool[float32], PrepareAveragePool[float64])),
		{Name: "MaxPool", Since: 1, Types: elem.FloatsAnd(elem.Bytes...), Infer: op.Needs(1, op.Infer(NewPool)), Prepare: prepareMaxPool, NHWC: lastMaxPool},
		elem.RealDef("LpPool", op.Needs(1, op.Infer(NewPool)), prepareLpPool[float32], prepareLpPool[float64]),
		elem.RealDef("MaxUnpool", op.Needs(2, inferMaxUnpool), prepareMaxUnpool[float32], prepareMaxUnpool[float64]),
		elem.Fusing(elem.RealDef("GlobalAveragePool", op.Needs(1, inferGlobalPool), globalPool(globalAverage[float32]), globalPool(globalAverage[float64]))),
		elem.Fusing(elem.RealDef("GlobalMaxPool", op.Needs(1, inferGlobalPool), globalPool(globalMax[float32]), globalPool(globalMax[float64]))),
		elem.RealDef("GlobalLpPool", op.Needs(1, inferGlobalPool), globalPool(globalLp[float32]), globalPool(globalLp[float64])),
	}
	for i := range defs {
		defs[i].Prepare = OrNothing(defs[i].Prepare)
	}
	return defs
}

// OrNothing prepares nothing for a node without results.
func OrNothing(prepare func(*op.Call) (op.Run, error)) func(*op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		if slices.Contains(c.Out[0].Shape, 0) {
			return func(*op.Call) error { return nil }, nil
		}
		return prepare(c)
	}
}

// NewPool checks a pooling node over [N,C,...] and sets its outputs.
func NewPool(c *op.Call) (*window.Window, error) {
	x := c.In[0]
	if x.Rank() < 3 {
		return nil, fmt.Errorf("input %s", tensor.FormatShape(x.Shape))
	}
	k := c.Node.Attrs.Ints("kernel_shape")
	if k == nil {
		return nil, fmt.Errorf("kernel_shape is missing")
	}
	w, err := window.ForPool(c, x.Shape[2:], k, c.Node.Attrs.Bool("ceil_mode", false))
	if err != nil {
		return nil, err
	}
	c.SetOut(0, x.Type, slices.Concat(x.Shape[:2], w.Out))
	c.SetOut(1, tensor.Int64, slices.Concat(x.Shape[:2], w.Out))
	return w, nil
}

// eachPlane computes all planes of n elements of results.
func eachPlane[A workers.Piecewise](p *workers.Pool, w *window.Window, n int, q A) {
	if out := tensor.Elements(w.Out); out > 0 {
		workers.Each(p, n/out, 1, q)
	}
}

// pooled holds the arguments of a work item of planes where each output element is f of its plane
// and of the window's position, of which the first len(w.Out) numbers are used.
type pooled[T, U tensor.Number] struct {
	w *window.Window
	f func(plane []T, at [window.MaxSpatial]int) U
	x []T
	y []U
}

// Piece computes planes lo to hi.
func (q pooled[T, U]) Piece(lo, hi int) {
	in, out := tensor.Elements(q.w.In), tensor.Elements(q.w.Out)
	for i := lo; i < hi; i++ {
		plane, row := q.x[i*in:][:in], q.y[i*out:][:out]
		var at [window.MaxSpatial]int
		for o := range row {
			row[o] = q.f(plane, at)
			tensor.Next(at[:len(q.w.Out)], q.w.Out)
		}
	}
}

// PrepareAveragePool computes means of windows over [N,C,...].
func PrepareAveragePool[T tensor.Real](c *op.Call) (op.Run, error) {
	w := op.Must(NewPool(c))
	include := c.Node.Attrs.Bool("count_include_pad", false)
	if w.Whole() {
		return globalPool(globalAverage[T])(c)
	}
	act := c.Activation
	c.Kernel = w.Way()
	vec := vectors(c, w)
	var counts []float32
	if vec != nil {
		counts = sizes(w, include)
	}
	mean := func(x []T, at [window.MaxSpatial]int) T {
		var sum T
		n := 0
		w.Taps(at[:len(w.Out)], func(pos int) { sum += x[pos]; n++ })
		if include {
			n = w.Cells(at[:len(w.Out)])
		}
		if n == 0 {
			return 0
		}
		return sum / T(n)
	}
	return func(c *op.Call) error {
		y := tensor.Of[T](c.Out[0])
		if vec != nil {
			y := tensor.Of[float32](c.Out[0])
			vec.run(c.Pool, tensor.Of[float32](c.In[0]), y)
			vec.last.Divide(c.Pool, y, counts)
		} else if x := tensor.Of[T](c.In[0]); len(w.Out) == 2 {
			eachPlane(c.Pool, w, len(y), averages[T]{w, include, x, y})
		} else {
			eachPlane(c.Pool, w, len(y), pooled[T, T]{w, mean, x, y})
		}
		elem.Clamp(act, y)
		return nil
	}, nil
}

// averages holds the arguments of a work item of 2D average pooling.
type averages[T tensor.Real] struct {
	w       *window.Window
	include bool // padding
	x, y    []T
}

// Piece computes planes lo to hi.
func (q averages[T]) Piece(lo, hi int) {
	w := q.w
	in, out := tensor.Elements(w.In), tensor.Elements(w.Out)
	for i := lo; i < hi; i++ {
		plane, row := q.x[i*in:][:in], q.y[i*out:][:out]
		for oy := range w.Out[0] {
			sy, y0, y1 := w.Span(0, oy)
			for ox := range w.Out[1] {
				sx, x0, x1 := w.Span(1, ox)
				var sum T
				for ky := y0; ky < y1; ky++ {
					line := plane[(sy+ky*w.Dilation[0])*w.In[1]:][:w.In[1]]
					for kx := x0; kx < x1; kx++ {
						sum += line[sx+kx*w.Dilation[1]]
					}
				}
				n := max(y1-y0, 0) * max(x1-x0, 0)
				if q.include {
					at := [2]int{oy, ox}
					n = w.Cells(at[:])
				}
				row[oy*w.Out[1]+ox] = sum / T(max(n, 1))
			}
		}
	}
}

func prepareLpPool[T tensor.Real](c *op.Call) (op.Run, error) {
	w := op.Must(NewPool(c))
	order := normOrder(c)
	norm := func(x []T, at [window.MaxSpatial]int) T {
		var sum float64
		w.Taps(at[:len(w.Out)], func(pos int) { sum += Power(float64(x[pos]), order) })
		return T(math.Pow(sum, 1/order))
	}
	return func(c *op.Call) error {
		eachPlane(c.Pool, w, c.Out[0].Len(), pooled[T, T]{w, norm, tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])})
		return nil
	}, nil
}

// normOrder reads p, an integer since version 2 and a float before.
func normOrder(c *op.Call) float64 {
	if c.Node.Attrs.Has("p") {
		if p := c.Node.Attrs.Int("p", 0); p != 0 {
			return float64(p)
		}
		return float64(c.Node.Attrs.Float("p", 2))
	}
	return 2
}

// Power returns the magnitude of v to the power of order.
func Power(v, order float64) float64 {
	switch order {
	case 1:
		return math.Abs(v)
	case 2:
		return v * v
	case 3:
		return math.Abs(v) * v * v
	}
	return math.Pow(math.Abs(v), order)
}

func inferGlobalPool(c *op.Call) error {
	x := c.In[0]
	if x.Rank() < 2 {
		return fmt.Errorf("input %s", tensor.FormatShape(x.Shape))
	}
	shape := slices.Clone(x.Shape)
	for i := 2; i < len(shape); i++ {
		shape[i] = 1
	}
	return c.Result(x.Type, shape)
}

// globalPool reduces each plane with f.
func globalPool[T tensor.Real](f func(c *op.Call) func(plane []T) T) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		reduce, act := f(c), c.Activation
		area := tensor.Elements(c.In[0].Shape[2:])
		work := func(c *op.Call, lo, hi int) {
			x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
			for i := lo; i < hi; i++ {
				y[i] = reduce(x[i*area:][:area])
			}
		}
		return func(c *op.Call) error {
			workers.Do(c.Pool, c.Out[0].Len(), max(1, 1<<14/max(area, 1)), c, work)
			elem.Clamp(act, tensor.Of[T](c.Out[0]))
			return nil
		}, nil
	}
}

func globalAverage[T tensor.Real](*op.Call) func([]T) T {
	return func(v []T) T {
		if f, ok := any(v).([]float32); ok {
			if r := simd.RowKernels(); r != nil {
				return T(r.Sum(f) / float64(len(v)))
			}
		}
		var s float64
		for _, x := range v {
			s += float64(x)
		}
		return T(s / float64(len(v)))
	}
}

func globalMax[T tensor.Real](*op.Call) func([]T) T {
	return func(v []T) T {
		if f, ok := any(v).([]float32); ok {
			return T(element.MaxOf(f))
		}
		m := T(math.Inf(-1))
		for _, x := range v {
			m = max(m, x)
		}
		return m
	}
}

func globalLp[T tensor.Real](c *op.Call) func([]T) T {
	order := normOrder(c)
	return func(v []T) T {
		var s float64
		for _, x := range v {
			s += Power(float64(x), order)
		}
		return T(math.Pow(s, 1/order))
	}
}
