package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

// moveDefs lists the operators that put every element somewhere else.
func moveDefs() []op.Def {
	def := func(name string, infer func(c *op.Call) error, prepare layout.Prepare, since ...int) []op.Def {
		return op.Versions(op.Def{Name: name, Infer: infer, Prepare: layout.Widened(prepare)}, since...)
	}
	return slices.Concat(
		def("Transpose", inferTranspose, prepareTranspose, 1, 13, 21, 23, 24, 25),
		def("Expand", inferExpand, layout.Planned(prepareExpand), 8, 13),
		def("Tile", inferTile1, layout.Planned(prepareTile), 1),
		def("Tile", inferTile, layout.Planned(prepareTile), 6, 13),
		def("DepthToSpace", inferDepthToSpace, prepareDepthToSpace, 1, 11, 13, 28),
		def("SpaceToDepth", inferSpaceToDepth, prepareSpaceToDepth, 1, 13, 28),
		def("ReverseSequence", inferReverse, prepareReverse, 10, 28),
	)
}

func permutation(c *op.Call) ([]int, error) {
	r := c.In[0].Rank()
	if !c.Node.Attrs.Has("perm") {
		perm := make([]int, r)
		for i := range perm {
			perm[i] = r - 1 - i
		}
		return perm, nil
	}
	return layout.Permutation(c.Node.Attrs.Ints("perm"), r)
}

func inferTranspose(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	perm, err := permutation(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, layout.Select(c.In[0].Shape, perm))
	return nil
}

func prepareTranspose(c *op.Call) (op.Run, error) {
	perm, err := permutation(c)
	if err != nil {
		return nil, err
	}
	return layout.Transposed(c.In[0].Shape, perm)
}

func inferExpand(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	want, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	if _, err := tensor.CheckShape(c.In[0].Type, want); err != nil {
		return err
	}
	out, err := tensor.Broadcast(c.In[0].Shape, want)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

func prepareExpand(c *op.Call) (op.Run, error) {
	src, err := broadcast.Strides(c.In[0].Shape, c.Out[0].Shape)
	if err != nil {
		return nil, err
	}
	return layout.View(c.Out[0].Shape, src, 0)
}

// inferTile1 does version 1: tiles and axis are scalars of the input's type.
func inferTile1(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	n, err := scalar(c.In[1])
	if err != nil {
		return err
	}
	a, err := scalar(c.In[2])
	if err != nil {
		return err
	}
	if a, err = op.Axis(a, c.In[0].Rank()); err != nil {
		return err
	}
	rep := slices.Repeat([]int{1}, c.In[0].Rank())
	rep[a] = n
	return tiled(c, rep)
}

func inferTile(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	rep, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	return tiled(c, rep)
}

func tiled(c *op.Call, rep []int) error {
	out, err := layout.Repeated(c.In[0].Shape, rep)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

// prepareTile finds the repeats in the result's shape, which versions give in
// different ways.
func prepareTile(c *op.Call) (op.Run, error) {
	in := c.In[0].Shape
	rep := make([]int, len(in))
	for i, d := range c.Out[0].Shape {
		if in[i] > 0 {
			rep[i] = d / in[i]
		}
	}
	return layout.Tiled(in, rep)
}

// blocks reads and checks what DepthToSpace and SpaceToDepth share.
func blocks(c *op.Call) (size int, dcr bool, err error) {
	if err := c.NeedInputs(1); err != nil {
		return 0, false, err
	}
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

func inferDepthToSpace(c *op.Call) error {
	b, _, err := blocks(c)
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	if s[1]%(b*b) != 0 {
		return fmt.Errorf("%d channels do not divide into blocks of %d", s[1], b)
	}
	c.SetOut(0, c.In[0].Type, []int{s[0], s[1] / (b * b), s[2] * b, s[3] * b})
	return nil
}

func prepareDepthToSpace(c *op.Call) (op.Run, error) {
	b, dcr, err := blocks(c)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape
	plane := s[2] * s[3]
	depth := s[1] / (b * b)
	// Output order: batch, channel, row, row in block, column, column in block.
	chan1, row, col := plane, depth*b*plane, depth*plane
	if !dcr {
		chan1, row, col = b*b*plane, b*plane, plane
	}
	return layout.View([]int{s[0], depth, s[2], b, s[3], b}, []int{s[1] * plane, chan1, s[3], row, 1, col}, 0)
}

func inferSpaceToDepth(c *op.Call) error {
	b, _, err := blocks(c)
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	if s[2]%b != 0 || s[3]%b != 0 {
		return fmt.Errorf("%dx%d does not divide into blocks of %d", s[2], s[3], b)
	}
	c.SetOut(0, c.In[0].Type, []int{s[0], s[1] * b * b, s[2] / b, s[3] / b})
	return nil
}

func prepareSpaceToDepth(c *op.Call) (op.Run, error) {
	b, dcr, err := blocks(c)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape
	plane, w := s[2]*s[3], s[3]
	if dcr {
		return layout.View([]int{s[0], b, b, s[1], s[2] / b, w / b}, []int{s[1] * plane, w, 1, plane, w * b, b}, 0)
	}
	return layout.View([]int{s[0], s[1], b, b, s[2] / b, w / b}, []int{s[1] * plane, plane, w, 1, w * b, b}, 0)
}

func inferReverse(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
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
	c.SetOut(0, x.Type, slices.Clone(x.Shape))
	return nil
}

func prepareReverse(c *op.Call) (op.Run, error) {
	t := c.Node.Attrs.Int("time_axis", 0)
	return layout.ReversedSequences(c.In[0].Shape, t, 1-t)
}
