package array

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// scalar reads a known number that must be the only element.
func scalar(x *tensor.Tensor) (int, error) {
	if x.Len() != 1 {
		return 0, fmt.Errorf("%d elements where one is expected", x.Len())
	}
	if !x.Known() {
		return 0, op.ErrDynamic
	}
	v, err := tensor.All[float64](x)
	if err != nil {
		return 0, err
	}
	return int(v[0]), nil
}

func concat(c *op.Call) (g layout.Geometry, err error) {
	if err := c.NeedInputs(len(c.In)); err != nil {
		return g, err
	}
	if c.Node.Version >= 4 && !c.Node.Attrs.Has("axis") {
		return g, errors.New("axis is missing")
	}
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 1), c.In[0].Rank())
	if err != nil {
		return g, err
	}
	return layout.Concat(c.In, axis)
}

// splitSizes returns the axis and the length of each output.
func splitSizes(c *op.Call) (int, []int, error) {
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), c.In[0].Rank())
	if err != nil {
		return 0, nil, err
	}
	n, outs := c.In[0].Shape[axis], len(c.Out)
	if outs == 0 {
		return 0, nil, errors.New("there is no output")
	}
	var sizes []int
	switch {
	case c.Has(1):
		if sizes, err = op.Ints(c.In[1]); err != nil {
			if c.Node.Version > 1 || errors.Is(err, op.ErrDynamic) {
				return 0, nil, err
			}
			// Version 1 stores the lengths in the input's own type.
			f, err := tensor.All[float64](c.In[1])
			if err != nil {
				return 0, nil, err
			}
			for _, v := range f {
				sizes = append(sizes, int(v))
			}
		}
	case c.Node.Attrs.Has("split"):
		sizes = c.Node.Attrs.Ints("split")
	}
	if sizes == nil {
		if k := c.Node.Attrs.Int("num_outputs", outs); k != outs {
			return 0, nil, fmt.Errorf("num_outputs is %d with %d outputs", k, outs)
		}
		size := (n + outs - 1) / outs
		if n%outs != 0 && c.Node.Version < 18 {
			return 0, nil, fmt.Errorf("%d does not split into %d equal parts", n, outs)
		}
		for i := range outs {
			sizes = append(sizes, max(0, min(size, n-i*size)))
		}
	}
	sum := 0
	for _, s := range sizes {
		if s < 0 || s > n {
			return 0, nil, fmt.Errorf("cannot split %d into %v", n, sizes)
		}
		sum += s
	}
	if sum != n || len(sizes) != outs {
		return 0, nil, fmt.Errorf("cannot split %d into %v for %d outputs", n, sizes, outs)
	}
	return axis, sizes, nil
}

func inferSplit(c *op.Call) error {
	axis, sizes, err := splitSizes(c)
	if err != nil {
		return err
	}
	layout.SetSplitOutputs(c, c.In[0], axis, sizes)
	return nil
}

func prepareSplit(c *op.Call) (op.Run, error) {
	axis, sizes, err := splitSizes(c)
	if err != nil {
		return nil, err
	}
	return layout.Split(c, 0, c.In[0].Shape, axis, sizes)
}

// slice takes a strided slice of each dimension.
func slice(c *op.Call) (w layout.Geometry, err error) {
	in := c.In[0].Shape
	var starts, ends, axes, steps []int
	if c.Node.Version < 10 && c.Node.Op == "Slice" {
		starts, ends, axes = c.Node.Attrs.Ints("starts"), c.Node.Attrs.Ints("ends"), c.Node.Attrs.Ints("axes")
	} else {
		if err := c.NeedInputs(3); err != nil {
			return w, err
		}
		for i, p := range []*[]int{&starts, &ends, &axes, &steps} {
			if !c.Has(i + 1) {
				continue
			}
			v, err := op.Ints(c.In[i+1])
			if err != nil {
				return w, err
			}
			*p = v
		}
	}
	if axes == nil {
		axes = op.Iota(len(starts))
	}
	if len(starts) != len(ends) || len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		return w, fmt.Errorf("%d starts, %d ends, %d axes and %d steps", len(starts), len(ends), len(axes), len(steps))
	}
	first, by, count := make([]int, len(in)), slices.Repeat([]int{1}, len(in)), slices.Clone(in)
	for i, a := range axes {
		a, err := op.Axis(a, len(in))
		if err != nil {
			return w, err
		}
		step := 1
		if steps != nil {
			step = steps[i]
		}
		if step == 0 {
			return w, errors.New("step is zero")
		}
		first[a], count[a] = span(starts[i], ends[i], step, in[a])
		by[a] = step
	}
	return layout.StridedSlice(in, first, by, count)
}

// span clamps one dimension of a slice and counts its elements.
func span(start, end, step, n int) (first, count int) {
	if start < 0 {
		start += n
	}
	if end < 0 {
		end += n
	}
	if step > 0 {
		start, end = min(max(start, 0), n), min(max(end, 0), n)
		if start >= end {
			return 0, 0
		}
		return start, (end-start-1)/step + 1
	}
	start, end = min(max(start, 0), n-1), min(max(end, -1), n-1)
	if start <= end {
		return 0, 0
	}
	// The distance is below n; unsigned division avoids overflow for the smallest step.
	return start, int(uint(start-end-1)/uint(-step)) + 1
}

func inferTrilu(c *op.Call) error {
	if c.In[0].Rank() < 2 {
		return fmt.Errorf("input has rank %d, at least 2 are needed", c.In[0].Rank())
	}
	if c.Has(1) && c.In[1].Len() != 1 {
		return fmt.Errorf("k has %d elements, not 1", c.In[1].Len())
	}
	return layout.SameAsInput(c)
}

func prepareTrilu(c *op.Call) (op.Run, error) {
	x := c.In[0].Shape
	r := len(x)
	t := triangle{upper: c.Node.Attrs.Bool("upper", true), rows: x[r-2], cols: x[r-1]}
	w := 1
	if c.In[0].Type != tensor.String {
		w = c.In[0].Type.Bits() / 8
	}
	rows := func(c *op.Call, lo, hi int) { keepRows(&t, c.In[0].Data, c.Out[0].Data, w, lo, hi) }
	return func(c *op.Call) error {
		if t.k = 0; c.Has(1) {
			var k [1]int64
			if err := op.ReadInts(k[:], c.In[1]); err != nil {
				return err
			}
			t.k = int(k[0])
		}
		x, y := c.In[0], c.Out[0]
		if t.cols == 0 {
			return nil
		}
		if x.Type == tensor.String {
			keepRows(&t, x.Strings, y.Strings, 1, 0, len(x.Strings)/t.cols)
			return nil
		}
		workers.Do(c.Pool, x.Len()/t.cols, max(1, 1<<15/t.cols), c, rows)
		return nil
	}, nil
}

// triangle is the part of a matrix that Trilu keeps: diagonal k, and everything above or below
// it.
type triangle struct {
	upper         bool
	k, rows, cols int
}

// kept returns the range of columns of a row that is kept.
func (t *triangle) kept(row int) (lo, hi int) {
	// Clamp k first so that the sums stay small for any k.
	d := row%t.rows + min(max(t.k, -t.rows), t.cols)
	if t.upper {
		return min(max(d, 0), t.cols), t.cols
	}
	return 0, min(max(d+1, 0), t.cols)
}

// keepRows copies the kept part of rows lo to hi, whose elements take w places, and clears the
// rest.
func keepRows[T any](t *triangle, x, y []T, w, lo, hi int) {
	cols := t.cols * w
	for row := lo; row < hi; row++ {
		a, b := t.kept(row)
		a, b = a*w, b*w
		src, dst := x[row*cols:(row+1)*cols], y[row*cols:(row+1)*cols]
		clear(dst[:a])
		copy(dst[a:b], src[a:b])
		clear(dst[b:])
	}
}
