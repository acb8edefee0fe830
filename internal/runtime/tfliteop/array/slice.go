package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// slice has begin and size; size -1 extends to the end.
func slice(c *op.Call) (g layout.Geometry, err error) {
	begin, err := op.Ints(c.In[1])
	if err != nil {
		return g, err
	}
	size, err := op.Ints(c.In[2])
	if err != nil {
		return g, err
	}
	x := c.In[0]
	if len(begin) != x.Rank() || len(size) != x.Rank() {
		return g, fmt.Errorf("%d begins and %d sizes for rank %d", len(begin), len(size), x.Rank())
	}
	for i, d := range x.Shape {
		if size[i] == -1 {
			size[i] = d - begin[i]
		}
		if begin[i] < 0 || size[i] < 0 || begin[i] > d-size[i] {
			return g, fmt.Errorf("axis %d: %d elements from %d are outside %s", i, size[i], begin[i], tensor.FormatShape(x.Shape))
		}
	}
	return layout.StridedSlice(x.Shape, begin, slices.Repeat([]int{1}, len(begin)), size)
}

// stridedSlice applies the masks. The specification may be shorter than the rank, may insert axes,
// and may skip axes with one ellipsis.
func stridedSlice(c *op.Call) (g layout.Geometry, err error) {
	var spec [3][]int
	for i := range spec {
		if spec[i], err = op.Ints(c.In[i+1]); err != nil {
			return g, err
		}
	}
	begin, end, step := spec[0], spec[1], spec[2]
	if len(end) != len(begin) || len(step) != len(begin) {
		return g, fmt.Errorf("%d begins, %d ends and %d strides", len(begin), len(end), len(step))
	}
	a := c.Node.Attrs
	beginMask, endMask, shrink := a.Int("begin_mask", 0), a.Int("end_mask", 0), a.Int("shrink_axis_mask", 0)
	ellipsis, newAxis, offset := a.Int("ellipsis_mask", 0), a.Int("new_axis_mask", 0), a.Bool("offset", false)
	shape := c.In[0].Shape
	strides := tensor.Strides(shape)
	var out, view, by []int // result; same elements, as they are walked, with strides
	axis, from := 0, 0
	add := func(n, stride int) { out, view, by = append(out, n), append(view, n), append(by, stride) }
	whole := func(last int) {
		for ; axis < last; axis++ {
			add(shape[axis], strides[axis])
		}
	}
	seen := false
	for i := range begin {
		bit := 1 << i
		switch {
		case ellipsis&bit != 0:
			if seen {
				return g, fmt.Errorf("more than one ellipsis")
			}
			seen = true
			rest := 0 // axes of the input that the entries after this one take
			for k := i + 1; k < len(begin); k++ {
				if newAxis&(1<<k) == 0 {
					rest++
				}
			}
			whole(len(shape) - rest)
			continue
		case newAxis&bit != 0:
			out = append(out, 1)
			continue
		}
		if axis >= len(shape) {
			return g, fmt.Errorf("%d entries for shape %s", len(begin), tensor.FormatShape(shape))
		}
		first, n, err := axisRange(shape[axis], begin[i], end[i], step[i], maskBits{beginMask&bit != 0, endMask&bit != 0, shrink&bit != 0, offset})
		if err != nil {
			return g, fmt.Errorf("axis %d of %s: %w", axis, tensor.FormatShape(shape), err)
		}
		from += first * strides[axis]
		if shrink&bit == 0 {
			add(n, step[i]*strides[axis])
		}
		axis++
	}
	whole(len(shape))
	return layout.ViewGeometry(out, view, by, from)
}

// maskBits are the options of one axis of a STRIDED_SLICE: begin and end are ignored, a single
// element is selected, the end counts from the begin.
type maskBits struct{ begin, end, shrink, offset bool }

// axisRange returns the first index of a slice along an axis, and its number of elements.
func axisRange(d, begin, end, step int, m maskBits) (first, n int, err error) {
	if step == 0 {
		return 0, 0, fmt.Errorf("the stride is zero")
	}
	b := clampIndex(begin, d, step)
	if m.begin {
		b = 0
		if step < 0 {
			b = d - 1
		}
	}
	if m.shrink {
		if b < 0 || b >= d {
			return 0, 0, fmt.Errorf("index %d is outside", begin)
		}
		return b, 1, nil
	}
	var e int
	switch {
	case m.end && step > 0:
		e = d
	case m.end:
		e = -1
	case m.offset:
		e = min(max(b+end, -1), d)
	default:
		e = clampIndex(end, d, step)
	}
	switch {
	case step > 0 && e > b:
		return b, (e-b-1)/step + 1, nil
	case step < 0 && e < b:
		return b, (b-e-1)/-step + 1, nil
	}
	return 0, 0, nil
}

// clampIndex resolves a negative index and clamps it to where a walk with the step can begin or
// end.
func clampIndex(i, d, step int) int {
	if i < 0 {
		i += d
	}
	if step > 0 {
		return min(max(i, 0), d)
	}
	return min(max(i, -1), d-1)
}

// prepareUpdateSlice copies the operand and then the update over it; the start is clamped so that
// the update fits. With the attribute behind, which files cannot have, it sets one row of a list
// and gets the start of the rows after it: a row that does not exist is an error.
func prepareUpdateSlice(c *op.Call) (op.Run, error) {
	x, u := c.In[0], c.In[1]
	if u.Type != x.Type || c.In[2].Len() != x.Rank() {
		return nil, fmt.Errorf("update %v and %d starts for %v %s", u.Type, c.In[2].Len(), x.Type, tensor.FormatShape(x.Shape))
	}
	if !c.Node.Attrs.Bool("behind", false) {
		return layout.DynamicUpdateSlice(x.Shape, u.Shape, func(c *op.Call) ([]int, error) { return op.Ints(c.In[2]) })
	}
	start, wide := make([]int, x.Rank()), make([]int64, 1)
	return layout.DynamicUpdateSlice(x.Shape, u.Shape, func(c *op.Call) ([]int, error) {
		tensor.Read(wide, c.In[2], 0)
		if start[0] = int(wide[0]) - 1; start[0] < 0 || start[0] >= x.Shape[0] {
			return nil, fmt.Errorf("row %d of %d", start[0], x.Shape[0])
		}
		return start, nil
	})
}

func reverse(c *op.Call, axes []int) (g layout.Geometry, err error) {
	x := c.In[0]
	strides := tensor.Strides(x.Shape)
	turned := make([]bool, x.Rank())
	from := 0
	for _, a := range axes {
		a, err := op.Axis(a, x.Rank())
		if err != nil {
			return g, err
		}
		if turned[a] {
			return g, fmt.Errorf("axis %d is named twice", a)
		}
		turned[a] = true
		from += (x.Shape[a] - 1) * strides[a]
		strides[a] = -strides[a]
	}
	return layout.ViewGeometry(like(x.Shape), x.Shape, strides, from)
}

// prepareReverseSequence reverses the first length[b] steps of each sequence b.
func prepareReverseSequence(c *op.Call) (op.Run, error) {
	x := c.In[0]
	seq, err := op.Axis(c.Node.Attrs.Int("seq_dim", 0), x.Rank())
	if err != nil {
		return nil, err
	}
	batch, err := op.Axis(c.Node.Attrs.Int("batch_dim", 0), x.Rank())
	if err != nil {
		return nil, err
	}
	if seq == batch || c.In[1].Len() != x.Shape[batch] {
		return nil, fmt.Errorf("%d lengths along axis %d of %s, sequences along axis %d", c.In[1].Len(), batch, tensor.FormatShape(x.Shape), seq)
	}
	return layout.ReversedSequences(x.Shape, seq, batch)
}
