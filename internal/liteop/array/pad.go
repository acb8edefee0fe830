package array

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/broadcast"
	"github.com/opmeter/opmeter/internal/kernel/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/op/layout"
	"github.com/opmeter/opmeter/internal/tensor"
)

func padDefs() []op.Def {
	return []op.Def{
		lite("PAD", inferPad, layout.Planned(preparePad, 1)),
		lite("PADV2", inferPad, layout.Planned(preparePad, 1)),
		lite("MIRROR_PAD", inferPad, layout.Planned(preparePad, 1)),
		lite("DILATE", inferDilate, layout.Planned(prepareDilate, 1)),
		lite("TRANSPOSE", inferTranspose, layout.Planned(prepareTranspose, 1)),
		lite("TILE", inferTile, layout.Planned(prepareTile, 1)),
		lite("BROADCAST_TO", inferBroadcastTo, layout.Planned(prepareBroadcastTo)),
		lite("BROADCAST_ARGS", inferBroadcastArgs, op.Simple(runBroadcastArgs)),
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

// preparePad maps each axis: to nothing, which gets the value, or to its mirror,
// which repeats the edge when it is symmetric.
func preparePad(c *op.Call) (op.Run, error) {
	p, err := padding(c)
	if err != nil {
		return nil, err
	}
	x, mirror, edge := c.In[0], c.Node.Op == "MIRROR_PAD", 1
	if c.Node.Attrs.Str("mode", "REFLECT") == "REFLECT" {
		edge = 0
	}
	if v := c.Input(2); v != nil && (v.Type != x.Type || v.Len() != 1) {
		return nil, fmt.Errorf("padding value %v %s for %v", v.Type, tensor.FormatShape(v.Shape), x.Type)
	}
	axes := make([][]int, x.Rank())
	for i, n := range x.Shape {
		for o := range p[2*i] + n + p[2*i+1] {
			o -= p[2*i]
			switch {
			case o >= 0 && o < n:
			case !mirror:
				o = -1
			case o < 0:
				o = -o - edge
			default:
				o = 2*n - 2 - o + edge
			}
			axes[i] = append(axes[i], o)
		}
	}
	return mapped(c, axes, 2)
}

// mapped fills the output from maps of the axes and the input with the value, or
// real zero where there is none.
func mapped(c *op.Call, axes [][]int, value int) (op.Run, error) {
	m, zero := move.NewMaps(c.In[0].Shape, axes), zeroOf(c.In[0].Type, c.Out[0].Quant)
	return func(c *op.Call) error {
		v := c.Input(value)
		if v == nil {
			v = zero
		}
		m.Run(c.Pool, layout.Of(c.Out[0]), layout.Of(c.In[0]), layout.Of(v))
		return nil
	}, nil
}

// zeroOf returns a tensor of one element that stands for real zero: the zero
// point of per-tensor quantised types, an empty string, zero otherwise.
func zeroOf(t tensor.Type, q *tensor.Quant) *tensor.Tensor {
	x := tensor.New(t)
	if q == nil || len(q.Zero) == 0 {
		return x
	}
	switch z := q.Zero[0]; t {
	case tensor.Int8, tensor.Uint8:
		x.Data[0] = byte(z)
	case tensor.Int16:
		tensor.Of[int16](x)[0] = int16(z)
	}
	return x
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
	axes := make([][]int, len(step))
	for i, n := range c.Out[0].Shape {
		axes[i] = slices.Repeat([]int{-1}, n)
		for k := 0; k < n; k += step[i] {
			axes[i][k] = k / step[i]
		}
	}
	return mapped(c, axes, 2)
}

// permutation reads and checks the axes of a TRANSPOSE.
func permutation(c *op.Call) ([]int, error) {
	perm, err := op.Ints(c.Input(1))
	if err != nil {
		return nil, err
	}
	return layout.Permutation(perm, c.In[0].Rank())
}

func inferTranspose(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
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

func inferTile(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	times, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	shape, err := layout.Repeated(c.In[0].Shape, times)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func prepareTile(c *op.Call) (op.Run, error) {
	times, err := op.Ints(c.In[1])
	if err != nil {
		return nil, err
	}
	return layout.Tiled(c.In[0].Shape, times)
}

func inferBroadcastTo(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	shape, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	if _, err := broadcast.Strides(c.In[0].Shape, shape); err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, shape)
	return nil
}

func prepareBroadcastTo(c *op.Call) (op.Run, error) {
	src, err := broadcast.Strides(c.In[0].Shape, c.Out[0].Shape)
	if err != nil {
		return nil, err
	}
	return layout.View(c.Out[0].Shape, src, 0)
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
