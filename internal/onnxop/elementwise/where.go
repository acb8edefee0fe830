package elementwise

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func inferWhere(c *op.Call) error {
	if err := c.NeedInputs(3); err != nil {
		return err
	}
	if err := elem.SameTypes(c, 1); err != nil {
		return err
	}
	if c.In[0].Type != tensor.Bool {
		return c.Errorf("condition is %v", c.In[0].Type)
	}
	out, err := tensor.Broadcast(c.In[0].Shape, c.In[1].Shape, c.In[2].Shape)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[1].Type, out)
	return nil
}

// prepareWhere copies elements by their width: their meaning does not matter.
func prepareWhere(c *op.Call) (op.Run, error) {
	plan, err := NewBroadcast(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape, c.In[2].Shape)
	if err != nil {
		return nil, err
	}
	if c.In[1].Type == tensor.String {
		return func(c *op.Call) error {
			selectRange(plan, 0, plan.Len, c.Out[0].Strings, tensor.Of[uint8](c.In[0]), c.In[1].Strings, c.In[2].Strings)
			return nil
		}, nil
	}
	if f := tensor.PickWidth(c.In[1].Type, selectRun[uint8], selectRun[uint16], selectRun[uint32], selectRun[uint64]); f != nil {
		return f(plan), nil
	}
	if c.In[1].Type == tensor.Complex128 {
		return selectRun[complex128](plan), nil
	}
	return nil, elem.BadType(c, 1)
}

func selectRun[T uint8 | uint16 | uint32 | uint64 | complex128](plan *Broadcast) op.Run {
	return func(c *op.Call) error {
		dst, cond, x, y := tensor.Of[T](c.Out[0]), tensor.Of[uint8](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2])
		c.Pool.For(plan.Len, element.Grain, func(lo, hi int) { selectRange(plan, lo, hi, dst, cond, x, y) })
		return nil
	}
}

func selectRange[T any](plan *Broadcast, lo, hi int, out []T, cond []uint8, x, y []T) {
	sx, sy := plan.Step[1], plan.Step[2]
	for it := plan.Runs(lo, hi); it.Next(); {
		dst := out[it.Dst : it.Dst+it.N]
		ox, oy := it.Off[1], it.Off[2]
		if plan.Step[0] == 0 {
			src, o, s := y, oy, sy
			if cond[it.Off[0]] != 0 {
				src, o, s = x, ox, sx
			}
			if s == 1 {
				copy(dst, src[o:o+it.N])
			} else {
				element.Fill(dst, src[o])
			}
			continue
		}
		for i, b := range cond[it.Off[0] : it.Off[0]+it.N] {
			if b != 0 {
				dst[i] = x[ox+i*sx]
			} else {
				dst[i] = y[oy+i*sy]
			}
		}
	}
}
