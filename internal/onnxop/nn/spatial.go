package nn

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/op"
)

// maxSpatial bounds the spatial rank of windows.
const maxSpatial = 8

// maxExtent bounds kernels, strides, dilations and padding, so that products of
// two of them cannot overflow.
const maxExtent = 1 << 28

// window is the geometry of a convolution or pooling: per spatial axis the
// input and output sizes and where the kernel is put.
type window struct {
	in, out, kernel, stride, dilation, begin, end []int
}

// newWindow reads strides, dilations, pads and auto_pad for the given input
// and kernel sizes and computes the output sizes. ceil rounds them up as
// pooling's ceil_mode does.
func newWindow(c *op.Call, in, kernel []int, ceil bool) (*window, error) {
	a, n := c.Node.Attrs, len(in)
	if n == 0 || n > maxSpatial {
		return nil, fmt.Errorf("%d spatial axes", n)
	}
	if len(kernel) != n {
		return nil, fmt.Errorf("kernel of rank %d over %d spatial axes", len(kernel), n)
	}
	w := &window{in: in, kernel: kernel, out: make([]int, n), begin: make([]int, n), end: make([]int, n)}
	var err error
	if w.stride, err = perAxis(a.Ints("strides"), n, "strides"); err != nil {
		return nil, err
	}
	if w.dilation, err = perAxis(a.Ints("dilations"), n, "dilations"); err != nil {
		return nil, err
	}
	for _, k := range kernel {
		if k < 1 || k > maxExtent {
			return nil, fmt.Errorf("kernel size %d", k)
		}
	}
	auto := a.Str("auto_pad", "NOTSET")
	if pads := a.Ints("pads"); pads != nil && (auto == "NOTSET" || auto == "") {
		if len(pads) != 2*n {
			return nil, fmt.Errorf("%d pads for %d spatial axes", len(pads), n)
		}
		for _, p := range pads {
			if p > maxExtent || p < -maxExtent {
				return nil, fmt.Errorf("pads %v", pads)
			}
		}
		copy(w.begin, pads[:n])
		copy(w.end, pads[n:])
	}
	for i := range n {
		ext := (kernel[i]-1)*w.dilation[i] + 1
		switch auto {
		case "SAME_UPPER", "SAME_LOWER":
			w.out[i] = (in[i] + w.stride[i] - 1) / w.stride[i]
			total := max((w.out[i]-1)*w.stride[i]+ext-in[i], 0)
			w.begin[i] = total / 2
			if auto == "SAME_LOWER" {
				w.begin[i] = total - total/2
			}
			w.end[i] = total - w.begin[i]
			continue
		case "VALID", "NOTSET", "":
		default:
			return nil, fmt.Errorf("auto_pad %q", auto)
		}
		room := in[i] + w.begin[i] + w.end[i] - ext
		if room < 0 {
			return nil, fmt.Errorf("kernel of extent %d does not fit into axis of %d with padding %d+%d", ext, in[i], w.begin[i], w.end[i])
		}
		w.out[i] = room/w.stride[i] + 1
		if ceil && room%w.stride[i] != 0 {
			// A window that would start in the end padding does not count.
			if w.out[i]*w.stride[i] < in[i]+w.begin[i] {
				w.out[i]++
			}
		}
	}
	return w, nil
}

// perAxis checks a list attribute of positive numbers, all ones when absent.
func perAxis(v []int, n int, name string) ([]int, error) {
	if v == nil {
		v = make([]int, n)
		for i := range v {
			v[i] = 1
		}
	}
	if len(v) != n {
		return nil, fmt.Errorf("%d %s for %d spatial axes", len(v), name, n)
	}
	if slices.Min(v) < 1 || slices.Max(v) > maxExtent {
		return nil, fmt.Errorf("%s %v", name, v)
	}
	return v, nil
}

// product multiplies sizes.
func product(v []int) int {
	n := 1
	for _, d := range v {
		n *= d
	}
	return n
}

// next advances a multi-index in row-major order; false after the last one.
func next(at, size []int) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < size[i] {
			return true
		}
		at[i] = 0
	}
	return false
}

// unravel writes the multi-index of a flat row-major position.
func unravel(pos int, size, at []int) {
	for i := len(size) - 1; i >= 0; i-- {
		at[i] = pos % size[i]
		pos /= size[i]
	}
}

// span is the range of kernel positions along axis i that fall inside the
// input for output position o.
func (w *window) span(i, o int) (start, lo, hi int) {
	start = o*w.stride[i] - w.begin[i]
	d := w.dilation[i]
	if start < 0 {
		lo = (-start + d - 1) / d
	}
	hi = w.kernel[i]
	if last := w.in[i] - 1 - start; last < 0 {
		hi = 0
	} else if n := last/d + 1; n < hi {
		hi = n
	}
	return start, min(lo, hi), hi
}
