package array

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// pad maps each axis: to the padding value, or to its mirror image, which repeats the edge if it
// is symmetric.
func pad(c *op.Call, p []int) (g layout.Geometry, err error) {
	x, edge, mirror := c.In[0], 1, c.Node.Op == "MIRROR_PAD"
	if c.Node.Attrs.Str("mode", "REFLECT") == "REFLECT" {
		edge = 0
	}
	if len(p) != 2*x.Rank() {
		return g, fmt.Errorf("%d paddings for rank %d", len(p), x.Rank())
	}
	out := like(x.Shape)
	for i, v := range p {
		if v < 0 || v > tensor.MaxBytes {
			return g, fmt.Errorf("padding %d is negative or too large", v)
		}
		if n := x.Shape[i/2]; mirror && v > max(n-1+edge, 0) {
			return g, fmt.Errorf("padding of axis %d is larger than what is mirrored of its %d elements", i/2, n)
		}
		out[i/2] += v
	}
	if v := c.Input(2); v != nil && (v.Type != x.Type || v.Len() != 1) {
		return g, fmt.Errorf("padding value %v %s for %v", v.Type, tensor.FormatShape(v.Shape), x.Type)
	}
	return layout.Map(x.Shape, out, func(i int) []int {
		at, n := make([]int, out[i]), x.Shape[i]
		for k := range at {
			switch o := k - p[2*i]; {
			case o >= 0 && o < n:
				at[k] = o
			case !mirror:
				at[k] = -1
			case o < 0:
				at[k] = -o - edge
			default:
				at[k] = 2*n - 2 - o + edge
			}
		}
		return at
	}, 2, zeroOf(c)), nil
}

// zeroOf returns an element that represents real zero in output 0, of the type of input 0: the
// zero point of per-tensor quantised types, an empty string, zero otherwise.
func zeroOf(c *op.Call) *tensor.Tensor {
	x := tensor.New(c.In[0].Type)
	if !c.Wants(0) || c.Out[0].Quant == nil || len(c.Out[0].Quant.Zero) == 0 {
		return x
	}
	switch z := c.Out[0].Quant.Zero[0]; x.Type {
	case tensor.Int8, tensor.Uint8:
		x.Data[0] = byte(z)
	case tensor.Int16:
		tensor.Of[int16](x)[0] = int16(z)
	}
	return x
}

// dilate has the tensor, the distance of its elements along each axis, and the value between them.
func dilate(c *op.Call, step []int) (g layout.Geometry, err error) {
	x := c.In[0]
	if len(step) != x.Rank() || c.In[2].Type != x.Type || c.In[2].Len() != 1 {
		return g, fmt.Errorf("%d dilations for rank %d, value %v for %v", len(step), x.Rank(), c.In[2].Type, x.Type)
	}
	out := like(x.Shape)
	for i, s := range step {
		if s < 1 {
			return g, fmt.Errorf("dilation %d", s)
		}
		if out[i] > 0 {
			out[i] = (out[i]-1)*s + 1
		}
	}
	return layout.Map(x.Shape, out, func(i int) []int { return layout.SpreadAxis(x.Shape[i], out[i], 0, step[i]) }, 2, nil), nil
}

// inferBroadcastArgs returns the length of the longer of two shapes.
func inferBroadcastArgs(c *op.Call) error {
	a, b := c.In[0], c.In[1]
	if a.Rank() != 1 || b.Rank() != 1 || a.Type != b.Type || a.Type != tensor.Int32 && a.Type != tensor.Int64 {
		return fmt.Errorf("shapes of types %v %s and %v %s", a.Type, tensor.FormatShape(a.Shape), b.Type, tensor.FormatShape(b.Shape))
	}
	c.SetOut(0, a.Type, []int{max(a.Shape[0], b.Shape[0])})
	return nil
}

func runBroadcastArgs(c *op.Call) error {
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
	return layout.PutInts(c.Out[0], shape)
}

// blockSize reads the option of the depth operators, for NHWC images.
func blockSize(c *op.Call) (int, error) {
	b := c.Node.Attrs.Int("block_size", 0)
	if b < 1 || c.In[0].Rank() != 4 {
		return 0, fmt.Errorf("block size %d for shape %s", b, tensor.FormatShape(c.In[0].Shape))
	}
	return b, nil
}

func spaceToDepth(c *op.Call) (g layout.Geometry, err error) {
	b, err := blockSize(c)
	if err != nil {
		return g, err
	}
	s := c.In[0].Shape
	if s[1]%b != 0 || s[2]%b != 0 {
		return g, fmt.Errorf("shape %s is not a multiple of blocks of %d", tensor.FormatShape(s), b)
	}
	st := tensor.Strides(s)
	return layout.ViewGeometry([]int{s[0], s[1] / b, s[2] / b, s[3] * b * b},
		[]int{s[0], s[1] / b, s[2] / b, b, b, s[3]}, []int{st[0], b * st[1], b * st[2], st[1], st[2], 1}, 0)
}

func depthToSpace(c *op.Call) (g layout.Geometry, err error) {
	b, err := blockSize(c)
	if err != nil {
		return g, err
	}
	s := c.In[0].Shape
	if s[3]%(b*b) != 0 {
		return g, fmt.Errorf("depth of %s is not a multiple of %d", tensor.FormatShape(s), b*b)
	}
	st, d := tensor.Strides(s), s[3]/(b*b)
	return layout.ViewGeometry([]int{s[0], s[1] * b, s[2] * b, d},
		[]int{s[0], s[1], b, s[2], b, d}, []int{st[0], st[1], b * d, st[2], d, 1}, 0)
}

// spaceParams reads block shape and paddings (or crops) of the batch operators.
func spaceParams(c *op.Call) (block, pads []int, err error) {
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

func spaceToBatch(c *op.Call) (g layout.Geometry, err error) {
	block, pads, err := spaceParams(c)
	if err != nil {
		return g, err
	}
	out := like(c.In[0].Shape)
	for i, b := range block {
		n := out[i+1] + pads[2*i] + pads[2*i+1]
		if n%b != 0 {
			return g, fmt.Errorf("padded axis %d of %d is not a multiple of %d", i+1, n, b)
		}
		out[0] *= b
		out[i+1] = n / b
	}
	return layout.Geometry{Shape: out, Run: func(c *op.Call) (op.Run, error) {
		return patched(patches(c.In[0].Shape, out, block, pads, false), zeroOf(c))
	}}, nil
}

func batchToSpace(c *op.Call) (g layout.Geometry, err error) {
	block, crops, err := spaceParams(c)
	if err != nil {
		return g, err
	}
	out := like(c.In[0].Shape)
	for i, b := range block {
		if out[0]%b != 0 {
			return g, fmt.Errorf("batch of %s is not a multiple of blocks %v", tensor.FormatShape(c.In[0].Shape), block)
		}
		out[0] /= b
		if out[i+1] = out[i+1]*b - crops[2*i] - crops[2*i+1]; out[i+1] < 0 {
			return g, fmt.Errorf("crops of axis %d are larger than it", i+1)
		}
	}
	return layout.Geometry{Shape: out, Run: func(c *op.Call) (op.Run, error) {
		return patched(patches(out, c.In[0].Shape, block, crops, true), nil)
	}}, nil
}

// patches pairs the wide tensor (more space) with the deep one (more batches), a copy for each
// offset within the blocks: wide element o*block + offset - border belongs to deep element o of
// the batch group of that offset. toWide selects which side is written.
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

// patched runs copies from input to output. Elements without a source get the value.
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
