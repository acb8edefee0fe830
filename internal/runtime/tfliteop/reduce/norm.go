package reduce

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

func prepareL2Norm(c *op.Call) (op.Run, error) {
	rows, depth := layer.LastAxis(c.In[0])
	if c.In[0].Type != c.Out[0].Type {
		return nil, op.Unsupported("%v input with %v output", c.In[0].Type, c.Out[0].Type)
	}
	switch t := c.In[0].Type; t {
	case tensor.Float32:
		act, err := layer.Activation(c)
		if err != nil {
			return nil, err
		}
		return layer.Ranges(rows, max(1, layer.Grain/max(depth, 1)), func(y, x []float32, lo, hi int) {
			for r := lo; r < hi; r++ {
				l2Row(y[r*depth:][:depth], x[r*depth:][:depth])
			}
			if act.On {
				for i, v := range y[lo*depth : hi*depth] {
					y[lo*depth+i] = min(max(v, act.Min), act.Max)
				}
			}
		}), nil
	case tensor.Int8:
		return quantL2[int8](c, rows, depth)
	case tensor.Uint8:
		return quantL2[uint8](c, rows, depth)
	default:
		return nil, op.Unsupported("%v input", t)
	}
}

func l2Row(y, x []float32) {
	var s float32 // in the type of the reference kernels
	for _, v := range x {
		s += v * v
	}
	n := max(float32(math.Sqrt(float64(s))), 1e-6)
	for i, v := range x {
		y[i] = v / n
	}
}

// quantL2 has an output scale of 1/128, and the middle of the type as zero point.
func quantL2[T int8 | uint8](c *op.Call, rows, depth int) (op.Run, error) {
	_, z, err := layer.ScaleOf(c.In[0])
	if err != nil {
		return nil, err
	}
	lo, hi := layer.Limits(c.Out[0].Type)
	middle := lo + 128
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for r := range rows {
			in := x[r*depth:][:depth]
			var s int32
			for _, v := range in {
				d := int32(v) - z
				s += d * d
			}
			m := fixed.InvSqrt(s)
			// The factor 128 is part of the multiplier for int8, and of the values for uint8.
			factor := int32(128)
			if middle == 0 {
				m.Shift, factor = m.Shift+7, 1
			}
			for i, v := range in {
				y[r*depth+i] = T(min(max(m.Apply(factor*(int32(v)-z))+middle, lo), hi))
			}
		}
		return nil
	}, nil
}

// prepareLRN normalises by the sum of the squares of neighbouring channels.
func prepareLRN(c *op.Call) (op.Run, error) {
	if c.In[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%v input", c.In[0].Type)
	}
	rows, depth := layer.LastAxis(c.In[0])
	a := c.Node.Attrs
	radius, bias, alpha, beta := a.Int("radius", 0), float64(a.Float("bias", 0)), float64(a.Float("alpha", 0)), float64(a.Float("beta", 0))
	if radius < 0 {
		return nil, c.Errorf("radius %d is negative", radius)
	}
	radius = min(radius, depth)
	return layer.Ranges(rows, max(1, 1024/max(depth, 1)), func(y, x []float32, lo, hi int) {
		for r := lo; r < hi; r++ {
			in := x[r*depth:][:depth]
			for i, v := range in {
				var s float32
				for _, w := range in[max(0, i-radius):min(depth, i+radius+1)] {
					s += w * w
				}
				y[r*depth+i] = v * float32(math.Pow(bias+alpha*float64(s), -beta))
			}
		}
	}), nil
}

func inferEmbedding(c *op.Call) error {
	if err := c.NeedInputs(2); err != nil {
		return err
	}
	if c.In[1].Rank() < 1 {
		return c.Errorf("table has no rows")
	}
	if c.In[0].Type != tensor.Int32 {
		return op.Unsupported("%v indices", c.In[0].Type)
	}
	c.SetOut(0, layer.OutType(c, c.In[1].Type), append(append([]int{}, c.In[0].Shape...), c.In[1].Shape[1:]...))
	return nil
}

// prepareEmbedding copies rows of a table, converted to float when the output is.
func prepareEmbedding(c *op.Call) (op.Run, error) {
	t := c.In[1]
	rows, width := t.Shape[0], tensor.Elements(t.Shape[1:])
	find := func(c *op.Call, copyRow func(i, row int)) error {
		for i, v := range tensor.Of[int32](c.In[0]) {
			if v < 0 || int(v) >= rows {
				return c.Errorf("index %d is outside a table of %d rows", v, rows)
			}
			copyRow(i, int(v))
		}
		return nil
	}
	if c.Out[0].Type == t.Type && t.Type.Bits() >= 8 {
		size := width * t.Type.Bits() / 8
		return func(c *op.Call) error {
			return find(c, func(i, r int) { copy(c.Out[0].Data[i*size:(i+1)*size], c.In[1].Data[r*size:]) })
		}, nil
	}
	if c.Out[0].Type != tensor.Float32 {
		return nil, op.Unsupported("%v table with %v output", t.Type, c.Out[0].Type)
	}
	load := layer.Floats
	if c.Const(1) {
		all, err := layer.Floats(t)
		if err != nil {
			return nil, err
		}
		load = func(*tensor.Tensor) ([]float32, error) { return all, nil }
	}
	return func(c *op.Call) error {
		v, err := load(c.In[1])
		if err != nil {
			return err
		}
		y := tensor.Of[float32](c.Out[0])
		return find(c, func(i, r int) { copy(y[i*width:(i+1)*width], v[r*width:]) })
	}, nil
}
