package conv

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// newDeform checks a DeformConv: x, w, offset, bias, mask.
func newDeform(c *op.Call) (*convolution, int, error) {
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
	return c.Result(c.In[0].Type, v.shape())
}

// prepareDeformConv samples the patches bilinearly at the given offsets and multiplies them by
// the weights.
func prepareDeformConv[T tensor.Real](c *op.Call) (op.Run, error) {
	v, og, err := newDeform(c)
	if err != nil {
		return nil, err
	}
	taps, area, inArea := tensor.Elements(v.Kernel), tensor.Elements(v.Out), tensor.Elements(v.In)
	if inArea > math.MaxInt32 {
		return nil, op.Unsupported("images of %d pixels", inArea)
	}
	cg, mg := v.c/v.groups, v.m/v.groups
	perOffset := v.c / og
	col := op.ScratchOf[T](c, v.c*taps*area)
	points := make([]*window.Points[T], c.Pool.Threads())
	for i := range points {
		points[i] = window.NewPoints[T](deformBlock)
	}
	var n int // the image of the run: the closure is allocated once
	var x, off, mask []T
	work := func(worker, lo, hi int) {
		q := points[worker]
		for r := lo; r < hi; r++ {
			g, tap := r/taps, r%taps
			dy := off[(n*og*taps+r)*2*area:][:area]
			dx := off[(n*og*taps+r)*2*area+area:][:area]
			ky, kx := tap/v.Kernel[1]*v.Dilation[0]-v.Begin[0], tap%v.Kernel[1]*v.Dilation[1]-v.Begin[1]
			line, at := 0, 0 // of the output
			for first := 0; first < area; first += deformBlock {
				q.Reset()
				for p := first; p < min(first+deformBlock, area); p++ {
					times := T(1)
					if mask != nil {
						times = mask[(n*og*taps+r)*area+p]
					}
					addBetween(q, v.In[0], v.In[1], float64(line*v.Stride[0]+ky)+float64(dy[p]), float64(at*v.Stride[1]+kx)+float64(dx[p]), float64(times))
					if at++; at == v.Out[1] {
						line, at = line+1, 0
					}
				}
				// Channels of a group use the same points.
				for ch := g * perOffset; ch < (g+1)*perOffset; ch++ {
					q.Sample(col[(ch*taps+tap)*area+first:], x[(n*v.c+ch)*inArea:][:inArea])
				}
			}
		}
	}
	return func(c *op.Call) error {
		w, y, bias := tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0]), elem.Elements[T](c, 3)
		x, off, mask = tensor.Of[T](c.In[0]), tensor.Of[T](c.In[2]), elem.Elements[T](c, 4)
		for n = range v.n {
			c.Pool.ForWorker(og*taps, 1, work)
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

// deformBlock is the number of points that are sampled together.
const deformBlock = 256

// addBetween adds a point between the pixels of a plane, which is zero outside, multiplied by
// times.
func addBetween[T tensor.Real](points *window.Points[T], h, w int, y, x, times float64) {
	pos, weight := points.Next()
	if !(y > -1 && y < float64(h) && x > -1 && x < float64(w)) {
		points.Fewer(0)
		return
	}
	top, left := int(math.Floor(y)), int(math.Floor(x))
	fy, fx := y-float64(top), x-float64(left)
	pos, weight = pos[:4], weight[:4]
	q := top*w + left
	parts := [4]float64{times * (1 - fy) * (1 - fx), times * (1 - fy) * fx, times * fy * (1 - fx), times * fy * fx}
	if top >= 0 && left >= 0 && top+1 < h && left+1 < w {
		pos[0], pos[1], pos[2], pos[3] = int32(q), int32(q+1), int32(q+w), int32(q+w+1)
		weight[0], weight[1], weight[2], weight[3] = T(parts[0]), T(parts[1]), T(parts[2]), T(parts[3])
		return
	}
	n := 0
	for i, part := range parts {
		if r, c := top+i/2, left+i%2; uint(r) < uint(h) && uint(c) < uint(w) {
			pos[n], weight[n] = int32(r*w+c), T(part)
			n++
		}
	}
	points.Fewer(n)
}
