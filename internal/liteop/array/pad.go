package array

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/liteop/layout"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func padDefs() []op.Def {
	return []op.Def{
		lite("PAD", inferPad, planned(preparePad, 1)),
		lite("PADV2", inferPad, planned(preparePad, 1)),
		lite("MIRROR_PAD", inferPad, planned(prepareMirrorPad, 1)),
		lite("DILATE", inferDilate, planned(prepareDilate, 1)),
		lite("TRANSPOSE", inferTranspose, planned(prepareTranspose, 1)),
		lite("TILE", inferTile, planned(prepareTile, 1)),
		lite("BROADCAST_TO", inferBroadcastTo, prepareBroadcastTo),
		lite("BROADCAST_ARGS", inferBroadcastArgs, prepareBroadcastArgs),
	}
}

// padding reads the pairs of elements before and after each axis.
func padding(c *op.Call) ([]int, error) {
	p, err := op.Ints(c.Input(1))
	if err != nil {
		return nil, err
	}
	if x := c.In[0]; len(p) != 2*x.Rank() {
		return nil, fmt.Errorf("%d paddings for rank %d", len(p), x.Rank())
	}
	for _, v := range p {
		if v < 0 || v > tensor.MaxBytes {
			return nil, fmt.Errorf("padding %d is negative or too large", v)
		}
	}
	return p, nil
}

func inferPad(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	p, err := padding(c)
	if err != nil {
		return err
	}
	shape := like(c.In[0].Shape)
	for i := range shape {
		shape[i] += p[2*i] + p[2*i+1]
		if c.Node.Op != "MIRROR_PAD" {
			continue
		}
		limit := c.In[0].Shape[i]
		if c.Node.Attrs.Str("mode", "REFLECT") == "REFLECT" {
			limit--
		}
		if max(p[2*i], p[2*i+1]) > max(limit, 0) {
			return fmt.Errorf("padding of axis %d is larger than the mirrored %d elements", i, limit)
		}
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

// interior is the block of the input inside the padded output, and where it
// begins.
func interior(x, out *tensor.Tensor, p []int) (*layout.Block, int) {
	strides := tensor.Strides(out.Shape)
	at := 0
	for i, s := range strides {
		at += p[2*i] * s
	}
	return layout.NewBlock(x.Shape, strides, tensor.Strides(x.Shape)), at
}

func preparePad(c *op.Call) (op.Run, error) {
	p, err := padding(c)
	if err != nil {
		return nil, err
	}
	store, err := storeFor(c.In[0].Type)
	if err != nil {
		return nil, err
	}
	if v := c.Input(2); v != nil && (v.Type != c.In[0].Type || v.Len() != 1) {
		return nil, fmt.Errorf("padding value %v %s for %v", v.Type, tensor.FormatShape(v.Shape), c.In[0].Type)
	}
	zero := layout.Zero(c.In[0].Type, c.Out[0].Quant)
	inside, at := interior(c.In[0], c.Out[0], p)
	gaps := borders(c.In[0].Shape, c.Out[0].Shape, p)
	return func(c *op.Call) error {
		value := zero
		if v := c.Input(2); v != nil {
			value = v
		}
		for _, g := range gaps {
			store.Move(c.Pool, g.block, c.Out[0], value, g.at, 0)
		}
		store.Move(c.Pool, inside, c.Out[0], c.In[0], at, 0)
		return nil
	}, nil
}

// border is a slab of padding.
type border struct {
	block *layout.Block
	at    int
}

// borders cuts the padding into disjoint slabs: for each axis the part before
// and after, over the interior of the axes before it and the whole of those
// after it. All slabs read one element again and again.
func borders(in, out, p []int) []border {
	strides := tensor.Strides(out)
	still := make([]int, len(out))
	var list []border
	base := 0
	for a := range out {
		for side := range 2 {
			if p[2*a+side] == 0 {
				continue
			}
			shape := like(out)
			copy(shape, in[:a])
			shape[a] = p[2*a+side]
			at := base
			if side == 1 {
				at += (p[2*a] + in[a]) * strides[a]
			}
			if b := layout.NewBlock(shape, strides, still); b.Len() > 0 {
				list = append(list, border{b, at})
			}
		}
		base += p[2*a] * strides[a]
	}
	return list
}

// prepareMirrorPad copies the interior and then mirrors one axis after the
// other, the last axis first, over what is already complete.
func prepareMirrorPad(c *op.Call) (op.Run, error) {
	p, err := padding(c)
	if err != nil {
		return nil, err
	}
	store, err := storeFor(c.In[0].Type)
	if err != nil {
		return nil, err
	}
	x, out := c.In[0].Shape, c.Out[0].Shape
	inside, at := interior(c.In[0], c.Out[0], p)
	strides := tensor.Strides(out)
	type mirror struct {
		block    *layout.Block
		to, from int
	}
	edge := 0 // symmetric mirrors repeat the edge, reflecting ones do not
	if c.Node.Attrs.Str("mode", "REFLECT") == "REFLECT" {
		edge = 1
	}
	var mirrors []mirror
	for a := len(x) - 1; a >= 0; a-- {
		base := 0
		for k := range a {
			base += p[2*k] * strides[k]
		}
		shape := like(out)
		copy(shape, x[:a])
		back := like(strides)
		back[a] = -strides[a]
		if before := p[2*a]; before > 0 {
			shape[a] = before
			mirrors = append(mirrors, mirror{layout.NewBlock(shape, strides, back), base, base + (2*before-1+edge)*strides[a]})
		}
		if after := p[2*a+1]; after > 0 {
			shape[a] = after
			end := p[2*a] + x[a]
			mirrors = append(mirrors, mirror{layout.NewBlock(shape, strides, back), base + end*strides[a], base + (end-1-edge)*strides[a]})
		}
	}
	return func(c *op.Call) error {
		store.Move(c.Pool, inside, c.Out[0], c.In[0], at, 0)
		for _, m := range mirrors {
			store.Move(c.Pool, m.block, c.Out[0], c.Out[0], m.to, m.from)
		}
		return nil
	}, nil
}

// inferDilate has the tensor, how far apart its elements are put along each
// axis, and the value between them.
func inferDilate(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	step, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	x := c.In[0]
	if len(step) != x.Rank() || c.In[2].Type != x.Type || c.In[2].Len() != 1 {
		return fmt.Errorf("%d dilations for rank %d, value %v for %v", len(step), x.Rank(), c.In[2].Type, x.Type)
	}
	shape := like(x.Shape)
	for i, s := range step {
		if s < 1 {
			return fmt.Errorf("dilation %d", s)
		}
		if shape[i] > 0 {
			shape[i] = (shape[i]-1)*s + 1
		}
	}
	c.SetOut(0, x.Type, shape)
	return nil
}

func prepareDilate(c *op.Call) (op.Run, error) {
	step, err := op.Ints(c.In[1])
	if err != nil {
		return nil, err
	}
	store, err := storeFor(c.In[0].Type)
	if err != nil {
		return nil, err
	}
	dst := tensor.Strides(c.Out[0].Shape)
	for i, s := range step {
		dst[i] *= s
	}
	b := layout.NewBlock(c.In[0].Shape, dst, tensor.Strides(c.In[0].Shape))
	return func(c *op.Call) error {
		store.Fill(c.Pool, c.Out[0], c.In[2], 0, c.Out[0].Len())
		store.Move(c.Pool, b, c.Out[0], c.In[0], 0, 0)
		return nil
	}, nil
}

// permutation reads and checks the axes of a TRANSPOSE.
func permutation(c *op.Call) ([]int, error) {
	perm, err := op.Ints(c.Input(1))
	if err != nil {
		return nil, err
	}
	rank := c.In[0].Rank()
	if len(perm) != rank {
		return nil, fmt.Errorf("permutation %v for rank %d", perm, rank)
	}
	seen := make([]bool, rank)
	for i, a := range perm {
		if a, err = op.Axis(a, rank); err != nil || seen[a] {
			return nil, fmt.Errorf("%v is not a permutation", perm)
		}
		perm[i], seen[a] = a, true
	}
	return perm, nil
}

func inferTranspose(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	perm, err := permutation(c)
	if err != nil {
		return err
	}
	shape := make([]int, len(perm))
	for i, a := range perm {
		shape[i] = c.In[0].Shape[a]
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func prepareTranspose(c *op.Call) (op.Run, error) {
	perm, err := permutation(c)
	if err != nil {
		return nil, err
	}
	from := tensor.Strides(c.In[0].Shape)
	strides := make([]int, len(perm))
	for i, a := range perm {
		strides[i] = from[a]
	}
	return moveView(c.In[0].Type, c.Out[0].Shape, strides, 0)
}

func inferTile(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	times, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	shape := like(c.In[0].Shape)
	if len(times) != len(shape) {
		return fmt.Errorf("%d multiples for rank %d", len(times), len(shape))
	}
	for i, n := range times {
		if n < 0 {
			return fmt.Errorf("multiple %d is negative", n)
		}
		shape[i] *= n
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

// prepareTile walks the output as (multiple, dimension) pairs of axes, with a
// stride of zero along the multiples.
func prepareTile(c *op.Call) (op.Run, error) {
	times, err := op.Ints(c.In[1])
	if err != nil {
		return nil, err
	}
	from := tensor.Strides(c.In[0].Shape)
	var shape, strides []int
	for i, n := range times {
		shape = append(shape, n, c.In[0].Shape[i])
		strides = append(strides, 0, from[i])
	}
	return moveView(c.In[0].Type, shape, strides, 0)
}

func inferBroadcastTo(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	shape, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	if _, err := layout.BroadcastStrides(c.In[0].Shape, shape); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func prepareBroadcastTo(c *op.Call) (op.Run, error) {
	return planned(func(c *op.Call) (op.Run, error) {
		strides, err := layout.BroadcastStrides(c.In[0].Shape, c.Out[0].Shape)
		if err != nil {
			return nil, err
		}
		return moveView(c.In[0].Type, c.Out[0].Shape, strides, 0)
	}, 1)(c)
}

// inferBroadcastArgs gives the length of the longer of two shapes.
func inferBroadcastArgs(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	a, b := c.In[0], c.In[1]
	if a.Rank() != 1 || b.Rank() != 1 || a.Type != b.Type || a.Type != tensor.Int32 && a.Type != tensor.Int64 {
		return fmt.Errorf("shapes of types %v %s and %v %s", a.Type, tensor.FormatShape(a.Shape), b.Type, tensor.FormatShape(b.Shape))
	}
	c.SetOut(0, a.Type, []int{max(a.Shape[0], b.Shape[0])})
	return nil
}

func prepareBroadcastArgs(*op.Call) (op.Run, error) {
	return func(c *op.Call) error {
		a, err := op.Ints(c.In[0])
		if err != nil {
			return err
		}
		b, err := op.Ints(c.In[1])
		if err != nil {
			return err
		}
		shape, err := tensor.Broadcast(a, b)
		if err != nil {
			return err
		}
		if c.Out[0].Type == tensor.Int64 {
			return putInts(tensor.Of[int64](c.Out[0]), shape)
		}
		return putInts(tensor.Of[int32](c.Out[0]), shape)
	}, nil
}
