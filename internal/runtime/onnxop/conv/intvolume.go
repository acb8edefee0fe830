package conv

import (
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// slabs computes a quantised 3D convolution as a 2D convolution for each position along the first
// axis: the planes that its window sees are concatenated as channels.
type slabs struct {
	*convolution
	plane, area int     // elements of a plane of the input and of the result
	parts       []slab  // the first one with all planes of the window
	at          []int   // the part of each place
	x           []uint8 // [C,planes,H,W]
	codes       []uint8 // [M,H,W]; sums in place of it where those are wanted
	sums        []int32
}

// slab is the convolution of positions that see planes lo to hi of the window.
type slab struct {
	planar *conv.Sums
	lo, hi int
}

// newSlabs makes the convolutions. If many planes are outside and the weights are constant,
// positions at the ends get their own convolutions with only the planes that they see.
func newSlabs(v *convolution, constant bool) *slabs {
	s := &slabs{convolution: v, plane: v.In[1] * v.In[2], area: v.Out[1] * v.Out[2], at: make([]int, v.Out[0])}
	k := v.Kernel[0]
	s.parts = []slab{{conv.NewSums(s.shape(k), false, false), 0, k}}
	if !constant {
		return s
	}
	seen, least := 0, k
	for d := range s.at {
		_, lo, hi := s.Span(0, d)
		seen, least = seen+hi-lo, min(least, hi-lo)
	}
	const worth = 32 // as a part of all planes
	if all := k * len(s.at); least < 1 || all-seen < all/worth {
		return s
	}
	for d := range s.at {
		_, lo, hi := s.Span(0, d)
		i := slices.IndexFunc(s.parts, func(p slab) bool { return p.lo == lo && p.hi == hi })
		if i < 0 {
			i = len(s.parts)
			s.parts = append(s.parts, slab{conv.NewSums(s.shape(hi-lo), false, false), lo, hi})
		}
		s.at[d] = i
	}
	return s
}

// workspace allocates memory for a position, for sums or quantised values.
func (s *slabs) workspace(c *op.Call, sums bool) {
	s.x = c.Scratch(s.c * s.Kernel[0] * s.plane)
	if sums {
		s.sums = op.ScratchOf[int32](c, s.m*s.area)
	} else {
		s.codes = c.Scratch(s.m * s.area)
	}
}

// shape returns the shape of the 2D convolution for a number of planes.
func (s *slabs) shape(planes int) conv.Shape {
	w := window.Window{In: s.In[1:], Out: s.Out[1:], Kernel: s.Kernel[1:], Stride: s.Stride[1:], Dilation: s.Dilation[1:], Begin: s.Begin[1:]}
	v := convolution{Window: &w, n: 1, c: s.c * planes, m: s.m, groups: s.groups}
	return v.planar2D()
}

// setSlabs passes the weights to all parts.
func setSlabs[W conv.SumWeight](s *slabs, w []W, zero int32) {
	k, taps := s.Kernel[0], s.Kernel[1]*s.Kernel[2]
	for i, p := range s.parts {
		if i == 0 {
			conv.SetSumWeights(p.planar, w, zero)
			continue
		}
		cut := make([]W, 0, len(w)/k*(p.hi-p.lo))
		for at := 0; at < len(w); at += k * taps {
			cut = append(cut, w[at+p.lo*taps:at+p.hi*taps]...)
		}
		conv.SetSumWeights(p.planar, cut, zero)
	}
}

// setZero sets the zero point of all parts.
func (s *slabs) setZero(signed bool, zero int32) {
	for _, p := range s.parts {
		p.planar.SetZero(signed, zero)
	}
}

// gather concatenates the planes of image n that position d sees; planes outside are filled with
// the zero point. It returns the convolution of the position, and its input.
func (s *slabs) gather(pool *workers.Pool, x []uint8, n, d int, zero uint8) (*conv.Sums, []uint8) {
	p := s.parts[s.at[d]]
	k := p.hi - p.lo
	workers.Do(pool, s.c*k, max(1, planeGrain/max(1, s.plane)), gathering{s, p, x, n, d, zero}, func(q gathering, lo, hi int) {
		s, k := q.s, q.p.hi-q.p.lo
		for i := lo; i < hi; i++ {
			dst := s.x[i*s.plane:][:s.plane]
			at := q.d*s.Stride[0] - s.Begin[0] + (q.p.lo+i%k)*s.Dilation[0]
			if at < 0 || at >= s.In[0] {
				element.Fill(dst, q.zero)
				continue
			}
			copy(dst, q.x[((q.n*s.c+i/k)*s.In[0]+at)*s.plane:])
		}
	})
	return p.planar, s.x[:s.c*k*s.plane]
}

// planeGrain is the minimum number of bytes of planes per work item of copying.
const planeGrain = 1 << 14

// gathering holds the arguments of a work item of gather.
type gathering struct {
	s    *slabs
	p    slab
	x    []uint8
	n, d int
	zero uint8
}

// scatter writes the planes of position d of image n.
func scatter[T uint8 | int32](pool *workers.Pool, s *slabs, y, from []T, n, d int) {
	workers.Do(pool, s.m, max(1, planeGrain/max(1, s.area)), scattering[T]{s, y, from, n, d}, func(q scattering[T], lo, hi int) {
		s := q.s
		for o := lo; o < hi; o++ {
			copy(q.y[((q.n*s.m+o)*s.Out[0]+q.d)*s.area:][:s.area], q.from[o*s.area:])
		}
	})
}

// scattering holds the arguments of a work item of scatter.
type scattering[T uint8 | int32] struct {
	s       *slabs
	y, from []T
	n, d    int
}

// runCodes computes a convolution with a quantised result.
func (q *intConv) runCodes(c *op.Call, xi int, y []uint8, r *quantise.Rescale) {
	zero, x, s := q.lift(c, xi), c.In[xi].Data, q.slabs
	if s == nil {
		q.planar.RunRescaled(c.Pool, x, y, r)
		return
	}
	for n := range s.n {
		for d := range s.Out[0] {
			planar, in := s.gather(c.Pool, x, n, d, uint8(zero))
			planar.RunRescaled(c.Pool, in, s.codes, r)
			scatter(c.Pool, s, y, s.codes, n, d)
		}
	}
}

// runSums computes a convolution into int32 sums, if there is a kernel for it.
func (q *intConv) runSums(c *op.Call, x *tensor.Tensor, zero int32, y []int32) {
	s := q.slabs
	if s == nil {
		q.planar.Run(c.Pool, x.Data, y)
		return
	}
	for n := range s.n {
		for d := range s.Out[0] {
			planar, in := s.gather(c.Pool, x.Data, n, d, uint8(zero))
			planar.Run(c.Pool, in, s.sums)
			scatter(c.Pool, s, y, s.sums, n, d)
		}
	}
}
