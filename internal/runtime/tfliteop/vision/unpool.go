package vision

import (
	"encoding/binary"
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// poolOptions holds the options of both operators and their padding; a position in the padded
// window is the offset that they exchange.
type poolOptions struct {
	same                   bool
	strideW, strideH, w, h int
	outH, outW, padH, padW int
}

// poolOptionsOf reads the options: 32-bit little-endian words for padding (1 same, 2 valid),
// strides and size.
func poolOptionsOf(c *op.Call, inputs int) (p poolOptions, err error) {
	if err := c.NeedInputs(inputs); err != nil {
		return p, err
	}
	b, _ := c.Node.Attrs["custom_options"].([]byte)
	if len(b) < 20 {
		return p, op.Unsupported("options of %d bytes", len(b))
	}
	word := func(i int) int { return int(int32(binary.LittleEndian.Uint32(b[4*i:]))) }
	p = poolOptions{same: word(0) == 1, strideW: word(1), strideH: word(2), w: word(3), h: word(4)}
	if min(p.strideW, p.strideH, p.w, p.h) < 1 || max(p.strideW, p.strideH, p.w, p.h) > 1<<20 {
		return p, fmt.Errorf("window %d x %d with strides %d and %d", p.h, p.w, p.strideH, p.strideW)
	}
	for _, x := range c.In[:inputs] {
		if x.Type != tensor.Float32 || x.Rank() != 4 {
			return p, op.Unsupported("images %v %s", x.Type, tensor.FormatShape(x.Shape))
		}
	}
	return p, nil
}

func poolOf(c *op.Call) (poolOptions, error) {
	p, err := poolOptionsOf(c, 1)
	if err == nil {
		s := c.In[0].Shape
		h, w := layer.Slide(s[1], p.h, p.strideH, 1, p.same), layer.Slide(s[2], p.w, p.strideW, 1, p.same)
		p.outH, p.padH, p.outW, p.padW = h.Out, h.Pad, w.Out, w.Pad
	}
	return p, err
}

func inferPool(c *op.Call, p poolOptions) {
	inferUnpool(c, p)
	c.SetOut(1, tensor.Float32, []int{c.In[0].Shape[0], p.outH, p.outW, c.In[0].Shape[3]})
}

// preparePool computes the largest element and its position in the window.
func preparePool(c *op.Call, p poolOptions) (op.Run, error) {
	if !c.Wants(0) || !c.Wants(1) {
		return nil, fmt.Errorf("two outputs are expected")
	}
	return func(c *op.Call) error {
		x, y, at := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), tensor.Of[float32](c.Out[1])
		s, o := c.In[0].Shape, c.Out[0].Shape
		c.Pool.For(o[0]*o[1], 1, func(lo, hi int) {
			for row := lo; row < hi; row++ {
				b, r := row/o[1], row%o[1]
				for k := range o[2] {
					out := (row*o[2] + k) * o[3]
					for ch := range o[3] {
						best, place := float32(0), -1
						for i := range p.h * p.w {
							v, u := r*p.strideH-p.padH+i/p.w, k*p.strideW-p.padW+i%p.w
							if v < 0 || u < 0 || v >= s[1] || u >= s[2] {
								continue
							}
							if e := x[((b*s[1]+v)*s[2]+u)*s[3]+ch]; place < 0 || e > best {
								best, place = e, i
							}
						}
						y[out+ch], at[out+ch] = best, float32(max(place, 0))
					}
				}
			}
		})
		return nil
	}, nil
}

// unpoolOf reads values and their positions. The strides are the factors of enlargement.
func unpoolOf(c *op.Call) (poolOptions, error) {
	p, err := poolOptionsOf(c, 2)
	if err != nil {
		return p, err
	}
	s := c.In[0].Shape
	if c.In[1].Len() != c.In[0].Len() {
		return p, fmt.Errorf("values %s with places %s", tensor.FormatShape(s), tensor.FormatShape(c.In[1].Shape))
	}
	p.outH, p.outW = s[1]*p.strideH, s[2]*p.strideW
	if !p.same {
		p.outH, p.outW = (s[1]-1)*p.strideH+p.h, (s[2]-1)*p.strideW+p.w
	}
	p.padH = layer.Slide(p.outH, p.h, p.strideH, 1, p.same).Pad
	p.padW = layer.Slide(p.outW, p.w, p.strideW, 1, p.same).Pad
	return p, nil
}

func inferUnpool(c *op.Call, p poolOptions) {
	c.SetOut(0, tensor.Float32, []int{c.In[0].Shape[0], p.outH, p.outW, c.In[0].Shape[3]})
}

func prepareUnpool(_ *op.Call, p poolOptions) (op.Run, error) {
	return func(c *op.Call) error {
		x, at, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0])
		s, o := c.In[0].Shape, c.Out[0].Shape
		clear(y)
		for i, v := range x {
			ch, k, r, b := i%s[3], i/s[3]%s[2], i/s[3]/s[2]%s[1], i/s[3]/s[2]/s[1]
			place := int(at[i])
			if place < 0 || place >= p.h*p.w {
				return fmt.Errorf("place %v is outside the window", at[i])
			}
			row, col := r*p.strideH-p.padH+place/p.w, k*p.strideW-p.padW+place%p.w
			if row < 0 || col < 0 || row >= o[1] || col >= o[2] {
				continue
			}
			y[((b*o[1]+row)*o[2]+col)*o[3]+ch] = v
		}
		return nil
	}, nil
}
