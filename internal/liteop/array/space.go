package array

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

func spaceDefs() []op.Def {
	return []op.Def{
		lite("SPACE_TO_DEPTH", inferSpaceToDepth, prepareSpaceToDepth),
		lite("DEPTH_TO_SPACE", inferDepthToSpace, prepareDepthToSpace),
		lite("SPACE_TO_BATCH_ND", inferSpaceToBatch, layout.Planned(prepareSpaceToBatch, 1, 2)),
		lite("BATCH_TO_SPACE_ND", inferBatchToSpace, layout.Planned(prepareBatchToSpace, 1, 2)),
	}
}

// blockSize reads the option of the depth operators, for NHWC images.
func blockSize(c *op.Call) (int, error) {
	if err := c.NeedInputs(1); err != nil {
		return 0, err
	}
	b := c.Node.Attrs.Int("block_size", 0)
	if b < 1 || c.In[0].Rank() != 4 {
		return 0, fmt.Errorf("block size %d for shape %s", b, tensor.FormatShape(c.In[0].Shape))
	}
	return b, nil
}

func inferSpaceToDepth(c *op.Call) error {
	b, err := blockSize(c)
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	if s[1]%b != 0 || s[2]%b != 0 {
		return fmt.Errorf("shape %s is not a multiple of blocks of %d", tensor.FormatShape(s), b)
	}
	c.SetOut(0, c.In[0].Type, []int{s[0], s[1] / b, s[2] / b, s[3] * b * b})
	return nil
}

func prepareSpaceToDepth(c *op.Call) (op.Run, error) {
	b, err := blockSize(c)
	if err != nil {
		return nil, err
	}
	s, o := c.In[0].Shape, c.Out[0].Shape
	st := tensor.Strides(s)
	return layout.View([]int{o[0], o[1], o[2], b, b, s[3]}, []int{st[0], b * st[1], b * st[2], st[1], st[2], 1}, 0)
}

func inferDepthToSpace(c *op.Call) error {
	b, err := blockSize(c)
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	if s[3]%(b*b) != 0 {
		return fmt.Errorf("depth of %s is not a multiple of %d", tensor.FormatShape(s), b*b)
	}
	c.SetOut(0, c.In[0].Type, []int{s[0], s[1] * b, s[2] * b, s[3] / (b * b)})
	return nil
}

func prepareDepthToSpace(c *op.Call) (op.Run, error) {
	b, err := blockSize(c)
	if err != nil {
		return nil, err
	}
	s, d := c.In[0].Shape, c.Out[0].Shape[3]
	st := tensor.Strides(s)
	return layout.View([]int{s[0], s[1], b, s[2], b, d}, []int{st[0], st[1], b * d, st[2], d, 1}, 0)
}

// spaceParams reads block shape and paddings (or crops) of the batch operators.
func spaceParams(c *op.Call) (block, pads []int, err error) {
	if err := c.NeedInputs(3); err != nil {
		return nil, nil, err
	}
	if block, err = op.Ints(c.In[1]); err != nil {
		return nil, nil, err
	}
	if pads, err = op.Ints(c.In[2]); err != nil {
		return nil, nil, err
	}
	x := c.In[0]
	if len(pads) != 2*len(block) || len(block)+1 > x.Rank() {
		return nil, nil, fmt.Errorf("blocks %v and borders %v for shape %s", block, pads, tensor.FormatShape(x.Shape))
	}
	for i, b := range block {
		if b < 1 || pads[2*i] < 0 || pads[2*i+1] < 0 {
			return nil, nil, fmt.Errorf("block %d, borders %d and %d of axis %d", b, pads[2*i], pads[2*i+1], i+1)
		}
	}
	return block, pads, nil
}

func inferSpaceToBatch(c *op.Call) error {
	block, pads, err := spaceParams(c)
	if err != nil {
		return err
	}
	shape := like(c.In[0].Shape)
	for i, b := range block {
		n := shape[i+1] + pads[2*i] + pads[2*i+1]
		if n%b != 0 {
			return fmt.Errorf("padded axis %d of %d is not a multiple of %d", i+1, n, b)
		}
		shape[0] *= b
		shape[i+1] = n / b
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func inferBatchToSpace(c *op.Call) error {
	block, crops, err := spaceParams(c)
	if err != nil {
		return err
	}
	shape := like(c.In[0].Shape)
	for i, b := range block {
		if shape[0]%b != 0 {
			return fmt.Errorf("batch of %s is not a multiple of blocks %v", tensor.FormatShape(c.In[0].Shape), block)
		}
		shape[0] /= b
		if shape[i+1] = shape[i+1]*b - crops[2*i] - crops[2*i+1]; shape[i+1] < 0 {
			return fmt.Errorf("crops of axis %d are larger than it", i+1)
		}
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

// patches pairs the wide tensor (more space) with the deep one (more batches), a
// copy for each offset within the blocks: wide element o*block + offset - border
// belongs to deep element o of the batch group of that offset. toWide tells which
// side is written.
func patches(wide, deep, block, border []int, toWide bool) (list []move.Plan) {
	if tensor.Elements(deep) == 0 {
		return nil
	}
	ws, ds := tensor.Strides(wide), tensor.Strides(deep)
	for g := range tensor.Elements(block) {
		shape, step := like(deep), like(ws)
		shape[0] = wide[0]
		w, d := 0, g*wide[0]*ds[0]
		for i, r := len(block)-1, g; i >= 0; i-- {
			off := r%block[i] - border[2*i]
			r /= block[i]
			lo := 0 // first deep index that lies inside the wide axis
			if off < 0 {
				lo = (-off + block[i] - 1) / block[i]
			}
			hi := min(deep[i+1], (wide[i+1]-off+block[i]-1)/block[i])
			shape[i+1] = max(hi-lo, 0)
			step[i+1] = block[i] * ws[i+1]
			w += (lo*block[i] + off) * ws[i+1]
			d += lo * ds[i+1]
		}
		p := move.New(shape, ds, step, d, w)
		if toWide {
			p = move.New(shape, step, ds, w, d)
		}
		list = append(list, *p)
	}
	return list
}

func prepareSpaceToBatch(c *op.Call) (op.Run, error) {
	block, pads, err := spaceParams(c)
	if err != nil {
		return nil, err
	}
	return patched(patches(c.In[0].Shape, c.Out[0].Shape, block, pads, false), zeroOf(c.In[0].Type, c.Out[0].Quant))
}

func prepareBatchToSpace(c *op.Call) (op.Run, error) {
	block, crops, err := spaceParams(c)
	if err != nil {
		return nil, err
	}
	return patched(patches(c.Out[0].Shape, c.In[0].Shape, block, crops, true), nil)
}

// patched runs copies from input to output. What they leave out gets the value.
func patched(list []move.Plan, value *tensor.Tensor) (op.Run, error) {
	covered := 0
	for _, p := range list {
		covered += p.Len()
	}
	return func(c *op.Call) error {
		dst, src := layout.Of(c.Out[0]), layout.Of(c.In[0])
		if value != nil && covered < dst.Len() {
			move.Fill(c.Pool, dst, layout.Of(value))
		}
		for i := range list {
			list[i].Run(c.Pool, dst, src)
		}
		return nil
	}, nil
}
