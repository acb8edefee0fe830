package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func transpose(c *op.Call) (layout.Geometry, error) {
	perm := c.Node.Attrs.Ints("perm")
	if !c.Node.Attrs.Has("perm") {
		for a := c.In[0].Rank() - 1; a >= 0; a-- {
			perm = append(perm, a)
		}
	}
	if slices.ContainsFunc(perm, func(a int) bool { return a < 0 }) {
		// as nowhere else in ONNX
		return layout.Geometry{}, op.Malformed("permutation %v has a negative axis", perm)
	}
	return layout.Transpose(c.In[0].Shape, perm)
}

func expand(c *op.Call) (layout.Geometry, error) {
	want, err := op.Ints(c.In[1])
	if err != nil {
		return layout.Geometry{}, err
	}
	if _, err := tensor.CheckShape(c.In[0].Type, want); err != nil {
		return layout.Geometry{}, err
	}
	out, err := tensor.Broadcast(c.In[0].Shape, want)
	if err != nil {
		return layout.Geometry{}, err
	}
	return layout.Expand(c.In[0].Shape, out)
}

// tile1 implements version 1: tiles and axis are scalars of the input's type.
func tile1(c *op.Call) (g layout.Geometry, err error) {
	n, err := scalar(c.In[1])
	if err != nil {
		return g, err
	}
	a, err := scalar(c.In[2])
	if err != nil {
		return g, err
	}
	if a, err = op.Axis(a, c.In[0].Rank()); err != nil {
		return g, err
	}
	rep := slices.Repeat([]int{1}, c.In[0].Rank())
	rep[a] = n
	return layout.Tile(c.In[0].Shape, rep)
}

func tile(c *op.Call) (layout.Geometry, error) {
	rep, err := op.Ints(c.In[1])
	if err != nil {
		return layout.Geometry{}, err
	}
	return layout.Tile(c.In[0].Shape, rep)
}

// blocks reads and checks what DepthToSpace and SpaceToDepth share.
func blocks(c *op.Call) (size int, dcr bool, err error) {
	size = c.Node.Attrs.Int("blocksize", 0)
	if size <= 0 || size > 1<<15 {
		return 0, false, fmt.Errorf("blocksize is %d", size)
	}
	if c.In[0].Rank() != 4 {
		return 0, false, fmt.Errorf("input has rank %d, not 4", c.In[0].Rank())
	}
	switch mode := c.Node.Attrs.Str("mode", "DCR"); mode {
	case "DCR":
		return size, true, nil
	case "CRD":
		return size, false, nil
	default:
		return 0, false, fmt.Errorf("mode is %q", mode)
	}
}

func depthToSpace(c *op.Call) (g layout.Geometry, err error) {
	b, dcr, err := blocks(c)
	if err != nil {
		return g, err
	}
	s := c.In[0].Shape
	if s[1]%(b*b) != 0 {
		return g, fmt.Errorf("%d channels do not divide into blocks of %d", s[1], b)
	}
	plane, depth := s[2]*s[3], s[1]/(b*b)
	// Output order: batch, channel, row, row in block, column, column in block.
	channel, row, col := plane, depth*b*plane, depth*plane
	if !dcr {
		channel, row, col = b*b*plane, b*plane, plane
	}
	return layout.ViewGeometry([]int{s[0], depth, s[2] * b, s[3] * b},
		[]int{s[0], depth, s[2], b, s[3], b}, []int{s[1] * plane, channel, s[3], row, 1, col}, 0)
}

func spaceToDepth(c *op.Call) (g layout.Geometry, err error) {
	b, dcr, err := blocks(c)
	if err != nil {
		return g, err
	}
	s := c.In[0].Shape
	if s[2]%b != 0 || s[3]%b != 0 {
		return g, fmt.Errorf("%dx%d does not divide into blocks of %d", s[2], s[3], b)
	}
	plane, w, out := s[2]*s[3], s[3], []int{s[0], s[1] * b * b, s[2] / b, s[3] / b}
	if dcr {
		return layout.ViewGeometry(out, []int{s[0], b, b, s[1], s[2] / b, w / b}, []int{s[1] * plane, w, 1, plane, w * b, b}, 0)
	}
	return layout.ViewGeometry(out, []int{s[0], s[1], b, b, s[2] / b, w / b}, []int{s[1] * plane, plane, w, 1, w * b, b}, 0)
}

func inferReverse(c *op.Call) error {
	x := c.In[0]
	if x.Rank() < 2 {
		return fmt.Errorf("input has rank %d, at least 2 are needed", x.Rank())
	}
	t, b := c.Node.Attrs.Int("time_axis", 0), c.Node.Attrs.Int("batch_axis", 1)
	if t+b != 1 || t < 0 || b < 0 {
		return fmt.Errorf("time axis %d and batch axis %d are not 0 and 1", t, b)
	}
	if c.In[1].Len() != x.Shape[b] {
		return fmt.Errorf("%d lengths for a batch of %d", c.In[1].Len(), x.Shape[b])
	}
	return layout.SameAsInput(c)
}

func prepareReverse(c *op.Call) (op.Run, error) {
	t := c.Node.Attrs.Int("time_axis", 0)
	return layout.ReversedSequences(c.In[0].Shape, t, 1-t)
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
		axes = op.Iota(r)
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
		axes = op.Iota(len(out))
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
