package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// moveDefs lists the operators that put every element somewhere else.
func moveDefs() []op.Def {
	return slices.Concat(
		op.Versions(op.Def{Name: "Transpose", Infer: inferTranspose, Prepare: prepareTranspose}, 1, 13, 21, 23, 24, 25),
		op.Versions(op.Def{Name: "Expand", Infer: inferExpand, Prepare: prepareExpand}, 8, 13),
		op.Versions(op.Def{Name: "Tile", Infer: inferTile1, Prepare: prepareTile}, 1),
		op.Versions(op.Def{Name: "Tile", Infer: inferTile, Prepare: prepareTile}, 6, 13),
		op.Versions(op.Def{Name: "DepthToSpace", Infer: inferDepthToSpace, Prepare: prepareDepthToSpace}, 1, 11, 13, 28),
		op.Versions(op.Def{Name: "SpaceToDepth", Infer: inferSpaceToDepth, Prepare: prepareSpaceToDepth}, 1, 13, 28),
		op.Versions(op.Def{Name: "ReverseSequence", Infer: inferReverse, Prepare: prepareReverse}, 10, 28),
	)
}

// planned runs a strided copy. The plan is set anew for every run, because
// offsets may come from elements of the inputs, unless once tells that shapes
// alone and constants decide it: nodes are prepared again when shapes change.
func planned(once bool, set func(c *op.Call, p *move.Plan) error) op.Run {
	p, ready := new(move.Plan), false
	return move.Unpacked(func(c *op.Call) error {
		if !ready {
			if err := set(c, p); err != nil {
				return err
			}
			ready = once
		}
		p.Run(c.Pool, c.Out[0], c.In[0])
		return nil
	})
}

// parameters reports whether all inputs but the first are absent or constant.
func parameters(c *op.Call) bool {
	for i := 1; i < len(c.In); i++ {
		if c.In[i] != nil && !c.Const(i) {
			return false
		}
	}
	return true
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
	perm := c.Node.Attrs.Ints("perm")
	if len(perm) != r {
		return nil, fmt.Errorf("perm %v does not fit rank %d", perm, r)
	}
	seen := make([]bool, r)
	for i, a := range perm {
		if a < 0 {
			a += r
		}
		if a < 0 || a >= r || seen[a] {
			return nil, fmt.Errorf("perm %v is not a permutation of %d axes", perm, r)
		}
		perm[i], seen[a] = a, true
	}
	return perm, nil
}

func inferTranspose(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	perm, err := permutation(c)
	if err != nil {
		return err
	}
	out := make([]int, len(perm))
	for i, a := range perm {
		out[i] = c.In[0].Shape[a]
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

func prepareTranspose(c *op.Call) (op.Run, error) {
	perm, err := permutation(c)
	if err != nil {
		return nil, err
	}
	in := tensor.Strides(c.In[0].Shape)
	dims, src := make([]int, len(perm)), make([]int, len(perm))
	for i, a := range perm {
		dims[i], src[i] = c.In[0].Shape[a], in[a]
	}
	return fixed(dims, src), nil
}

// fixed fills the output, contiguous over dims, from a strided view of input 0.
func fixed(dims, src []int) op.Run {
	p := new(move.Plan)
	p.Set(dims, tensor.Strides(dims), src, 0, 0)
	return move.Unpacked(func(c *op.Call) error {
		p.Run(c.Pool, c.Out[0], c.In[0])
		return nil
	})
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
	in := slices.Clone(c.In[0].Shape)
	st := tensor.Strides(in)
	return planned(parameters(c), func(c *op.Call, p *move.Plan) error {
		out := c.Out[0].Shape
		src := make([]int, len(out))
		for i, d := range in {
			if d != 1 {
				src[len(out)-len(in)+i] = st[i]
			}
		}
		p.Set(out, tensor.Strides(out), src, 0, 0)
		return nil
	}), nil
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
	rep := make([]int, c.In[0].Rank())
	move.Fill(rep, 1)
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
	in := c.In[0].Shape
	if len(rep) != len(in) {
		return fmt.Errorf("%d repeats for rank %d", len(rep), len(in))
	}
	out := make([]int, len(in))
	for i, d := range in {
		if rep[i] < 0 || d > 0 && rep[i] > tensor.MaxBytes/d {
			return fmt.Errorf("cannot repeat %d times", rep[i])
		}
		out[i] = d * rep[i]
	}
	c.SetOut(0, c.In[0].Type, out)
	return nil
}

func prepareTile(c *op.Call) (op.Run, error) {
	in := slices.Clone(c.In[0].Shape)
	st := tensor.Strides(in)
	return planned(parameters(c), func(c *op.Call, p *move.Plan) error {
		var dims, src []int
		for i, d := range c.Out[0].Shape {
			rep := 0
			if in[i] > 0 {
				rep = d / in[i]
			}
			dims = append(dims, rep, in[i])
			src = append(src, 0, st[i])
		}
		p.Set(dims, tensor.Strides(dims), src, 0, 0)
		return nil
	}), nil
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
	return fixed([]int{s[0], depth, s[2], b, s[3], b}, []int{s[1] * plane, chan1, s[3], row, 1, col}), nil
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
		return fixed([]int{s[0], b, b, s[1], s[2] / b, w / b}, []int{s[1] * plane, w, 1, plane, w * b, b}), nil
	}
	return fixed([]int{s[0], s[1], b, b, s[2] / b, w / b}, []int{s[1] * plane, plane, w, 1, w * b, b}), nil
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
	taxis := c.Node.Attrs.Int("time_axis", 0)
	p := new(move.Plan)
	return move.Unpacked(func(c *op.Call) error {
		x := c.In[0]
		st := tensor.Strides(x.Shape)
		inner := tensor.Elements(x.Shape[2:])
		steps, lens := x.Shape[taxis], c.In[1]
		n, err := op.Ints(lens)
		if err != nil {
			return err
		}
		ts, bs := st[taxis], st[1-taxis]
		for b, l := range n {
			if l < 0 || l > steps {
				return fmt.Errorf("sequence length %d is outside %d steps", l, steps)
			}
			if l > 0 {
				p.Set([]int{l, inner}, []int{ts, 1}, []int{-ts, 1}, b*bs, b*bs+(l-1)*ts)
				p.Run(c.Pool, c.Out[0], x)
			}
			p.Set([]int{steps - l, inner}, []int{ts, 1}, []int{ts, 1}, b*bs+l*ts, b*bs+l*ts)
			p.Run(c.Pool, c.Out[0], x)
		}
		return nil
	}), nil
}
