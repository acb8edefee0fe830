package conv

import (
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/onnxop/window"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// slabs let a convolution of codes over three axes be one over two for each place along the first: the planes that its window sees there,
// side by side, are channels.
type slabs struct {
	*convolution
	plane, area int     // elements of a plane of the input and of the result
	x           []uint8 // [C,kernel,H,W]
	codes       []uint8 // [M,H,W]; sums in place of it where those are wanted
	sums        []int32
}

// room is memory for a place, with sums of it or codes.
func (s *slabs) room(c *op.Call, sums bool) {
	s.x = c.Scratch(s.c * s.Kernel[0] * s.plane)
	if sums {
		s.sums = op.ScratchOf[int32](c, s.m*s.area)
	} else {
		s.codes = c.Scratch(s.m * s.area)
	}
}

// shape is that of the convolution over two axes.
func (s *slabs) shape() kernel.ConvShape {
	w := window.Window{In: s.In[1:], Out: s.Out[1:], Kernel: s.Kernel[1:], Stride: s.Stride[1:], Dilation: s.Dilation[1:], Begin: s.Begin[1:]}
	v := convolution{Window: &w, n: 1, c: s.c * s.Kernel[0], m: s.m, groups: s.groups}
	return v.planar2D()
}

// gather puts the planes of image n that place d sees side by side; outside lie zero points.
func (s *slabs) gather(x []uint8, n, d int, zero uint8) {
	k := s.Kernel[0]
	for ch := range s.c {
		for t := range k {
			dst := s.x[(ch*k+t)*s.plane:][:s.plane]
			at := d*s.Stride[0] - s.Begin[0] + t*s.Dilation[0]
			if at < 0 || at >= s.In[0] {
				for i := range dst {
					dst[i] = zero
				}
				continue
			}
			copy(dst, x[((n*s.c+ch)*s.In[0]+at)*s.plane:])
		}
	}
}

// scatter writes the planes of place d of image n.
func scatter[T uint8 | int32](s *slabs, y, from []T, n, d int) {
	for o := range s.m {
		copy(y[((n*s.m+o)*s.Out[0]+d)*s.area:][:s.area], from[o*s.area:])
	}
}

// runCodes convolves codes into codes.
func (q *intConv) runCodes(c *op.Call, xi int, y []uint8, r *kernel.Rescale) {
	zero, x, s := q.lift(c, xi), c.In[xi].Data, q.slabs
	if s == nil {
		q.planar.Codes(c.Pool, x, y, r)
		return
	}
	for n := range s.n {
		for d := range s.Out[0] {
			s.gather(x, n, d, uint8(zero))
			q.planar.Codes(c.Pool, s.x, s.codes, r)
			scatter(s, y, s.codes, n, d)
		}
	}
}

// runSums convolves codes into sums, where there is a kernel for that.
func (q *intConv) runSums(c *op.Call, x *tensor.Tensor, zero int32, y []int32) {
	s := q.slabs
	if s == nil {
		q.planar.Run(c.Pool, x.Data, y)
		return
	}
	for n := range s.n {
		for d := range s.Out[0] {
			s.gather(x.Data, n, d, uint8(zero))
			q.planar.Run(c.Pool, s.x, s.sums)
			scatter(s, y, s.sums, n, d)
		}
	}
}
