package nn

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/op"
)

// window is one axis of a convolution or pooling.
type window struct {
	in, out       int
	k, stride     int
	dil, pad, end int // pad before, end after
}

func newWindow(padding string, in, k, stride, dil int) (window, error) {
	if k < 1 || stride < 1 || dil < 1 || in < 0 {
		return window{}, fmt.Errorf("filter %d, stride %d, dilation %d over %d", k, stride, dil, in)
	}
	if k > 1<<24 || dil > 1<<24 || stride > 1<<30 {
		return window{}, fmt.Errorf("filter %d, dilation %d are too large", k, dil)
	}
	w := window{in: in, k: k, stride: stride, dil: dil}
	eff := (k-1)*dil + 1
	switch padding {
	case "SAME", "":
		w.out = (in + stride - 1) / stride
	case "VALID":
		w.out = (in + stride - eff) / stride
		if in+stride-eff < 0 {
			w.out = 0
		}
	default:
		return window{}, op.Unsupported("padding %s", padding)
	}
	total := max(0, (w.out-1)*stride+eff-in)
	w.pad, w.end = total/2, total-total/2
	return w, nil
}

// taps returns the range of filter positions that lie inside the input for
// output position o.
func (w window) taps(o int) (start, lo, hi int) {
	start = o*w.stride - w.pad
	if start < 0 {
		lo = (-start + w.dil - 1) / w.dil
	}
	hi = w.k
	if last := start + (w.k-1)*w.dil; last >= w.in {
		hi = (w.in - start + w.dil - 1) / w.dil
	}
	return start, min(lo, w.k), max(hi, min(lo, w.k))
}

// plane holds both windows of a two-dimensional operator over NHWC.
type plane struct {
	n, c int // batch, input channels
	y, x window
}

func newPlane(c *op.Call, shape []int, kh, kw int) (plane, error) {
	if len(shape) != 4 {
		return plane{}, fmt.Errorf("input has rank %d, want 4", len(shape))
	}
	a := c.Node.Attrs
	p := plane{n: shape[0], c: shape[3]}
	var err error
	pad := a.Str("padding", "SAME")
	if p.y, err = newWindow(pad, shape[1], kh, a.Int("stride_h", 1), a.Int("dilation_h_factor", 1)); err != nil {
		return p, err
	}
	p.x, err = newWindow(pad, shape[2], kw, a.Int("stride_w", 1), a.Int("dilation_w_factor", 1))
	return p, err
}
