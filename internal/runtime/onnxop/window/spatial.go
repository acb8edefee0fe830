package window

import (
	"fmt"
	"slices"

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
		if workspace < 0 {
			return nil, fmt.Errorf("kernel of extent %d does not fit into axis of %d with padding %d+%d", ext, in[i], w.Begin[i], w.End[i])
		}
		w.Out[i] = workspace/w.Stride[i] + 1
		if ceil && workspace%w.Stride[i] != 0 {
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
		for i := range v {
			v[i] = 1
		}
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
