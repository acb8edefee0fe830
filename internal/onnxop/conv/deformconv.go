package conv

import (
	"fmt"
	"math"
	"slices"

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
			c.Pool.For(v.c*taps, 1, func(lo, hi int) {
				for r := lo; r < hi; r++ {
					ch, tap := r/taps, r%taps
					g := ch / perOffset
					dy := off[((n*og+g)*taps+tap)*2*area:][:area]
					dx := off[((n*og+g)*taps+tap)*2*area+area:][:area]
					plane := x[(n*v.c+ch)*inArea:][:inArea]
					ky, kx := tap/v.Kernel[1]*v.Dilation[0], tap%v.Kernel[1]*v.Dilation[1]
					for p, row := 0, col[r*area:][:area]; p < area; p++ {
						py := float64(p/v.Out[1]*v.Stride[0]-v.Begin[0]+ky) + float64(dy[p])
						px := float64(p%v.Out[1]*v.Stride[1]-v.Begin[1]+kx) + float64(dx[p])
						s := bilinear(plane, v.In[0], v.In[1], py, px)
						if mask != nil {
							s *= float64(mask[((n*og+g)*taps+tap)*area+p])
						}
						row[p] = T(s)
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

// bilinear reads a plane between pixels; outside it is zero.
func bilinear[T tensor.Real](plane []T, h, w int, y, x float64) float64 {
	if !(y > -1 && y < float64(h) && x > -1 && x < float64(w)) {
		return 0
	}
	y0, x0 := int(math.Floor(y)), int(math.Floor(x))
	fy, fx := y-float64(y0), x-float64(x0)
	at := func(i, j int) float64 {
		if uint(i) < uint(h) && uint(j) < uint(w) {
			return float64(plane[i*w+j])
		}
		return 0
	}
	return (1-fy)*((1-fx)*at(y0, x0)+fx*at(y0, x0+1)) + fy*((1-fx)*at(y0+1, x0)+fx*at(y0+1, x0+1))
}
