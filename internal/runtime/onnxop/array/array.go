// Package array implements ONNX's operators that create, reshape, move, slice and join tensors.
// Elements of a byte and more are moved unchanged; smaller types are unpacked for the duration of
// the run.
package array

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	keep := func(name string, infer func(c *op.Call) error) op.Def {
		return op.Def{Name: name, Infer: infer, Prepare: prepareKeep, InPlace: true}
	}
	def := func(name string, needs int, of func(c *op.Call) (layout.Geometry, error), since ...int) []op.Def {
		return op.Versions(layout.Def("", name, needs, of), since...)
	}
	return slices.Concat(
		op.Versions(keep("Identity", op.Needs(1, inferIdentity)), 1, 13, 14, 16, 19, 21, 23, 24, 25),
		op.Versions(keep("Reshape", op.Needs(1, inferReshape1)), 1),
		op.Versions(keep("Reshape", op.Needs(2, inferReshape)), 5, 13, 14, 19, 21, 23, 24, 25),
		op.Versions(keep("Flatten", op.Needs(1, inferFlatten)), 1, 9, 11, 13, 21, 23, 24, 25),
		op.Versions(keep("Squeeze", op.Needs(1, inferSqueeze)), 1, 11, 13, 21, 23, 24, 25),
		op.Versions(keep("Unsqueeze", op.Needs(1, inferUnsqueeze)), 1, 11, 13, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "Shape", Infer: op.Needs(1, inferShape), Prepare: op.Simple(runShape), ShapeOnly: true}, 1, 13, 15, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "Size", Infer: op.Needs(1, inferSize), Prepare: op.Simple(runSize), ShapeOnly: true}, 1, 13, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "Constant", Infer: inferConstant, Prepare: op.Simple(runConstant)}, 1, 9, 11, 12, 13, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "ConstantOfShape", Infer: op.Needs(1, inferConstantOfShape), Prepare: layout.WithUnpacked(prepareConstantOfShape), Uniform: everywhere}, 9, 20, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "EyeLike", Infer: op.Needs(1, inferEyeLike), Prepare: op.Simple(runEyeLike), ShapeOnly: true}, 9, 22),
		op.Versions(op.Def{Name: "Range", Infer: op.Needs(3, inferRange), Prepare: op.Simple(runRange)}, 11, 27),
		def("Transpose", 1, transpose, 1, 13, 21, 23, 24, 25),
		def("Expand", 2, expand, 8, 13),
		def("Tile", 3, tile1, 1),
		def("Tile", 2, tile, 6, 13),
		def("DepthToSpace", 1, depthToSpace, 1, 11, 13, 28),
		def("SpaceToDepth", 1, spaceToDepth, 1, 13, 28),
		op.Versions(op.Def{Name: "ReverseSequence", Infer: op.Needs(2, inferReverse), Prepare: layout.WithUnpacked(prepareReverse)}, 10, 28),
		op.Versions(layout.Def("", "Concat", 1, concat, layout.None), 1, 4, 11, 13),
		op.Versions(op.Def{Name: "Split", Infer: op.Needs(1, inferSplit), Prepare: layout.WithUnpacked(layout.PrepareOnce(prepareSplit))}, 1, 2, 11, 13, 18),
		op.Versions(layout.Def("", "Slice", 1, slice), 1, 10, 11, 13),
		// Experimental in early operator sets, before Slice took these values as inputs.
		op.Versions(layout.Def("", "DynamicSlice", 1, slice), 1),
		op.Versions(op.Def{Name: "Trilu", Infer: op.Needs(1, inferTrilu), Prepare: layout.WithUnpacked(prepareTrilu)}, 14),
		op.Versions(layout.Def("", "Pad", 1, pad, 1, 3), 1, 2, 11, 13, 18, 19, 21, 23, 24, 25),
		op.Versions(layout.Def("", "CenterCropPad", 2, center), 18),
		op.Versions(op.Def{Name: "Col2Im", Infer: op.Needs(3, inferCol2Im), Prepare: prepareCol2Im}, 18),
		op.Versions(op.Def{
			Name: "Det", Infer: op.Needs(1, inferDet), Prepare: op.Simple(runDet),
			Types: []tensor.Type{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16},
		}, 11, 22),
	)
}

func prepareKeep(c *op.Call) (op.Run, error) {
	keep, err := layout.CopyAll(c)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		if c.In[0].Len() != c.Out[0].Len() {
			return fmt.Errorf("cannot reshape %s to %s", tensor.FormatShape(c.In[0].Shape), tensor.FormatShape(c.Out[0].Shape))
		}
		return keep(c)
	}, nil
}

func inferIdentity(c *op.Call) error {
	c.SetOut(0, c.In[0].Type, slices.Clone(c.In[0].Shape))
	if c.Wants(0) && c.In[0].Type.IsContainer() {
		c.Out[0].Elem = c.In[0].Elem
	}
	return nil
}

func inferReshape1(c *op.Call) error { return reshape(c, c.Node.Attrs.Ints("shape"), false) }

func inferReshape(c *op.Call) error {
	shape, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	return reshape(c, shape, c.Node.Attrs.Bool("allowzero", false))
}

func reshape(c *op.Call, want []int, allowZero bool) error {
	in := c.In[0].Shape
	out := slices.Clone(want)
	free, rest := -1, 1
	for i, d := range out {
		switch {
		case d == -1:
			if free >= 0 {
				return fmt.Errorf("shape %v leaves two dimensions open", want)
			}
			free = i
			continue
		case d == 0 && !allowZero:
			if i >= len(in) {
				return fmt.Errorf("shape %v keeps dimension %d of rank %d", want, i, len(in))
			}
			out[i] = in[i]
		case d < 0:
			return fmt.Errorf("shape %v has a negative dimension", want)
		}
		if d := out[i]; d != 0 && rest > tensor.MaxBytes/d {
			return fmt.Errorf("shape %v is too large", want)
		}
		rest *= out[i]
	}
	n := c.In[0].Len()
	if free >= 0 {
		switch {
		case rest == 0 && n == 0 && !allowZero:
			// Any size fits: NumPy rejects this, exporters mean the empty dimension.
			out[free] = 0
		case rest == 0 || n%rest != 0:
			return fmt.Errorf("cannot reshape %s to %v", tensor.FormatShape(in), want)
		default:
			out[free] = n / rest
		}
	} else if rest != n {
		return fmt.Errorf("cannot reshape %s to %v", tensor.FormatShape(in), want)
	}
	return c.Result(c.In[0].Type, out)
}

func inferFlatten(c *op.Call) error {
	in := c.In[0].Shape
	axis := c.Node.Attrs.Int("axis", 1)
	if axis < 0 {
		axis += len(in)
	}
	if axis == 1 && len(in) == 0 {
		axis = 0 // the default axis of a scalar
	}
	if axis < 0 || axis > len(in) {
		return fmt.Errorf("axis %d is outside rank %d", c.Node.Attrs.Int("axis", 1), len(in))
	}
	return c.Result(c.In[0].Type, []int{tensor.Elements(in[:axis]), tensor.Elements(in[axis:])})
}

// axesOf reads the axes of Squeeze and Unsqueeze, which moved from an attribute to an input with
// version 13. given is false if they are absent.
func axesOf(c *op.Call) (axes []int, given bool, err error) {
	if c.Node.Version < 13 {
		return c.Node.Attrs.Ints("axes"), c.Node.Attrs.Has("axes"), nil
	}
	if !c.Has(1) {
		return nil, false, nil
	}
	axes, err = op.Ints(c.In[1])
	return axes, true, err
}

func inferSqueeze(c *op.Call) error {
	in := c.In[0].Shape
	axes, given, err := axesOf(c)
	if err != nil {
		return err
	}
	drop := make([]bool, len(in))
	for i, d := range in {
		drop[i] = !given && d == 1
	}
	for _, a := range axes {
		a, err := op.Axis(a, len(in))
		if err != nil {
			return err
		}
		if in[a] != 1 {
			return fmt.Errorf("dimension %d of %s is not 1", a, tensor.FormatShape(in))
		}
		drop[a] = true
	}
	out := make([]int, 0, len(in))
	for i, d := range in {
		if !drop[i] {
			out = append(out, d)
		}
	}
	return c.Result(c.In[0].Type, out)
}

func inferUnsqueeze(c *op.Call) error {
	axes, given, err := axesOf(c)
	if err != nil {
		return err
	}
	if !given {
		return errors.New("axes are missing")
	}
	in := c.In[0].Shape
	out := make([]int, len(in)+len(axes))
	added := make([]bool, len(out))
	for _, a := range axes {
		a, err := op.Axis(a, len(out))
		if err != nil {
			return err
		}
		if added[a] {
			return fmt.Errorf("axes %v name one dimension twice", axes)
		}
		added[a], out[a] = true, 1
	}
	k := 0
	for i := range out {
		if !added[i] {
			out[i] = in[k]
			k++
		}
	}
	return c.Result(c.In[0].Type, out)
}

func inferShape(c *op.Call) error {
	lo, hi := shapeRange(c)
	return c.Result(tensor.Int64, []int{hi - lo})
}

func inferSize(c *op.Call) error { return c.Result(tensor.Int64, nil) }

// shapeRange resolves start and end (version 15) against the rank.
func shapeRange(c *op.Call) (lo, hi int) {
	r := c.In[0].Rank()
	at := func(name string, def int) int {
		v := c.Node.Attrs.Int(name, def)
		if v < 0 {
			v += r
		}
		return min(max(v, 0), r)
	}
	lo, hi = at("start", 0), at("end", r)
	return lo, max(lo, hi)
}

func runShape(c *op.Call) error {
	lo, hi := shapeRange(c)
	return layout.PutInts(c.Out[0], c.In[0].Shape[lo:hi])
}

func runSize(c *op.Call) error {
	tensor.Of[int64](c.Out[0])[0] = int64(c.In[0].Len())
	return nil
}
