package array

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func padDefs() []op.Def {
	return []op.Def{
		moved("PAD", 2, pad, 1),
		moved("PADV2", 2, pad, 1),
		moved("MIRROR_PAD", 2, pad, 1),
		moved("DILATE", 3, dilate, 1),
		moved("TRANSPOSE", 2, byInts(layout.Transpose)),
		moved("TILE", 2, byInts(layout.Tile)),
		moved("BROADCAST_TO", 2, byInts(layout.Expand)),
		lite("BROADCAST_ARGS", 2, inferBroadcastArgs, op.Simple(runBroadcastArgs)),
	}
}

// pad maps each axis: to the padding value, or to its mirror image, which repeats the edge if it
// is symmetric.
func pad(c *op.Call) (g layout.Geometry, err error) {
	x, edge, mirror := c.In[0], 1, c.Node.Op == "MIRROR_PAD"
	if c.Node.Attrs.Str("mode", "REFLECT") == "REFLECT" {
		edge = 0
	}
	p, err := op.Ints(c.In[1])
	if err != nil {
		return g, err
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

// dilate has the tensor, the distance of its elements along each axis, and the value between
// them.
func dilate(c *op.Call) (g layout.Geometry, err error) {
	step, err := op.Ints(c.In[1])
	if err != nil {
		return g, err
	}
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
