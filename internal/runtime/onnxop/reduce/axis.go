package reduce

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/reduce"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func lineAt(shape []int, axis int) line {
	return line{tensor.Elements(shape[:axis]), shape[axis], tensor.Elements(shape[axis+1:])}
}

func inferArg(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	shape := c.In[0].Shape
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), len(shape))
	if err != nil {
		return err
	}
	if shape[axis] == 0 {
		return c.Errorf("no elements along axis %d", axis)
	}
	mask := make([]bool, len(shape))
	mask[axis] = true
	c.SetOut(0, tensor.Int64, ReducedShape(shape, mask, c.Node.Attrs.Bool("keepdims", true)))
	return nil
}

// prepareArg makes ArgMax and ArgMin.
func prepareArg(c *op.Call, least bool) (op.Run, error) {
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), c.In[0].Rank())
	if err != nil {
		return nil, err
	}
	l, last := lineAt(c.In[0].Shape, axis), c.Node.Attrs.Bool("select_last_index", false)
	if f := tensor.PickNumber(c.In[0].Type, argRun[float32], argRun[float64], argRun[int8], argRun[int16], argRun[int32], argRun[int64], argRun[uint8], argRun[uint16], argRun[uint32], argRun[uint64]); f != nil {
		return f(l, least, last), nil
	}
	return nil, elem.BadType(c, 0)
}

func argRun[T tensor.Number](l line, least, last bool) op.Run {
	tiles := (l.inner + element.Block - 1) / element.Block
	var src []T // made once, as the closure below: a run must not allocate
	var dst []int64
	var tops []T // the extremes of lines, where these are rows of memory
	extremes := simd.ExtremeKernels()
	if l.inner == 1 && simd.HasExtremes[T](extremes) {
		tops = make([]T, l.outer)
	}
	work := func(lo, hi int) {
		if tops != nil {
			simd.ExtremeRows(extremes, least, tops[lo:hi], src[lo*l.n:], l.n)
			for i := lo; i < hi; i++ {
				line := src[i*l.n:][:l.n]
				if at := placeIn(line, tops[i], last); at >= 0 {
					dst[i] = int64(at)
				} else { // the first that is not a number
					argTile(dst[i:i+1], line, l.n, 1, least, last)
				}
			}
			return
		}
		if f, ok := any(src).([]float32); ok && l.inner == 1 {
			for i := lo; i < hi; i++ {
				line := f[i*l.n:][:l.n]
				if at := argRow(line, least, last); at >= 0 {
					dst[i] = int64(at)
				} else {
					argTile(dst[i:i+1], line, l.n, 1, least, last)
				}
			}
			return
		}
		for u := lo; u < hi; u++ {
			row, col := u/tiles, u%tiles*element.Block
			n := min(element.Block, l.inner-col)
			argTile(dst[row*l.inner+col:][:n], src[row*l.n*l.inner+col:], l.n, l.inner, least, last)
		}
	}
	return func(c *op.Call) error {
		src, dst = tensor.Of[T](c.In[0]), tensor.Of[int64](c.Out[0])
		c.Pool.For(l.outer*tiles, max(1, element.Grain/(l.n*min(element.Block, max(1, l.inner)))), work)
		return nil
	}
}

// argRow finds the position of the extreme of a line with SIMD; -1 if that is not possible, or
// the line contains a NaN.
func argRow(line []float32, least, last bool) int {
	e := simd.ElementKernels()
	if e == nil {
		return -1
	}
	low, high := e.Extent(line, line[0], line[0])
	want := high
	if least {
		want = low
	}
	return placeIn(line, want, last)
}

// placeIn returns the first or last position of a number in a line; -1 if absent.
func placeIn[T tensor.Number](line []T, want T, last bool) int {
	if last {
		for i := len(line) - 1; i >= 0; i-- {
			if line[i] == want {
				return i
			}
		}
		return -1
	}
	if unsafe.Sizeof(want) == 1 {
		return bytes.IndexByte(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(line))), len(line)), byte(want))
	}
	return slices.Index(line, want)
}

// argTile finds the positions of the extremes of adjacent lines, stride apart. The first NaN of a
// line is its extreme.
func argTile[T tensor.Number](dst []int64, src []T, n, stride int, least, last bool) {
	if f, ok := any(src).([]float32); ok && simd.ArgMaxKernels().Columns(dst, f, stride, n, least, last) {
		return
	}
	var best [element.Block]T
	width := len(dst)
	copy(best[:width], src)
	clear(dst)
	for r := 1; r < n; r++ {
		for i, x := range src[r*stride : r*stride+width] {
			b := best[i]
			better := x > b
			if least {
				better = x < b
			}
			if better || last && x == b || x != x && b == b {
				if b != b {
					continue
				}
				best[i], dst[i] = x, int64(r)
			}
		}
	}
}

func inferCumulative(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if c.In[0].Rank() == 0 {
		return c.Errorf("a scalar has no axis")
	}
	return elem.Same(c)
}

// prepareCumulative makes CumSum and CumProd.
func prepareCumulative(c *op.Call, product bool) (op.Run, error) {
	if f := tensor.PickNumber(c.In[0].Type, cumulative[float32], cumulative[float64], cumulative[int8], cumulative[int16], cumulative[int32], cumulative[int64], cumulative[uint8], cumulative[uint16], cumulative[uint32], cumulative[uint64]); f != nil {
		return f(c, product), nil
	}
	return nil, elem.BadType(c, 0)
}

func cumulative[T tensor.Number](c *op.Call, product bool) op.Run {
	run := reduce.Cumulative[T](product, c.Node.Attrs.Bool("exclusive", false), c.Node.Attrs.Bool("reverse", false))
	axes := layout.Once(c, 1, func(c *op.Call) ([]int, error) { return op.Ints(c.In[1]) })
	return func(c *op.Call) error {
		v, err := axes(c)
		if err != nil {
			return err
		}
		if len(v) != 1 {
			return c.Errorf("axis has %d elements", len(v))
		}
		axis, err := op.Axis(v[0], c.In[0].Rank())
		if err != nil {
			return err
		}
		l := lineAt(c.In[0].Shape, axis)
		run(tensor.Of[T](c.Out[0]), tensor.Of[T](c.In[0]), l.outer, l.n, l.inner)
		return nil
	}
}

func axisDefs() []op.Def {
	norm := func(name string, k Normalisation) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: 1, Types: elem.Floats, Infer: InferSoftmax, InPlace: true,
			Prepare: elem.Widen(func(c *op.Call) (op.Run, error) { return PrepareSoftmax(c, k) }),
		}
	}
	arg := func(name string, least bool) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: 1, Types: elem.Numbers, Infer: inferArg,
			Prepare: elem.Widen(func(c *op.Call) (op.Run, error) { return prepareArg(c, least) }),
		}
	}
	cum := func(name string, since int, product bool) op.Def {
		return op.Def{
			Domain: graph.ONNX, Name: name, Since: since, Types: elem.Numbers, Infer: inferCumulative,
			Prepare: elem.Widen(func(c *op.Call) (op.Run, error) { return prepareCumulative(c, product) }),
		}
	}
	return []op.Def{
		norm("Softmax", Softmax), norm("LogSoftmax", LogSoftmax), norm("Hardmax", hardmax),
		arg("ArgMax", false), arg("ArgMin", true), cum("CumSum", 11, false), cum("CumProd", 26, true),
	}
}
