package array

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// concat joins the inputs. 8-bit ones whose quantisation differs from the output's are requantised.
func concat(c *op.Call) (g layout.Geometry, err error) {
	if err := c.NeedInputs(len(c.In)); err != nil {
		return g, err
	}
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), c.In[0].Rank())
	if err != nil {
		return g, err
	}
	if g, err = layout.Concat(c.In, axis); err != nil {
		return g, err
	}
	join := g.Run
	g.Run = func(c *op.Call) (op.Run, error) { return finished(c, join, axis) }
	return g, nil
}

// finished adds requantisation and the fused activation to a concatenation.
func finished(c *op.Call, prepare layout.Prepare, axis int) (op.Run, error) {
	if tables := rescaleTables(c); tables != nil {
		c.Recipe = recipe.Join{Tables: tables}
		return func(c *op.Call) error {
			rescale(c.Out[0], c.In, tables, layout.Outer(c.Out[0].Shape, axis))
			return nil
		}, nil
	}
	name := c.Node.Attrs.Str("fused_activation_function", "NONE")
	if name == "NONE" || name == "" {
		return prepare(c)
	}
	// without notes of copies: the result is changed and must not share memory with the inputs
	d := *c
	join, err := prepare(&d)
	if err != nil {
		return nil, err
	}
	act, err := layer.Activation(c)
	if t := c.In[0].Type; err != nil || t != tensor.Float32 {
		return nil, op.Unsupported("activation %s on %v", name, t)
	}
	return func(c *op.Call) error {
		if err := join(c); err != nil {
			return err
		}
		y := tensor.Of[float32](c.Out[0])
		for i, v := range y {
			y[i] = min(max(v, act.Min), act.Max)
		}
		return nil
	}, nil
}

// rescaleTables returns, for 8-bit inputs whose quantisation differs from the output's, a table
// from every input value to the output value. nil means that no input needs one.
func rescaleTables(c *op.Call) []*[256]uint8 {
	out := c.Out[0]
	perTensor := func(q *tensor.Quant) bool { return q != nil && len(q.Scale) == 1 && q.Scale[0] > 0 && len(q.Zero) == 1 }
	if out.Type != tensor.Uint8 && out.Type != tensor.Int8 || !perTensor(out.Quant) {
		return nil
	}
	low, high := 0, 255
	if out.Type == tensor.Int8 {
		low, high = -128, 127
	}
	var tables []*[256]uint8
	for i, x := range c.In {
		q := x.Quant
		if !perTensor(q) || q.Scale[0] == out.Quant.Scale[0] && q.Zero[0] == out.Quant.Zero[0] {
			continue
		}
		if tables == nil {
			tables = make([]*[256]uint8, len(c.In))
		}
		scale := q.Scale[0] * (1 / out.Quant.Scale[0])
		bias := -float32(q.Zero[0]) * scale
		t := &[256]uint8{}
		for v := low; v <= high; v++ {
			r := int(math.Round(float64(float32(v)*scale+bias))) + int(out.Quant.Zero[0])
			t[uint8(v)] = uint8(min(max(r, low), high))
		}
		tables[i] = t
	}
	return tables
}

// rescale joins 8-bit inputs through their tables.
func rescale(out *tensor.Tensor, in []*tensor.Tensor, tables []*[256]uint8, rows int) {
	pos, width := 0, len(out.Data)/max(rows, 1)
	for i, x := range in {
		w := len(x.Data) / max(rows, 1)
		for r := range rows {
			d, s := out.Data[r*width+pos:][:w], x.Data[r*w:][:w]
			if tables[i] == nil {
				copy(d, s)
				continue
			}
			for k, v := range s {
				d[k] = tables[i][v]
			}
		}
		pos += w
	}
}

func pack(c *op.Call) (g layout.Geometry, err error) {
	if err := c.NeedInputs(len(c.In)); err != nil {
		return g, err
	}
	return layout.Stack(c.In, c.Node.Attrs.Int("axis", 0))
}

func inferUnpack(c *op.Call) error {
	x := c.In[0]
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), x.Rank())
	if err != nil {
		return err
	}
	if x.Shape[axis] != len(c.Out) {
		return fmt.Errorf("axis %d of %s is unpacked to %d outputs", axis, tensor.FormatShape(x.Shape), len(c.Out))
	}
	for i := range c.Out {
		c.SetOut(i, x.Type, slices.Delete(like(x.Shape), axis, axis+1))
	}
	return nil
}

func prepareUnpack(c *op.Call) (op.Run, error) {
	x := c.In[0].Shape
	axis, err := op.Axis(c.Node.Attrs.Int("axis", 0), len(x))
	if err != nil {
		return nil, err
	}
	return layout.Split(c, 0, x, axis, slices.Repeat([]int{1}, len(c.Out)))
}

// inferSplit has the axis first and the value second.
func inferSplit(c *op.Call) error {
	x, n := c.In[1], len(c.Out)
	axis, err := axisOf(c, 0, x.Rank())
	if err != nil {
		return err
	}
	if n == 0 || x.Shape[axis]%n != 0 {
		return fmt.Errorf("axis %d of %s is not a multiple of %d", axis, tensor.FormatShape(x.Shape), n)
	}
	layout.SetSplitOutputs(c, x, axis, slices.Repeat([]int{x.Shape[axis] / n}, n))
	return nil
}

// inferSplitV has the value, the sizes and the axis; one size may be -1.
func inferSplitV(c *op.Call) error {
	x := c.In[0]
	axis, err := axisOf(c, 2, x.Rank())
	if err != nil {
		return err
	}
	sizes, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	if len(sizes) != len(c.Out) {
		return fmt.Errorf("%d sizes for %d outputs", len(sizes), len(c.Out))
	}
	free, sum := -1, 0
	for i, s := range sizes {
		switch {
		case s == -1 && free < 0:
			free = i
		case s < 0:
			return fmt.Errorf("size %d of part %d", s, i)
		default:
			sum += s
		}
	}
	if free >= 0 {
		sizes[free] = x.Shape[axis] - sum
		sum = x.Shape[axis]
	}
	if sum != x.Shape[axis] || free >= 0 && sizes[free] < 0 {
		return fmt.Errorf("parts of %d make %d, axis %d has %d", sizes, sum, axis, x.Shape[axis])
	}
	layout.SetSplitOutputs(c, x, axis, sizes)
	return nil
}

// prepareSplit takes the parts' sizes from the outputs' shapes.
func prepareSplit(value, axisInput int, params ...int) layout.Prepare {
	return layout.PrepareOnce(func(c *op.Call) (op.Run, error) {
		x := c.In[value].Shape
		axis, err := axisOf(c, axisInput, len(x))
		if err != nil {
			return nil, err
		}
		if slices.Contains(c.Out, nil) {
			return nil, op.Unsupported("an output that is left out")
		}
		return layout.Split(c, value, x, axis, layout.Sizes(c.Out, axis))
	}, params...)
}
