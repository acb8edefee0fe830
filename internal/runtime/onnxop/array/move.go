package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// moveDefs lists the operators that permute or repeat elements.
func moveDefs() []op.Def {
	def := func(name string, needs int, of func(c *op.Call) (layout.Geometry, error), since ...int) []op.Def {
		return op.Versions(layout.Def("", name, needs, of), since...)
	}
	return slices.Concat(
		def("Transpose", 1, transpose, 1, 13, 21, 23, 24, 25),
		def("Expand", 2, expand, 8, 13),
		def("Tile", 3, tile1, 1),
		def("Tile", 2, tile, 6, 13),
		def("DepthToSpace", 1, depthToSpace, 1, 11, 13, 28),
		def("SpaceToDepth", 1, spaceToDepth, 1, 13, 28),
		op.Versions(op.Def{Name: "ReverseSequence", Infer: op.Needs(2, inferReverse), Prepare: layout.WithUnpacked(prepareReverse)}, 10, 28),
	)
}

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
