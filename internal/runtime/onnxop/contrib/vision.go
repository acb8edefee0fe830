package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/conv"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/pool"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// visionDefs lists the domain's own operators over images.
func visionDefs() []op.Def {
	return []op.Def{
		{Name: "NhwcMaxPool", Types: elem.Bytes, Infer: op.Needs(1, op.Infer(newLastPool)), Prepare: prepareLastPool},
		{Name: "MaxpoolWithMask", Types: []tensor.Type{tensor.Float32}, Infer: op.Needs(2, op.Infer(newMaskedPool)), Prepare: prepareMaskedPool},
		elem.RealDef("CropAndResize", op.Needs(4, op.Infer(newCrop)), prepareCrop[float32], prepareCrop[float64]),
		withPads(conv.Defs()),
	}
}

// NhwcMaxPool: MaxPool of 8-bit values in channels-last order, [N, ..., C].

func newLastPool(c *op.Call) (*window.Window, error) {
	x := c.In[0]
	if x.Rank() < 3 {
		return nil, fmt.Errorf("input %s", tensor.FormatShape(x.Shape))
	}
	last := x.Rank() - 1
	w, err := window.New(c, x.Shape[1:last], c.Node.Attrs.Ints("kernel_shape"), c.Node.Attrs.Bool("ceil_mode", false))
	if err != nil {
		return nil, err
	}
	return w, c.Result(x.Type, slices.Concat(x.Shape[:1], w.Out, x.Shape[last:]))
}

func prepareLastPool(c *op.Call) (op.Run, error) {
	switch c.In[0].Type {
	case tensor.Int8:
		return lastPool[int8](c, math.MinInt8)
	case tensor.Uint8:
		return lastPool[uint8](c, 0)
	}
	return nil, op.Unsupported("%v", c.In[0].Type)
}

func lastPool[T int8 | uint8](c *op.Call, lowest T) (op.Run, error) {
	w := op.Must(newLastPool(c))
	channels, in, out := c.In[0].Shape[c.In[0].Rank()-1], tensor.Elements(w.In), tensor.Elements(w.Out)
	work := func(c *op.Call, lo, hi int) {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		var at [window.MaxSpatial]int
		for i := lo; i < hi; i++ {
			tensor.Unravel(i%out, w.Out, at[:len(w.Out)])
			image, row := x[i/out*in*channels:], y[i*channels:][:channels]
			element.Fill(row, lowest)
			w.Taps(at[:len(w.Out)], func(pos int) {
				for k, v := range image[pos*channels:][:channels] {
					row[k] = max(row[k], v)
				}
			})
		}
	}
	return func(c *op.Call) error {
		workers.Do(c.Pool, c.In[0].Shape[0]*out, 16, c, work)
		return nil
	}, nil
}

// MaxpoolWithMask: MaxPool of x [N, C, ...] where a 0 in the mask ends a line of the window. The
// documentation says no more than "for internal use": ONNX Runtime's results are the definition.
// The mask of plane i begins at element i·plane mod (N·C of the mask), and in two and more
// dimensions its first element counts as 1. Without an element, the result is the lowest float32.

func newMaskedPool(c *op.Call) (*window.Window, error) {
	x, m := c.In[0], c.In[1]
	if m.Type != tensor.Int32 || m.Rank() != x.Rank() || x.Rank() < 3 || x.Rank() > 5 || !slices.Equal(m.Shape[2:], x.Shape[2:]) || m.Shape[0]*m.Shape[1] < 1 {
		return nil, fmt.Errorf("input %s with mask %s of %v", tensor.FormatShape(x.Shape), tensor.FormatShape(m.Shape), m.Type)
	}
	w, err := pool.NewPool(c)
	if err == nil && slices.Max(w.Dilation) > 1 {
		err = op.Unsupported("dilations %v", w.Dilation)
	}
	return w, err
}

func prepareMaskedPool(c *op.Call) (op.Run, error) {
	w := op.Must(newMaskedPool(c))
	in, out, masks := tensor.Elements(w.In), tensor.Elements(w.Out), c.In[1].Shape[0]*c.In[1].Shape[1]
	line := w.In[len(w.In)-1]
	work := func(c *op.Call, lo, hi int) {
		x, y, mask := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), tensor.Of[int32](c.In[1])
		for i := lo; i < hi; i++ {
			plane, from := x[i*in:][:in], mask[i*in%masks:]
			var at [window.MaxSpatial]int
			for o := range out {
				most, stopped := float32(-math.MaxFloat32), -1
				w.Taps(at[:len(w.Out)], func(pos int) {
					if pos/line == stopped {
						return
					}
					if from[pos] == 0 && (pos > 0 || len(w.In) == 1) {
						stopped = pos / line
					} else if plane[pos] > most {
						most = plane[pos]
					}
				})
				y[i*out+o] = most
				tensor.Next(at[:len(w.Out)], w.Out)
			}
		}
	}
	return func(c *op.Call) error {
		workers.Do(c.Pool, c.In[0].Shape[0]*c.In[0].Shape[1], 1, c, work)
		return nil
	}, nil
}

// CropAndResize: x [N, C, H, W], boxes [R, 4] as y1, x1, y2, x2 in units of H-1 and W-1, the image
// of each box, and the height and width of the crops. Positions outside of the image give
// extrapolation_value.

type crop struct {
	h, w    int // of a crop
	nearest bool
	outside float32
}

func newCrop(c *op.Call) (*crop, error) {
	x, boxes, images := c.In[0].Shape, c.In[1].Shape, c.In[2].Shape
	if len(x) != 4 || len(boxes) != 2 || boxes[1] != 4 || len(images) != 1 || images[0] != boxes[0] {
		return nil, fmt.Errorf("input %s, boxes %s, images of the boxes %s", tensor.FormatShape(x), tensor.FormatShape(boxes), tensor.FormatShape(images))
	}
	size, err := op.Ints(c.In[3])
	if err != nil {
		return nil, err
	}
	if len(size) != 2 || size[0] < 1 || size[1] < 1 {
		return nil, fmt.Errorf("crop_size %v, expected a height and a width", size)
	}
	v := &crop{h: size[0], w: size[1], outside: c.Node.Attrs.Float("extrapolation_value", 0)}
	switch mode := c.Node.Attrs.Str("mode", "bilinear"); mode {
	case "bilinear":
	case "nearest":
		v.nearest = true
	default:
		return nil, fmt.Errorf("mode %q, expected bilinear or nearest", mode)
	}
	return v, c.Result(c.In[0].Type, []int{boxes[0], x[1], v.h, v.w})
}

// place returns the position of sample i of n between two ends of an axis of size pixels. The
// arithmetic is ONNX Runtime's, so that samples on an edge are inside or outside as there.
func place[T tensor.Real](i, n, size int, from, to T) T {
	last := T(size - 1)
	switch i {
	case 0:
		if n == 1 {
			return T(0.5 * float64(from+to) * float64(size-1))
		}
		return from * last
	case n - 1:
		return to * last
	}
	step := (to - from) * last / T(n-1)
	return from*last + T(T(i)*step) //nolint:unconvert // rounds the product: it must not fuse with the sum
}

func prepareCrop[T tensor.Real](c *op.Call) (op.Run, error) {
	v := op.Must(newCrop(c))
	if c.In[1].Type != c.In[0].Type || c.In[2].Type != tensor.Int32 {
		return nil, fmt.Errorf("input of %v, boxes of %v, images of %v", c.In[0].Type, c.In[1].Type, c.In[2].Type)
	}
	s := c.In[0].Shape
	work := func(c *op.Call, lo, hi int) {
		x, boxes, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		size := s[1] * v.h * v.w
		for r := lo; r < hi; r++ {
			n := int(tensor.Of[int32](c.In[2])[r])
			resample(v, s, x[n*s[1]*s[2]*s[3]:], boxes[r*4:][:4], y[r*size:][:size])
		}
	}
	return func(c *op.Call) error {
		for _, n := range tensor.Of[int32](c.In[2]) {
			if n < 0 || int(n) >= s[0] {
				return fmt.Errorf("image %d of %d", n, s[0])
			}
		}
		workers.Do(c.Pool, c.In[2].Len(), 1, c, work)
		return nil
	}, nil
}

// resample writes the crop of one box of an image of shape s.
func resample[T tensor.Real](v *crop, s []int, image, box, y []T) {
	area, height, width := s[2]*s[3], s[2], s[3]
	for i := range v.h {
		for j := range v.w {
			py, px := place(i, v.h, height, box[0], box[2]), place(j, v.w, width, box[1], box[3])
			inside := py >= 0 && py <= T(height-1) && px >= 0 && px <= T(width-1)
			for k := range s[1] {
				to := &y[(k*v.h+i)*v.w+j]
				switch {
				case !inside:
					*to = T(v.outside)
				case v.nearest:
					*to = image[k*area+int(math.Round(float64(py)))*width+int(math.Round(float64(px)))]
				default:
					*to = between(image[k*area:][:area], width, py, px)
				}
			}
		}
	}
}

// between interpolates linearly between the four pixels around a position.
func between[T tensor.Real](plane []T, width int, y, x T) T {
	top, left := int(math.Floor(float64(y))), int(math.Floor(float64(x)))
	bottom, right := int(math.Ceil(float64(y))), int(math.Ceil(float64(x)))
	fy, fx := y-T(top), x-T(left)
	upper, lower := plane[top*width:], plane[bottom*width:]
	a := upper[left] + T((upper[right]-upper[left])*fx) //nolint:unconvert // rounds the product: it must not fuse with the sum
	b := lower[left] + T((lower[right]-lower[left])*fx) //nolint:unconvert // rounds the product: it must not fuse with the sum
	return a + T((b-a)*fy)                              //nolint:unconvert // as above
}

// withPads returns ConvTransposeWithDynamicPads: ConvTranspose with the padding as input 2, before
// the bias.
func withPads(defs []op.Def) op.Def {
	d := standard(defs, "ConvTranspose", 11)
	d.Name = "ConvTransposeWithDynamicPads"
	with := func(c *op.Call, do func() error) error {
		own, n := c.Node, *c.Node
		in, fixed := c.In, c.Fixed
		defer func() { c.Node, c.In, c.Fixed = own, in, fixed }()
		if c.Has(2) {
			pads, err := op.Ints(c.In[2])
			if err != nil {
				return err
			}
			n.Attrs = graph.Attrs{}
			for k, v := range own.Attrs {
				n.Attrs[k] = v
			}
			wide := make([]int64, len(pads))
			for i, p := range pads {
				wide[i] = int64(p)
			}
			n.Attrs["pads"] = wide
		}
		n.Inputs = slices.Clone(own.Inputs)
		c.Node, c.In = &n, slices.Clone(in)
		if len(in) > 2 {
			c.In, n.Inputs = slices.Delete(c.In, 2, 3), slices.Delete(n.Inputs, 2, 3)
		}
		if len(fixed) > 2 {
			c.Fixed = slices.Delete(slices.Clone(fixed), 2, 3)
		}
		return do()
	}
	return within(d, with)
}
