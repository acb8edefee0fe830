package count

import "github.com/opmeter/opmeter/internal/model/graph"

// axis is one spatial axis of a convolution.
type axis struct {
	in, out, kernel, stride, dilation, before int64
}

// inside counts the pairs of output position and tap that read the input rather than padding.
func (a axis) inside() int64 {
	n := int64(0)
	for k := range a.kernel {
		// Output o reads o*stride + k*dilation - before, which must be in [0, in).
		shift := k*a.dilation - a.before
		lo, hi := int64(0), a.out-1
		if shift < 0 {
			lo = (-shift + a.stride - 1) / a.stride
		}
		if last := a.in - 1 - shift; last < 0 {
			hi = -1
		} else {
			hi = min(hi, last/a.stride)
		}
		n += max(0, hi-lo+1)
	}
	return n
}

// executed is the number of multiply-accumulates without padding taps. per is the cost of each
// pair of output position and tap, over all axes.
func (c *call) executed(axes []axis, per ...int64) int64 {
	for _, a := range axes {
		if a.stride <= 0 || a.dilation <= 0 || a.kernel > 1<<20 {
			c.bad = true
			return 0
		}
		per = append(per, a.inside())
	}
	return c.mul(per...)
}

// same returns the padding before an axis for TFLite's SAME and ONNX's SAME_UPPER.
func same(in, out, kernel, stride, dilation int64) int64 {
	return max(0, (out-1)*stride+(kernel-1)*dilation+1-in) / 2
}

// liteAxes describes the two spatial axes of a TFLite operator with input x,
// output y (both NHWC) and kernel kh x kw.
func (c *call) liteAxes(x, y []int, kh, kw int64) []axis {
	if !c.rank(x, 4) || !c.rank(y, 4) {
		return nil
	}
	axes := []axis{
		{in: int64(x[1]), out: int64(y[1]), kernel: kh, stride: c.attr("stride_h", 1), dilation: max(1, c.attr("dilation_h_factor", 1))},
		{in: int64(x[2]), out: int64(y[2]), kernel: kw, stride: c.attr("stride_w", 1), dilation: max(1, c.attr("dilation_w_factor", 1))},
	}
	for i := range axes {
		a := &axes[i]
		if c.n.Attrs.Str("padding", "SAME") == "SAME" {
			a.before = same(a.in, a.out, a.kernel, a.stride, a.dilation)
		}
	}
	return axes
}

// fused is the cost of TFLite's fused activation for n elements.
func (c *call) fused(n int64) int64 {
	switch c.n.Attrs.Str("fused_activation_function", "NONE") {
	case "RELU", "TANH", "SIGN_BIT":
		return n
	case "RELU6", "RELU_N1_TO_1":
		return 2 * n
	}
	return 0
}

func (c *call) liteConv() amount {
	x, w, y := c.in(0), c.in(1), c.out(0)
	if !c.rank(w, 4) {
		return amount{}
	}
	n := c.nout(0)
	kh, kw, depth := int64(w[1]), int64(w[2]), int64(w[3])
	macs := c.mul(n, kh, kw, depth)
	exec := c.executed(c.liteAxes(x, y, kh, kw), c.dim(y, 0), c.dim(y, 3), depth)
	return product(macs, exec, c.biased(2, n)+c.fused(n))
}

func (c *call) liteDepthwise() amount {
	x, w, y := c.in(0), c.in(1), c.out(0)
	if !c.rank(w, 4) {
		return amount{}
	}
	n := c.nout(0)
	kh, kw := int64(w[1]), int64(w[2])
	macs := c.mul(n, kh, kw)
	exec := c.executed(c.liteAxes(x, y, kh, kw), c.dim(y, 0), c.dim(y, 3))
	return product(macs, exec, c.biased(2, n)+c.fused(n))
}

// biased is one addition per element if input i is present.
func (c *call) biased(i int, n int64) int64 {
	if c.has(i) {
		return n
	}
	return 0
}

// liteTransposed counts a transposed convolution of input x with weights OHWI.
func (c *call) liteTransposed(xi, wi, bi int) amount {
	x, w, y := c.in(xi), c.in(wi), c.out(0)
	if !c.rank(w, 4) || !c.rank(x, 4) {
		return amount{}
	}
	kh, kw, oc := int64(w[1]), int64(w[2]), int64(w[0])
	n := c.nout(0)
	macs := c.mul(c.nin(xi), kh, kw, oc)
	// From the output's side, a transposed convolution is a convolution from y to x.
	axes := c.liteAxes(y, x, kh, kw)
	exec := c.executed(axes, c.dim(x, 0), c.dim(x, 3), oc)
	return product(macs, exec, c.biased(bi, n)+c.fused(n))
}

// liteConv3D has a filter of depth, height, width, input and output channels.
func (c *call) liteConv3D() amount {
	x, w, y := c.in(0), c.in(1), c.out(0)
	if !c.rank(w, 5) || !c.rank(x, 5) || !c.rank(y, 5) {
		return amount{}
	}
	n := c.nout(0)
	taps := c.mul(int64(w[0]), int64(w[1]), int64(w[2]), int64(w[3]))
	exec := c.executed(c.lite3D(x, y, w), int64(y[0]), int64(y[4]), int64(w[3]))
	return product(c.mul(n, taps), exec, c.biased(2, n)+c.fused(n))
}

func (c *call) lite3D(x, y, w []int) []axis {
	var axes []axis
	for i, l := range []string{"d", "h", "w"} {
		a := axis{in: int64(x[i+1]), out: int64(y[i+1]), kernel: int64(w[i]), stride: c.attr("stride_"+l, 1), dilation: max(1, c.attr("dilation_"+l+"_factor", 1))}
		if c.n.Attrs.Str("padding", "SAME") == "SAME" {
			a.before = same(a.in, a.out, a.kernel, a.stride, a.dilation)
		}
		axes = append(axes, a)
	}
	return axes
}

// liteTransposed3D has inputs output_shape, filter (D, H, W, output, input
// channels), input and bias.
func (c *call) liteTransposed3D() amount {
	w, x, y := c.in(1), c.in(2), c.out(0)
	if !c.rank(w, 5) || !c.rank(x, 5) || !c.rank(y, 5) {
		return amount{}
	}
	n := c.nout(0)
	macs := c.mul(c.nin(2), int64(w[0]), int64(w[1]), int64(w[2]), int64(w[3]))
	exec := c.executed(c.lite3D(y, x, w), int64(x[0]), int64(x[4]), int64(w[3]))
	return product(macs, exec, c.biased(3, n)+c.fused(n))
}

// onnxAxes describes the spatial axes of an ONNX operator from x to y (both N, C,
// spatial) with a kernel of the given size.
func (c *call) onnxAxes(x, y []int, kernel []int64) []axis {
	d := len(kernel)
	if !c.rank(x, d+2) || !c.rank(y, d+2) {
		return nil
	}
	at := func(name string, i int, def int64) int64 {
		v := c.n.Attrs.Ints(name)
		if i < len(v) {
			return int64(v[i])
		}
		return def
	}
	var axes []axis
	for i := range d {
		a := axis{in: int64(x[i+2]), out: int64(y[i+2]), kernel: kernel[i], stride: at("strides", i, 1), dilation: at("dilations", i, 1)}
		total := max(0, (a.out-1)*a.stride+(a.kernel-1)*a.dilation+1-a.in)
		switch c.n.Attrs.Str("auto_pad", "NOTSET") {
		case "SAME_UPPER":
			a.before = total / 2
		case "SAME_LOWER":
			a.before = (total + 1) / 2
		case "VALID":
		default:
			a.before = at("pads", i, 0)
		}
		axes = append(axes, a)
	}
	return axes
}

// onnxConv counts a convolution with weights M, C/group, kernel at input wi.
func (c *call) onnxConv(wi, bi int, extra int64) amount {
	x, w, y := c.in(0), c.in(wi), c.out(0)
	if !c.rank(w, 3) {
		return amount{}
	}
	n := c.nout(0)
	kernel := wide(w[2:])
	depth := int64(w[1])
	macs := c.mul(append(kernel, n, depth)...)
	exec := c.executed(c.onnxAxes(x, y, kernel), c.dim(y, 0), c.dim(y, 1), depth)
	return product(macs, exec, c.biased(bi, n)+c.mul(extra, n)+c.msActivation(n))
}

// msActivation is the cost of the activation of a fused operator.
func (c *call) msActivation(n int64) int64 {
	if c.n.Domain != graph.Microsoft {
		return 0
	}
	switch c.n.Attrs.Str("activation", "") {
	case "Relu", "Tanh":
		return n
	case "LeakyRelu", "Clip":
		return 2 * n
	case "Sigmoid", "HardSigmoid":
		return 4 * n
	case "":
		return 0
	}
	c.bad = true
	return 0
}

// onnxTransposed counts a transposed convolution with weights C, M/group, kernel.
func (c *call) onnxTransposed() amount { return c.transposed(1, 2, 0) }

// transposed is onnxTransposed with other weight and bias inputs, and each operations per output
// element.
func (c *call) transposed(weights, bias int, each int64) amount {
	x, w, y := c.in(0), c.in(weights), c.out(0)
	if !c.rank(w, 3) {
		return amount{}
	}
	n := c.nout(0)
	kernel := wide(w[2:])
	per := int64(w[1])
	macs := c.mul(append(kernel, c.nin(0), per)...)
	axes := c.onnxAxes(y, x, kernel)
	exec := c.executed(axes, c.dim(x, 0), c.dim(x, 1), per)
	return product(macs, exec, c.biased(bias, n)+c.mul(each, n))
}

// window is the number of taps of a pooling operator.
func (c *call) window() int64 {
	k := c.n.Attrs.Ints("kernel_shape")
	if len(k) == 0 {
		c.bad = true
	}
	return c.mul(wide(k)...)
}

// litePool is perTap operations per tap of every output, and perOutput more per output.
func (c *call) litePool(perTap, perOutput int64) amount {
	n := c.nout(0)
	taps := c.mul(c.attr("filter_height", 0), c.attr("filter_width", 0))
	if taps == 0 {
		c.bad = true
	}
	return opsOnly(c.mul(n, perTap, taps) + perOutput*n + c.fused(n))
}

func (c *call) onnxPool(perTap, perOutput int64) amount {
	n := c.nout(0)
	return opsOnly(c.mul(n, perTap, c.window()) + perOutput*n)
}
