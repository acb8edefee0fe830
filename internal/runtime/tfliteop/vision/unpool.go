package vision

import (
	"encoding/binary"
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func unpoolDefs() []op.Def {
	return []op.Def{
		custom("MaxPoolingWithArgmax2D", inferPool, preparePool),
		custom("MaxUnpooling2D", inferUnpool, prepareUnpool),
	}
}

// window is the pooling window. Its place in the padded image is the offset.
type window struct {
	same                   bool
	strideW, strideH, w, h int
}

// windowOf reads the options: 32-bit words for padding (1 same, 2 valid), strides
// and size, as they lie in memory.
func windowOf(c *op.Call, inputs int) (p window, err error) {
	if err := c.NeedInputs(inputs); err != nil {
		return p, err
	}
	b, _ := c.Node.Attrs["custom_options"].([]byte)
	if len(b) < 20 {
		return p, op.Unsupported("options of %d bytes", len(b))
	}
	word := func(i int) int { return int(int32(binary.LittleEndian.Uint32(b[4*i:]))) }
	p = window{word(0) == 1, word(1), word(2), word(3), word(4)}
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

// span returns the result's length and the padding before.
func (p window) span(n, size, stride int) (out, pad int) {
	if !p.same {
		return max((n-size+stride)/stride, 0), 0
	}
	out = (n + stride - 1) / stride
	return out, max((out-1)*stride+size-n, 0) / 2
}

func inferPool(c *op.Call) error {
	p, err := windowOf(c, 1)
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	h, _ := p.span(s[1], p.h, p.strideH)
	w, _ := p.span(s[2], p.w, p.strideW)
	c.SetOut(0, tensor.Float32, []int{s[0], h, w, s[3]})
	c.SetOut(1, tensor.Float32, []int{s[0], h, w, s[3]})
	return nil
}

// preparePool gives the largest element and its place within the window.
func preparePool(c *op.Call) (op.Run, error) {
	p, err := windowOf(c, 1)
	if err != nil {
		return nil, err
	}
	if !c.Wants(0) || !c.Wants(1) {
		return nil, fmt.Errorf("two outputs are expected")
	}
	return func(c *op.Call) error {
		x, y, at := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), tensor.Of[float32](c.Out[1])
		s, o := c.In[0].Shape, c.Out[0].Shape
		_, padH := p.span(s[1], p.h, p.strideH)
		_, padW := p.span(s[2], p.w, p.strideW)
		c.Pool.For(o[0]*o[1], 1, func(lo, hi int) {
			for row := lo; row < hi; row++ {
				b, r := row/o[1], row%o[1]
				for k := range o[2] {
					out := (row*o[2] + k) * o[3]
					for ch := range o[3] {
						best, place := float32(0), -1
						for i := range p.h * p.w {
							v, u := r*p.strideH-padH+i/p.w, k*p.strideW-padW+i%p.w
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

// inferUnpool has values and their places; the image grows by the strides.
func inferUnpool(c *op.Call) error {
	p, err := windowOf(c, 2)
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	if c.In[1].Len() != c.In[0].Len() {
		return fmt.Errorf("values %s with places %s", tensor.FormatShape(s), tensor.FormatShape(c.In[1].Shape))
	}
	h, w := s[1]*p.strideH, s[2]*p.strideW
	if !p.same {
		h, w = (s[1]-1)*p.strideH+p.h, (s[2]-1)*p.strideW+p.w
	}
	c.SetOut(0, tensor.Float32, []int{s[0], h, w, s[3]})
	return nil
}

func prepareUnpool(c *op.Call) (op.Run, error) {
	p, err := windowOf(c, 2)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		x, at, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.In[1]), tensor.Of[float32](c.Out[0])
		s, o := c.In[0].Shape, c.Out[0].Shape
		_, padH := p.span(o[1], p.h, p.strideH)
		_, padW := p.span(o[2], p.w, p.strideW)
		clear(y)
		for i, v := range x {
			ch, k, r, b := i%s[3], i/s[3]%s[2], i/s[3]/s[2]%s[1], i/s[3]/s[2]/s[1]
			place := int(at[i])
			if place < 0 || place >= p.h*p.w {
				return fmt.Errorf("place %v is outside the window", at[i])
			}
			row, col := r*p.strideH-padH+place/p.w, k*p.strideW-padW+place%p.w
			if row < 0 || col < 0 || row >= o[1] || col >= o[2] {
				continue
			}
			y[((b*o[1]+row)*o[2]+col)*o[3]+ch] = v
		}
		return nil
	}, nil
}
