package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

// padDefs lists the operators that add or remove borders.
func padDefs() []op.Def {
	pad := op.Def{Name: "Pad", Infer: inferPad, Prepare: layout.Widened(layout.Planned(preparePad, 1, 3))}
	return slices.Concat(
		op.Versions(pad, 1, 2, 11, 13, 18, 19, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "CenterCropPad", Infer: inferCenter, Prepare: layout.Widened(layout.Planned(prepareCenter))}, 18),
	)
}

// borders reads what is added before and after each axis.
func borders(c *op.Call) (before, after []int, err error) {
	if err := c.NeedInputs(1); err != nil {
		return nil, nil, err
	}
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

func inferPad(c *op.Call) error {
	before, after, err := borders(c)
	if err != nil {
		return err
	}
	mode := c.Node.Attrs.Str("mode", "constant")
	out := make([]int, len(before))
	for i, d := range c.In[0].Shape {
		out[i] = d + before[i] + after[i]
		kept := d + min(before[i], 0) + min(after[i], 0)
		if out[i] < 0 || kept < 0 {
			return fmt.Errorf("pads %d and %d leave nothing of dimension %d", before[i], after[i], d)
		}
		switch mode {
		case "constant":
		case "edge", "reflect", "wrap":
			if kept == 0 && out[i] > 0 {
				return fmt.Errorf("mode %s has nothing to repeat in dimension %d", mode, i)
			}
		default:
			return fmt.Errorf("mode is %q", mode)
		}
	}
	if c.Node.Version >= 11 && c.Has(2) {
		if v := c.In[2]; v.Len() != 1 || v.Type != c.In[0].Type {
			return fmt.Errorf("constant value is %v with %d elements", v.Type, v.Len())
		}
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

// sources gives, for every position of a padded dimension, the position of the
// input that it is taken from, -1 for the constant.
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

func preparePad(c *op.Call) (op.Run, error) {
	before, after, err := borders(c)
	if err != nil {
		return nil, err
	}
	axes := make([][]int, len(before))
	for i, n := range c.In[0].Shape {
		axes[i] = sources(n, before[i], after[i], c.Node.Attrs.Str("mode", "constant"))
	}
	maps := move.NewMaps(c.In[0].Shape, axes)
	zero := tensor.New(c.In[0].Type)
	if v := float64(c.Node.Attrs.Float("value", 0)); v != 0 && zero.Type.IsNumber() {
		tensor.Fill(zero, func(int) float64 { return v })
	}
	return func(c *op.Call) error {
		value := zero
		if c.Node.Version >= 11 && c.Has(2) {
			value = c.In[2]
		}
		maps.Run(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[0]), layout.Of(value))
		return nil
	}, nil
}

func inferCenter(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	want, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	out := slices.Clone(c.In[0].Shape)
	axes := c.Node.Attrs.Ints("axes")
	if !c.Node.Attrs.Has("axes") {
		for i := range out {
			axes = append(axes, i)
		}
	}
	if len(axes) != len(want) {
		return fmt.Errorf("%d sizes for %d axes", len(want), len(axes))
	}
	for i, a := range axes {
		a, err := op.Axis(a, len(out))
		if err != nil {
			return err
		}
		out[a] = want[i]
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

// prepareCenter shifts each axis so that the middles of input and output meet.
func prepareCenter(c *op.Call) (op.Run, error) {
	axes := make([][]int, c.In[0].Rank())
	for i, n := range c.In[0].Shape {
		m := c.Out[0].Shape[i]
		from, to := (n-min(n, m))/2, (m-min(n, m))/2
		axes[i] = sources(n, to-from, (m-n)-(to-from), "constant")
	}
	maps, zero := move.NewMaps(c.In[0].Shape, axes), tensor.New(c.In[0].Type)
	return func(c *op.Call) error {
		maps.Run(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[0]), layout.Of(zero))
		return nil
	}, nil
}
