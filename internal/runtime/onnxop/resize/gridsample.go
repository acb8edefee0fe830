package resize

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/window"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// sampler interpolates an image of any rank between its pixels.
type sampler struct {
	dims    []int
	mode    string // nearest, linear, cubic
	padding string // zeros, border, reflection
	corners bool   // -1 and 1 are the centres of the corner pixels
}

func newSampler(c *op.Call, dims []int) (*sampler, error) {
	a := c.Node.Attrs
	s := &sampler{dims: dims, mode: a.Str("mode", "linear"), padding: a.Str("padding_mode", "zeros"), corners: a.Bool("align_corners", false)}
	switch s.mode {
	case "bilinear":
		s.mode = "linear"
	case "bicubic":
		s.mode = "cubic"
	case "nearest", "linear", "cubic":
	default:
		return nil, fmt.Errorf("mode %q", s.mode)
	}
	if s.padding != "zeros" && s.padding != "border" && s.padding != "reflection" {
		return nil, fmt.Errorf("padding_mode %q", s.padding)
	}
	return s, nil
}

// inferGridSample: x [N,C,...], grid [N,...,rank].
func inferGridSample(c *op.Call) error {
	x, g := c.In[0].Shape, c.In[1].Shape
	if len(x) < 3 || len(g) != len(x) || g[0] != x[0] || g[len(g)-1] != len(x)-2 || len(x)-2 > window.MaxSpatial {
		return fmt.Errorf("input %s with grid %s", tensor.FormatShape(x), tensor.FormatShape(g))
	}
	return c.Result(c.In[0].Type, append(slices.Clone(x[:2]), g[1:len(g)-1]...))
}

func prepareGridSample[T tensor.Real](c *op.Call) (op.Run, error) {
	x := c.In[0].Shape
	s, err := newSampler(c, x[2:])
	if err != nil {
		return nil, err
	}
	rank := len(s.dims)
	area, points := tensor.Elements(s.dims), tensor.Elements(c.Out[0].Shape[2:])
	n, ch := x[0], x[1]
	if area == 0 && points > 0 && ch > 0 {
		return nil, fmt.Errorf("empty input %s", tensor.FormatShape(x))
	}
	// The closure is allocated once, and the scratch memory of work items is pooled.
	workspaces := sync.Pool{New: func() any { return &gridWorkspace[T]{at: make([]float64, rank)} }}
	var src, dst []T
	var grid []float32 // of what has few axes
	var given *tensor.Tensor
	work := func(lo, hi int) {
		r := workspaces.Get().(*gridWorkspace[T])
		for lo < hi {
			// Points of one image: the taps are the same for each channel.
			b, p := lo/points, lo%points
			g := &r.points
			g.reset()
			for i := range min(hi-lo, points-p, gridBlock) {
				if grid != nil {
					// it lists the innermost axis first
					for d, v := range grid[(lo+i)*rank:][:rank] {
						r.at[rank-1-d] = s.pixel(float64(v), s.dims[rank-1-d])
					}
					if g.inside(s, r.at) {
						continue
					}
					s.taps(r.at, &r.taps)
					g.add(&r.taps)
					continue
				}
				for d := range rank {
					r.at[d] = s.pixel(tensor.At(given, (lo+i)*rank+rank-1-d), s.dims[d])
				}
				s.taps(r.at, &r.taps)
				g.add(&r.taps)
			}
			for k := range ch {
				g.sample(dst[(b*ch+k)*points+p:], src[(b*ch+k)*area:][:area])
			}
			lo += len(g.ends)
		}
		workspaces.Put(r)
	}
	return func(c *op.Call) error {
		src, dst, given, grid = tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0]), c.In[1], nil
		if given.Type == tensor.Float32 && (rank == 2 || rank == 3 && s.mode == "linear") {
			grid = tensor.Of[float32](given)
		}
		c.Pool.For(n*points, 64, work)
		return nil
	}, nil
}

// gridWorkspace is the scratch memory of a work item.
type gridWorkspace[T tensor.Real] struct {
	at     []float64
	taps   tapList
	points gridPoints[T]
}

// gridBlock is the number of points that are sampled together.
const gridBlock = 256

// gridPoints holds the taps of some points, one point after the other.
type gridPoints[T tensor.Real] struct {
	pos    []int
	weight []T
	ends   []int // of the taps of each point
}

func (g *gridPoints[T]) reset() { g.pos, g.weight, g.ends = g.pos[:0], g.weight[:0], g.ends[:0] }

func (g *gridPoints[T]) add(t *tapList) {
	g.pos = append(g.pos, t.pos...)
	for _, w := range t.weight {
		g.weight = append(g.weight, T(w))
	}
	g.ends = append(g.ends, len(g.pos))
}

// inside adds the taps of a position in two dimensions, or of a linear one in three, if all of
// them are inside the image; otherwise it returns false.
func (g *gridPoints[T]) inside(s *sampler, at []float64) bool {
	h, w := s.dims[len(at)-2], s.dims[len(at)-1]
	y, x := at[len(at)-2], at[len(at)-1]
	switch {
	case s.mode == "nearest":
		y, x = math.RoundToEven(y), math.RoundToEven(x)
		if !(y >= 0 && x >= 0 && y < float64(h) && x < float64(w)) {
			return false
		}
		g.pos, g.weight = append(g.pos, int(y)*w+int(x)), append(g.weight, 1)
	case s.mode == "cubic":
		if !(y >= 1 && x >= 1 && y < float64(h-2) && x < float64(w-2)) {
			return false
		}
		top, left := int(y), int(x)
		down, right := cubics(y-float64(top)), cubics(x-float64(left))
		for i, v := range down {
			q := (top-1+i)*w + left - 1
			g.pos = append(g.pos, q, q+1, q+2, q+3)
			g.weight = append(g.weight, T(v*right[0]), T(v*right[1]), T(v*right[2]), T(v*right[3]))
		}
	default:
		if !(y >= 0 && x >= 0 && y < float64(h-1) && x < float64(w-1)) {
			return false
		}
		top, left := int(y), int(x)
		q := top*w + left
		if len(at) == 2 {
			g.square(q, w, 1, y-float64(top), x-float64(left))
			break
		}
		z := at[0]
		if !(z >= 0 && z < float64(s.dims[0]-1)) {
			return false
		}
		front := int(z)
		back := z - float64(front)
		q += front * h * w
		g.square(q, w, 1-back, y-float64(top), x-float64(left))
		g.square(q+h*w, w, back, y-float64(top), x-float64(left))
	}
	g.ends = append(g.ends, len(g.pos))
	return true
}

// square adds four taps starting at q, in lines of w, whose weights are fractions of part.
func (g *gridPoints[T]) square(q, w int, part, down, right float64) {
	up := part * (1 - down)
	down *= part
	g.pos = append(g.pos, q, q+1, q+w, q+w+1)
	g.weight = append(g.weight, T(up*(1-right)), T(up*right), T(down*(1-right)), T(down*right))
}

// cubics returns the weights of the four pixels around a position at distance f after the second
// one.
func cubics(f float64) (w [4]float64) {
	for j := range w {
		w[j] = cubic(float64(j-1)-f, -0.75)
	}
	return w
}

// four sums the taps of points that all have four; it returns false if some have another number.
func (g *gridPoints[T]) four(dst, plane []T) bool {
	n := len(g.ends)
	if len(g.pos) != 4*n {
		return false
	}
	for i, end := range g.ends {
		if end != 4*i+4 {
			return false
		}
	}
	dst, pos, weight := dst[:n], g.pos, g.weight
	for i := range dst {
		p, w := pos[:4:4], weight[:4:4]
		dst[i] = w[0]*plane[p[0]] + w[1]*plane[p[1]] + w[2]*plane[p[2]] + w[3]*plane[p[3]]
		pos, weight = pos[4:], weight[4:]
	}
	return true
}

// sample writes the points of one plane.
func (g *gridPoints[T]) sample(dst, plane []T) {
	if g.four(dst, plane) {
		return
	}
	from := 0
	for i, end := range g.ends {
		var v T
		weight := g.weight[from:end]
		for j, q := range g.pos[from:end] {
			v += weight[j] * plane[q]
		}
		dst[i], from = v, end
	}
}

// pixel maps a coordinate from [-1,1] to pixels.
func (s *sampler) pixel(v float64, n int) float64 {
	if s.corners {
		return (v + 1) / 2 * float64(n-1)
	}
	return ((v+1)*float64(n) - 1) / 2
}

// tapList holds the pixels inside the image and their weights.
type tapList struct {
	pos    []int
	weight []float64
	spare  tapSpare
}

type tapSpare struct {
	pos    []int
	weight []float64
}

// taps finds the pixels that position at is interpolated from.
func (s *sampler) taps(at []float64, t *tapList) {
	t.pos, t.weight = append(t.pos[:0], 0), append(t.weight[:0], 1)
	for d, n := range s.dims {
		p := at[d]
		if math.IsNaN(p) || math.Abs(p) > 1<<40 {
			p = math.Copysign(1<<40, p) // far outside, still an integer
		}
		var w [4]float64
		var first int
		k := 1
		lo, hi := -0.5, float64(n)-0.5
		if s.corners {
			lo, hi = 0, float64(n-1)
		}
		if s.mode == "nearest" {
			p = math.RoundToEven(p)
		}
		// Cubic mode limits its pixels individually instead.
		if s.mode != "cubic" && (p < lo || p > hi) {
			switch s.padding {
			case "border":
				p = min(max(p, 0), float64(n-1))
			case "reflection":
				p = reflect(p, lo, hi)
			}
		}
		switch base := math.Floor(p); s.mode {
		case "nearest":
			first, w[0] = int(p), 1
		case "linear":
			f := p - base
			first, k, w[0], w[1] = int(base), 2, 1-f, f
		default:
			f := p - base
			first, k, w = int(base)-1, 4, cubics(f)
		}
		t.extend(s, first, w[:k], n, lo, hi)
	}
}

// extend multiplies the taps found so far by those along one more axis.
func (t *tapList) extend(s *sampler, first int, w []float64, n int, lo, hi float64) {
	pos, weight := t.spare.pos[:0], t.spare.weight[:0]
	for i, q := range t.pos {
		for j, f := range w {
			k := first + j
			switch {
			case uint(k) < uint(n):
			case s.padding == "zeros":
				continue
			case s.padding == "border":
				k = min(max(k, 0), n-1)
			default:
				k = min(max(int(reflect(float64(k), lo, hi)), 0), n-1)
			}
			pos, weight = append(pos, q*n+k), append(weight, t.weight[i]*f)
		}
	}
	t.spare = tapSpare{t.pos, t.weight}
	t.pos, t.weight = pos, weight
}

// reflect folds p back into [lo, hi].
func reflect(p, lo, hi float64) float64 {
	r := hi - lo
	if r <= 0 {
		return lo
	}
	q := math.Mod(math.Abs(p-lo), 2*r)
	if q > r {
		q = 2*r - q
	}
	return lo + q
}

// inferAffineGrid: theta [N,2,3] or [N,3,4], size [N,C,H,W] or [N,C,D,H,W].
func inferAffineGrid(c *op.Call) error {
	size, err := op.Ints(c.In[1])
	if err != nil {
		return err
	}
	rank := len(size) - 2
	th := c.In[0].Shape
	if rank != 2 && rank != 3 || !slices.Equal(th, []int{size[0], rank, rank + 1}) {
		return fmt.Errorf("theta %s for size %v", tensor.FormatShape(th), size)
	}
	shape := append([]int{size[0]}, size[2:]...)
	return c.Result(c.In[0].Type, append(shape, rank))
}

func prepareAffineGrid[T tensor.Real](c *op.Call) (op.Run, error) {
	corners := c.Node.Attrs.Bool("align_corners", false)
	var dims []int
	var centres [3][]float64 // of the pixels along each axis, the innermost first
	var theta, y []T
	lines := func(lo, hi int) {
		rank, height, width := len(dims), dims[len(dims)-2], dims[len(dims)-1]
		depth := 1
		if rank == 3 {
			depth = dims[0]
		}
		for l := lo; l < hi; l++ {
			m := theta[l/(depth*height)*rank*(rank+1):]
			for r := range rank {
				row := m[r*(rank+1):][:rank+1]
				begin, first, second, third := float64(row[rank]), float64(row[0]), float64(row[1])*centres[1][l%height], 0.0
				if rank == 3 {
					third = float64(row[2]) * centres[2][l/height%depth]
				}
				out := y[l*width*rank+r:]
				for i, x := range centres[0] {
					v := begin + first*x + second
					if rank == 3 {
						v += third
					}
					out[i*rank] = T(v)
				}
			}
		}
	}
	return func(c *op.Call) error {
		shape := c.Out[0].Shape
		if now := shape[1 : len(shape)-1]; !slices.Equal(now, dims) {
			dims = slices.Clone(now)
			for k := range dims {
				n := dims[len(dims)-1-k]
				centres[k] = make([]float64, n)
				for i := range centres[k] {
					centres[k][i] = gridCoordinate(i, n, corners)
				}
			}
		}
		theta, y = tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		if len(y) > 0 {
			c.Pool.For(shape[0]*tensor.Elements(dims[:len(dims)-1]), max(1, 1<<12/dims[len(dims)-1]), lines)
		}
		return nil
	}, nil
}

// gridCoordinate returns the centre of pixel i of n in [-1,1].
func gridCoordinate(i, n int, corners bool) float64 {
	if corners {
		if n == 1 {
			return -1
		}
		return -1 + 2*float64(i)/float64(n-1)
	}
	return (2*float64(i)+1)/float64(n) - 1
}
