package elementwise

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// prepareImageScaler computes x·scale + bias[channel] for images in NCHW order.
func prepareImageScaler(c *op.Call) (op.Run, error) {
	if f := tensor.PickReal(c.In[0].Type, imageScaler[float32], imageScaler[float64]); f != nil {
		return f(c)
	}
	return nil, elem.BadType(c, 0)
}

func imageScaler[T tensor.Real](c *op.Call) (op.Run, error) {
	shape := c.In[0].Shape
	scale, bias := T(c.Node.Attrs.Float("scale", 1)), c.Node.Attrs.Floats("bias")
	if len(shape) != 4 || len(bias) != shape[1] {
		return nil, c.Errorf("%d biases for shape %s", len(bias), tensor.FormatShape(shape))
	}
	plane := shape[2] * shape[3]
	return op.Parallel(shape[0]*shape[1], max(1, element.Grain/max(1, plane)), func(c *op.Call, lo, hi int) {
		src, dst := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		for p := lo; p < hi; p++ {
			b := T(bias[p%shape[1]])
			out := dst[p*plane : (p+1)*plane]
			for i, x := range src[p*plane : (p+1)*plane] {
				out[i] = x*scale + b
			}
		}
	}), nil
}

// cropWindow returns the part of an NCHW image that Crop keeps: without the border (left, top,
// right, bottom), or of the size "scale" (height, width) starting at the left and top border.
func cropWindow(c *op.Call) (top, left, height, width int, err error) {
	shape, border, size := c.In[0].Shape, c.Node.Attrs.Ints("border"), c.Node.Attrs.Ints("scale")
	if len(shape) != 4 || len(border) != 4 {
		return 0, 0, 0, 0, c.Errorf("shape %s with %d borders", tensor.FormatShape(shape), len(border))
	}
	left, top = border[0], border[1]
	height, width = shape[2]-border[3]-top, shape[3]-border[2]-left
	if len(size) == 2 {
		height, width = size[0], size[1]
	}
	if top < 0 || left < 0 || height <= 0 || width <= 0 || top > shape[2]-height || left > shape[3]-width {
		return 0, 0, 0, 0, c.Errorf("crop of %dx%d at %d, %d from shape %s", height, width, top, left, tensor.FormatShape(shape))
	}
	return top, left, height, width, nil
}

func inferCrop(c *op.Call) error {
	_, _, h, w, err := cropWindow(c)
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, []int{c.In[0].Shape[0], c.In[0].Shape[1], h, w})
}

func prepareCrop(c *op.Call) (op.Run, error) {
	top, left, h, w, err := cropWindow(c)
	if err != nil {
		return nil, err
	}
	size := c.In[0].Type.Bits() / 8
	if size == 0 {
		return nil, elem.BadType(c, 0)
	}
	shape := c.In[0].Shape
	return func(c *op.Call) error {
		src, dst := c.In[0].Data, c.Out[0].Data
		for p := range shape[0] * shape[1] {
			for y := range h {
				from := ((p*shape[2]+top+y)*shape[3] + left) * size
				copy(dst[(p*h+y)*w*size:][:w*size], src[from:])
			}
		}
		return nil
	}, nil
}
