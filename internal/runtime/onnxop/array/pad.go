package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// padDefs lists the operators that add or remove padding.
func padDefs() []op.Def {
	return slices.Concat(
		op.Versions(layout.Def("", "Pad", 1, pad, 1, 3), 1, 2, 11, 13, 18, 19, 21, 23, 24, 25),
		op.Versions(layout.Def("", "CenterCropPad", 2, center), 18),
	)
}

// borders reads the padding before and after each axis.
func borders(c *op.Call) (before, after []int, err error) {
	r := c.In[0].Rank()
	var pads, axes []int
	switch {
	case c.Node.Version < 2:
		pads = c.Node.Attrs.Ints("paddings")
	case c.Node.Version < 11:
		pads = c.Node.Attrs.Ints("pads")
	default:
		if err := c.NeedInputs(2); err != nil {
			return nil, nil, err
		}
		if pads, err = op.Ints(c.In[1]); err != nil {
			return nil, nil, err
		}
		if c.Has(3) {
			if axes, err = op.Ints(c.In[3]); err != nil {
				return nil, nil, err
			}
		}
	}
	if !c.Has(3) {
		for i := range r {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		return nil, nil, fmt.Errorf("%d pads for %d axes", len(pads), len(axes))
	}
	before, after = make([]int, r), make([]int, r)
	for i, a := range axes {
		if a, err = op.Axis(a, r); err != nil {
			return nil, nil, err
		}
		before[a], after[a] = pads[i], pads[len(axes)+i]
		if max(before[a], after[a]) > tensor.MaxBytes || min(before[a], after[a]) < -tensor.MaxBytes {
			return nil, nil, fmt.Errorf("pads %v are too large", pads)
		}
	}
	return before, after, nil
}

func pad(c *op.Call) (g layout.Geometry, err error) {
	before, after, err := borders(c)
	if err != nil {
		return g, err
	}
	mode := c.Node.Attrs.Str("mode", "constant")
	if !slices.Contains([]string{"constant", "edge", "reflect", "wrap"}, mode) {
		return g, fmt.Errorf("mode is %q", mode)
	}
	x := c.In[0]
	out := make([]int, len(before))
	for i, d := range x.Shape {
		out[i] = d + before[i] + after[i]
		kept := d + min(before[i], 0) + min(after[i], 0)
		if out[i] < 0 || kept < 0 {
			return g, fmt.Errorf("pads %d and %d leave nothing of dimension %d", before[i], after[i], d)
		}
		if mode != "constant" && kept == 0 && out[i] > 0 {
			return g, fmt.Errorf("mode %s has nothing to repeat in dimension %d", mode, i)
		}
	}
	axis := func(i int) []int { return sources(x.Shape[i], before[i], after[i], mode) }
	zero := tensor.New(x.Type)
	if v := float64(c.Node.Attrs.Float("value", 0)); v != 0 && x.Type.IsNumber() {
		tensor.Fill(zero, func(int) float64 { return v })
	}
	if c.Node.Version < 11 {
		return layout.Map(x.Shape, out, axis, layout.None, zero), nil
	}
	if v := c.Input(2); v != nil && (v.Len() != 1 || v.Type != x.Type) {
		return g, fmt.Errorf("constant value is %v with %d elements", v.Type, v.Len())
	}
	return layout.Map(x.Shape, out, axis, 2, zero), nil
}

// sources returns, for every position of a padded dimension, the input position that it is copied
// from, -1 for the constant.
func sources(n, before, after int, mode string) []int {
	lo, kept := max(0, -before), n-max(0, -before)-max(0, -after)
	at := make([]int, n+before+after)
	for o := range at {
		i := o - max(before, 0) // relative to the kept part
		switch {
		case i >= 0 && i < kept:
		case mode == "edge":
			i = min(max(i, 0), kept-1)
		case mode == "wrap":
			i = ((i % kept) + kept) % kept
		case mode == "reflect" && kept == 1:
			i = 0
		case mode == "reflect":
			period := 2 * (kept - 1)
			i = ((i % period) + period) % period
			i = min(i, period-i)
		default:
			at[o] = -1
			continue
		}
		at[o] = lo + i
	}
	return at
}

// center shifts each axis so that the centres of input and output coincide.
func center(c *op.Call) (g layout.Geometry, err error) {
	want, err := op.Ints(c.In[1])
	if err != nil {
		return g, err
	}
	x := c.In[0]
	out := slices.Clone(x.Shape)
	axes := c.Node.Attrs.Ints("axes")
	if !c.Node.Attrs.Has("axes") {
		for i := range out {
			axes = append(axes, i)
		}
	}
	if len(axes) != len(want) {
		return g, fmt.Errorf("%d sizes for %d axes", len(want), len(axes))
	}
	for i, a := range axes {
		a, err := op.Axis(a, len(out))
		if err != nil {
			return g, err
		}
		out[a] = want[i]
	}
	return layout.Map(x.Shape, out, func(i int) []int {
		n, m := x.Shape[i], out[i]
		shift := (m-min(n, m))/2 - (n-min(n, m))/2
		return sources(n, shift, m-n-shift, "constant")
	}, layout.None, tensor.New(x.Type)), nil
}
