package elementwise

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// inferCast takes the type that the file declares for the output; old converters
// leave the option at its default.
func inferCast(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	t := c.Out[0].Type
	if id := c.Node.Outputs[0]; id >= 0 && c.Graph.Values[id].Type != tensor.Invalid {
		t = c.Graph.Values[id].Type
	}
	if t == tensor.Invalid {
		return op.Unsupported("a cast to an undeclared type")
	}
	c.SetOut(0, t, c.In[0].Shape)
	return nil
}

// Cast returns the function that converts input 0 to output 0, element by
// element: fractions are cut off, values out of range saturate, anything but
// zero is true, and the imaginary part is dropped. Integers wrap around as two's
// complement does.
func Cast(from, to tensor.Type) (op.Run, error) {
	complexes := from == tensor.Complex64 || to == tensor.Complex64
	if !complexes && (!from.IsNumber() || !to.IsNumber()) || complexes && from != to && !from.IsNumber() && !to.IsNumber() {
		return nil, op.Unsupported("from %v to %v", from, to)
	}
	return func(c *op.Call) error {
		x, y := c.In[0], c.Out[0]
		switch {
		case from == to:
			copy(y.Data, x.Data)
		case from == tensor.Complex64:
			z := tensor.Of[complex64](x)
			re := tensor.New(tensor.Float32, len(z))
			for i, v := range z {
				tensor.Of[float32](re)[i] = real(v)
			}
			castAll(c, y, re)
		case to == tensor.Complex64:
			re := tensor.New(tensor.Float32, x.Len())
			castAll(c, re, x)
			z := tensor.Of[complex64](y)
			for i, v := range tensor.Of[float32](re) {
				z[i] = complex(v, 0)
			}
		default:
			castAll(c, y, x)
		}
		return nil
	}, nil
}

func castAll(c *op.Call, y, x *tensor.Tensor) {
	workers.Do(c.Pool, x.Len(), 16384, [2]*tensor.Tensor{y, x}, func(a [2]*tensor.Tensor, lo, hi int) {
		tensor.Cast(a[0], a[1], lo, hi, tensor.Conversion{Clamp: true})
	})
}
