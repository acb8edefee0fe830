package elementwise

import (
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// inferMany broadcasts any number of inputs.
func inferMany(c *op.Call) error {
	if err := c.NeedInputs(max(1, len(c.In))); err != nil {
		return err
	}
	shapes := make([][]int, len(c.In))
	for i, x := range c.In {
		shapes[i] = x.Shape
	}
	out, err := tensor.Broadcast(shapes...)
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, out)
}

// prepareMany folds the inputs into the output, two at a time: Max, Min, Sum and Mean.
func prepareMany(c *op.Call, k arith, mean bool) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	f := tensor.PickNumber(c.In[0].Type, manyReals[float32], manyReals[float64],
		manyInts[int8], manyInts[int16], manyInts[int32], manyInts[int64], manyInts[uint8], manyInts[uint16], manyInts[uint32], manyInts[uint64])
	if f == nil || mean && !c.In[0].Type.IsFloat() {
		return nil, elem.BadType(c, 0)
	}
	return f(c, k, mean)
}

func manyReals[T tensor.Real](c *op.Call, k arith, mean bool) (op.Run, error) {
	if !mean {
		return foldMany(c, realLoops[T](k), nil)
	}
	n := T(len(c.In))
	return foldMany(c, realLoops[T](k), func(v []T) { element.Div[T]().VectorScalar(v, v, n) })
}

func manyInts[T tensor.Integer](c *op.Call, k arith, _ bool) (op.Run, error) {
	return foldMany(c, intLoops[T](k), nil)
}

func foldMany[T tensor.Number](c *op.Call, l element.Loops[T, T], after func([]T)) (op.Run, error) {
	out := c.Out[0].Shape
	n := len(c.In)
	// The first step reads inputs 0 and 1 (a single input is copied), each further one the output
	// and an input.
	steps := make([]*element.Binary[T, T], 0, n)
	for i := 1; i < n; i++ {
		first := out
		if i == 1 {
			first = c.In[0].Shape
		}
		plan, err := NewBroadcast(out, first, c.In[i].Shape)
		if err != nil {
			return nil, err
		}
		steps = append(steps, element.NewBinary(c.Pool, plan, l))
	}
	return func(c *op.Call) error {
		dst := tensor.Of[T](c.Out[0])
		if len(steps) == 0 {
			copy(dst, tensor.Of[T](c.In[0]))
		}
		for i, r := range steps {
			a := dst
			if i == 0 {
				a = tensor.Of[T](c.In[0])
			}
			r.Run(c.Pool, dst, a, tensor.Of[T](c.In[i+1]))
		}
		if after != nil {
			after(dst)
		}
		return nil
	}, nil
}

// inferSwiGLU requires equal shapes: the operator does not broadcast.
func inferSwiGLU(c *op.Call) error {
	a, b := c.In[0].Shape, c.In[1].Shape
	if tensor.FormatShape(a) != tensor.FormatShape(b) {
		return c.Errorf("shapes %s and %s differ", tensor.FormatShape(a), tensor.FormatShape(b))
	}
	return c.Result(c.In[0].Type, a)
}

// prepareSwiGLU computes a·sigmoid(alpha·a)·b.
func prepareSwiGLU(c *op.Call) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	alpha := c.Node.Attrs.Float("alpha", 1)
	switch c.In[0].Type {
	case tensor.Float32:
		return prepareLoops(c, element.Loops[float32, float32]{Vec: func(dst, a, b []float32) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i, x := range a {
				dst[i] = x * vecmath.Sigmoid(alpha*x) * b[i]
			}
		}})
	case tensor.Float64:
		return prepareLoops(c, element.Loops[float64, float64]{Vec: func(dst, a, b []float64) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i, x := range a {
				dst[i] = x * sigmoid64(float64(alpha)*x) * b[i]
			}
		}})
	}
	return nil, elem.BadType(c, 0)
}

func inferWhere(c *op.Call) error {
	if err := elem.SameTypes(c, 1); err != nil {
		return err
	}
	if c.In[0].Type != tensor.Bool {
		return c.Errorf("condition is %v", c.In[0].Type)
	}
	return elem.InferBroadcast(c, c.In[1].Type, 0, 1, 2)
}

// prepareWhere copies elements by their width: their type does not matter.
func prepareWhere(c *op.Call) (op.Run, error) {
	plan, err := NewBroadcast(c.Out[0].Shape, c.In[0].Shape, c.In[1].Shape, c.In[2].Shape)
	if err != nil {
		return nil, err
	}
	return layout.Select(plan, element.Grain), nil
}

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
