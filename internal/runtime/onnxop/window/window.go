// Package window implements the geometry of kernel windows that slide over the spatial axes of an
// ONNX tensor, for convolutions and pooling.
package window

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// MaxSpatial bounds the spatial rank of windows.
const MaxSpatial = 8

// MaxExtent bounds kernels, strides, dilations and padding, so that products of two of them
// cannot overflow.
const MaxExtent = 1 << 28

// Window is the geometry of a convolution or pooling: per spatial axis the input and output sizes
// and the position of the kernel.
type Window struct {
	In, Out, Kernel, Stride, Dilation, Begin, End []int
}

// Whole reports whether there is one window, which covers exactly the whole input.
func (w *Window) Whole() bool {
	for i, n := range w.In {
		if w.Out[i] != 1 || w.Kernel[i] != n || w.Begin[i] != 0 || w.Dilation[i] != 1 {
			return false
		}
	}
	return true
}

// New reads strides, dilations, pads and auto_pad for the given input and kernel sizes and
// computes the output sizes. ceil rounds them up as pooling's ceil_mode does.
func New(c *op.Call, in, kernel []int, ceil bool) (*Window, error) {
	w, err := ForPool(c, in, kernel, ceil)
	if err != nil {
		return nil, err
	}
	for i, n := range w.Out {
		beyond := in[i]+w.Begin[i]+w.End[i] < (kernel[i]-1)*w.Dilation[i]+1
		if in[i] > 0 && (n == 0 || beyond) {
			return nil, w.tooLarge(i)
		}
	}
	return w, nil
}

// tooLarge says that the kernel does not fit into axis i.
func (w *Window) tooLarge(i int) error {
	return fmt.Errorf("kernel of extent %d does not fit into axis of %d with padding %d+%d", (w.Kernel[i]-1)*w.Dilation[i]+1, w.In[i], w.Begin[i], w.End[i])
}

// ForPool is New without an error for a kernel that exceeds an axis by at most its stride. ONNX
// Runtime divides towards zero there: an excess smaller than the stride gives one window, which the
// axis does not fill, and an excess of the stride gives no results.
func ForPool(c *op.Call, in, kernel []int, ceil bool) (*Window, error) {
	a, n := c.Node.Attrs, len(in)
	if n == 0 || n > MaxSpatial {
		return nil, fmt.Errorf("%d spatial axes", n)
	}
	if len(kernel) != n {
		return nil, fmt.Errorf("kernel of rank %d over %d spatial axes", len(kernel), n)
	}
	w := &Window{In: in, Kernel: kernel, Out: make([]int, n), Begin: make([]int, n), End: make([]int, n)}
	var err error
	if w.Stride, err = PerAxis(a.Ints("strides"), n, "strides"); err != nil {
		return nil, err
	}
	if w.Dilation, err = PerAxis(a.Ints("dilations"), n, "dilations"); err != nil {
		return nil, err
	}
	for _, k := range kernel {
		if k < 1 || k > MaxExtent {
			return nil, fmt.Errorf("kernel size %d", k)
		}
	}
	auto := a.Str("auto_pad", "NOTSET")
	if pads := a.Ints("pads"); pads != nil && (auto == "NOTSET" || auto == "") {
		if len(pads) != 2*n {
			return nil, fmt.Errorf("%d pads for %d spatial axes", len(pads), n)
		}
		for _, p := range pads {
			if p > MaxExtent || p < -MaxExtent {
				return nil, fmt.Errorf("pads %v", pads)
			}
		}
		copy(w.Begin, pads[:n])
		copy(w.End, pads[n:])
	}
	for i := range n {
		ext := (kernel[i]-1)*w.Dilation[i] + 1
		switch auto {
		case "SAME_UPPER", "SAME_LOWER":
			w.Out[i] = (in[i] + w.Stride[i] - 1) / w.Stride[i]
			total := max((w.Out[i]-1)*w.Stride[i]+ext-in[i], 0)
			w.Begin[i] = total / 2
			if auto == "SAME_LOWER" {
				w.Begin[i] = total - total/2
			}
			w.End[i] = total - w.Begin[i]
			continue
		case "VALID", "NOTSET", "":
		default:
			return nil, fmt.Errorf("auto_pad %q", auto)
		}
		workspace := in[i] + w.Begin[i] + w.End[i] - ext
		if workspace < -w.Stride[i] {
			return nil, w.tooLarge(i)
		}
		if in[i] == 0 && workspace < 0 {
			continue // no element, no result
		}
		w.Out[i] = workspace/w.Stride[i] + 1
		if ceil && workspace > 0 && workspace%w.Stride[i] != 0 {
			// A window that would start in the end padding does not count.
			if w.Out[i]*w.Stride[i] < in[i]+w.Begin[i] {
				w.Out[i]++
			}
		}
	}
	return w, nil
}

// PerAxis checks a list attribute of positive numbers, all ones when absent.
func PerAxis(v []int, n int, name string) ([]int, error) {
	if v == nil {
		v = make([]int, n)
		element.Fill(v, 1)
	}
	if len(v) != n {
		return nil, fmt.Errorf("%d %s for %d spatial axes", len(v), name, n)
	}
	if slices.Min(v) < 1 || slices.Max(v) > MaxExtent {
		return nil, fmt.Errorf("%s %v", name, v)
	}
	return v, nil
}

// Span returns the range of kernel positions along axis i that are inside the input for output
// position o.
func (w *Window) Span(i, o int) (start, lo, hi int) {
	start = o*w.Stride[i] - w.Begin[i]
	d := w.Dilation[i]
	if start < 0 {
		lo = (-start + d - 1) / d
	}
	hi = w.Kernel[i]
	if last := w.In[i] - 1 - start; last < 0 {
		hi = 0
	} else if n := last/d + 1; n < hi {
		hi = n
	}
	return start, min(lo, hi), hi
}

// Taps walks the elements that the window at output position at sees in one plane and calls f
// with their flat positions, in row-major order.
func (w *Window) Taps(at []int, f func(pos int)) {
	var b [MaxSpatial][4]int // position, first tap, end tap, tap
	n := len(at)
	for i := range n {
		start, lo, hi := w.Span(i, at[i])
		if lo >= hi {
			return
		}
		b[i] = [4]int{start, lo, hi, lo}
	}
	last := n - 1
	for {
		pos := 0
		for i := range last {
			pos = (pos + b[i][0] + b[i][3]*w.Dilation[i]) * w.In[i+1]
		}
		for k := b[last][1]; k < b[last][2]; k++ {
			f(pos + b[last][0] + k*w.Dilation[last])
		}
		i := last - 1
		for ; i >= 0; i-- {
			if b[i][3]++; b[i][3] < b[i][2] {
				break
			}
			b[i][3] = b[i][1]
		}
		if i < 0 {
			return
		}
	}
}

// Cells counts the window's taps that count_include_pad divides by: those within the input and
// its padding, without those added by ceil_mode.
func (w *Window) Cells(at []int) int {
	n := 1
	for i, o := range at {
		start := o*w.Stride[i] - w.Begin[i]
		workspace := w.In[i] + w.End[i] - start // from the first tap to the end of the padding
		n *= min(w.Kernel[i], (workspace+w.Dilation[i]-1)/w.Dilation[i])
	}
	return max(n, 1)
}

// Way names the method of walking the window: "planes" in two dimensions, "general" in others.
func (w *Window) Way() string {
	if len(w.Out) == 2 {
		return "planes"
	}
	return "general"
}

// Points are bilinear sampling points in planes of one size: the weights of the four pixels
// around each, or of fewer at an edge.
type Points[T ~float32 | ~float64] struct {
	pos    []int32 // of pixels in a plane, four a point
	weight []T
	n      int
	edges  []edge
}

// edge is a point with fewer than four pixels.
type edge struct{ point, pixels int }

// NewPoints allocates the given number of points.
func NewPoints[T ~float32 | ~float64](points int) *Points[T] {
	return &Points[T]{pos: make([]int32, points*4), weight: make([]T, points*4), edges: make([]edge, 0, points)}
}

// Reset removes all points.
func (p *Points[T]) Reset() { p.n, p.edges = 0, p.edges[:0] }

// Len returns the number of points.
func (p *Points[T]) Len() int { return p.n }

// Next adds a point and returns the slices for its pixels and their weights.
func (p *Points[T]) Next() (pos []int32, weight []T) {
	from := p.n * 4
	p.n++
	return p.pos[from:][:4:4], p.weight[from:][:4:4]
}

// Fewer says that the last point has only the first pixels.
func (p *Points[T]) Fewer(pixels int) {
	from := (p.n - 1) * 4
	clear(p.pos[from+pixels:][:4-pixels])
	p.edges = append(p.edges, edge{p.n - 1, pixels})
}

// Sample writes the points of a plane.
func (p *Points[T]) Sample(dst, plane []T) {
	dst = dst[:p.n]
	if len(plane) == 0 {
		clear(dst)
		return
	}
	pos, weight := p.pos[:len(dst)*4], p.weight[:len(dst)*4]
	for i := range dst {
		q, w := pos[:4:4], weight[:4:4]
		dst[i] = w[0]*plane[q[0]] + w[1]*plane[q[1]] + w[2]*plane[q[2]] + w[3]*plane[q[3]]
		pos, weight = pos[4:], weight[4:]
	}
	for _, e := range p.edges {
		from := e.point * 4
		var sum T
		for j, q := range p.pos[from:][:e.pixels] {
			sum += p.weight[from+j] * plane[q]
		}
		dst[e.point] = sum
	}
}
