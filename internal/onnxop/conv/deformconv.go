package conv

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// newDeform checks a DeformConv: x, w, offset, bias, mask.
func newDeform(c *op.Call) (*convolution, int, error) {
	if err := c.NeedInputs(3); err != nil {
		return nil, 0, err
	}
	v, err := newConvolution(c, c.In[0], c.In[1], c.Input(3))
	if err != nil {
		return nil, 0, err
	}
	og := c.Node.Attrs.Int("offset_group", 1)
	if len(v.In) != 2 {
		return nil, 0, op.Unsupported("DeformConv over %d spatial axes", len(v.In))
	}
	if og < 1 || v.c%og != 0 {
		return nil, 0, fmt.Errorf("%d offset groups for %d channels", og, v.c)
	}
	taps := tensor.Elements(v.Kernel)
	if want := append([]int{v.n, og * taps * 2}, v.Out...); !slices.Equal(c.In[2].Shape, want) {
		return nil, 0, fmt.Errorf("offset %s, want %s", tensor.FormatShape(c.In[2].Shape), tensor.FormatShape(want))
	}
	if m := c.Input(4); m != nil {
		if want := append([]int{v.n, og * taps}, v.Out...); !slices.Equal(m.Shape, want) {
			return nil, 0, fmt.Errorf("mask %s, want %s", tensor.FormatShape(m.Shape), tensor.FormatShape(want))
		}
	}
	return v, og, nil
}

func inferDeformConv(c *op.Call) error {
	v, _, err := newDeform(c)
	if err != nil {
		return err
	}
	c.SetOut(0, c.In[0].Type, v.shape())
	return nil
}

// prepareDeformConv samples the patches bilinearly where the offsets point and
// multiplies them with the weights.
func prepareDeformConv[T tensor.Real](c *op.Call) (op.Run, error) {
	v, og, err := newDeform(c)
	if err != nil {
		return nil, err
	}
	taps, area, inArea := tensor.Elements(v.Kernel), tensor.Elements(v.Out), tensor.Elements(v.In)
	cg, mg := v.c/v.groups, v.m/v.groups
	perOffset := v.c / og
	col := op.ScratchOf[T](c, v.c*taps*area)
	return func(c *op.Call) error {
		x, w, off := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.In[2])
		y, mask, bias := tensor.Of[T](c.Out[0]), elem.Elements[T](c, 4), elem.Elements[T](c, 3)
		for n := range v.n {
			c.Pool.For(og*taps, 1, func(lo, hi int) {
				var points [element.Block]between
				for r := lo; r < hi; r++ {
					g, tap := r/taps, r%taps
					dy := off[(n*og*taps+r)*2*area:][:area]
					dx := off[(n*og*taps+r)*2*area+area:][:area]
					ky, kx := tap/v.Kernel[1]*v.Dilation[0], tap%v.Kernel[1]*v.Dilation[1]
					for first := 0; first < area; first += len(points) {
						// Channels of a group see the same points.
						some := points[:min(len(points), area-first)]
						for i := range some {
							p := first + i
							py := float64(p/v.Out[1]*v.Stride[0]-v.Begin[0]+ky) + float64(dy[p])
							px := float64(p%v.Out[1]*v.Stride[1]-v.Begin[1]+kx) + float64(dx[p])
							some[i].set(v.In[0], v.In[1], py, px)
						}
						for ch := g * perOffset; ch < (g+1)*perOffset; ch++ {
							row := col[(ch*taps+tap)*area+first:][:len(some)]
							sampled(row, x[(n*v.c+ch)*inArea:][:inArea], some, v.In[0], v.In[1], mask, (n*og*taps+r)*area+first)
						}
					}
				}
			})
			for g := range v.groups {
				ys := y[(n*v.m+g*mg)*area:][:mg*area]
				for i := range ys {
					ys[i] = 0
					if bias != nil {
						ys[i] = bias[g*mg+i/area]
					}
				}
				k := cg * taps
				matmul.Gemm(c.Pool, matmul.Matrices{M: mg, N: area, K: k, Accumulate: true}, w[g*mg*k:][:mg*k], col[g*k*area:][:k*area], ys)
			}
		}
		return nil
	}, nil
}

// between is a point between pixels: of the first of the four around it the place, and how far behind it the point is.
type between struct {
	y, x   int
	fy, fx float64
	at     int // -1 where not all four are in the plane
	in     bool
}

func (b *between) set(h, w int, y, x float64) {
	*b = between{at: -1, in: y > -1 && y < float64(h) && x > -1 && x < float64(w)}
	if !b.in {
		return
	}
	b.y, b.x = int(y), int(x)
	if y < 0 {
		b.y = -1
	}
	if x < 0 {
		b.x = -1
	}
	b.fy, b.fx = y-float64(b.y), x-float64(b.x)
	if b.y >= 0 && b.x >= 0 && b.y+1 < h && b.x+1 < w {
		b.at = b.y*w + b.x
	}
}

// sampled reads a plane at points, outside of which it is zero, and multiplies that by a mask from a place on, if there is one.
func sampled[T tensor.Real](row, plane []T, points []between, h, w int, mask []T, from int) {
	for i := range points {
		p := &points[i]
		var s float64
		switch {
		case p.at >= 0:
			above, below := plane[p.at:][:2:2], plane[p.at+w:][:2:2]
			s = (1-p.fy)*((1-p.fx)*float64(above[0])+p.fx*float64(above[1])) + p.fy*((1-p.fx)*float64(below[0])+p.fx*float64(below[1]))
		case p.in:
			at := func(i, j int) float64 {
				if uint(i) < uint(h) && uint(j) < uint(w) {
					return float64(plane[i*w+j])
				}
				return 0
			}
			s = (1-p.fy)*((1-p.fx)*at(p.y, p.x)+p.fx*at(p.y, p.x+1)) + p.fy*((1-p.fx)*at(p.y+1, p.x)+p.fx*at(p.y+1, p.x+1))
		}
		if mask != nil {
			s *= float64(mask[from+i])
		}
		row[i] = T(s)
	}
}
