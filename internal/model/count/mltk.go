package count

// mltk counts like the profiler of the Silicon Labs MLTK, defects included: the batch is ignored,
// softmax uses the wrong dimension above rank 2, the bias of a transposed convolution is taken
// for a size derived from its input, and unknown operators have no work.
func mltk(c *call) (ops, macs *int64) {
	o, m := c.mltk()
	if c.bad {
		return nil, nil
	}
	return &o, &m
}

func (c *call) mltk() (ops, macs int64) {
	act := func(n int64) int64 {
		switch c.n.Attrs.Str("fused_activation_function", "NONE") {
		case "RELU", "RELU6", "RELU_N1_TO_1":
			return 2 * n
		}
		return 0
	}
	switch c.n.Op {
	case "FULLY_CONNECTED":
		depth := c.dim(c.out(0), -1)
		macs = c.mul(depth, c.dim(c.in(1), -1))
		return 2*macs + c.biased(2, depth) + act(depth), macs
	case "CONV_2D":
		x, w, y := c.in(0), c.in(1), c.out(0)
		out := c.mul(c.dim(y, 1), c.dim(y, 2), c.dim(y, 3))
		macs = c.mul(c.dim(w, 1), c.dim(w, 2), c.dim(x, 3), out)
		return 2*macs + c.biased(2, out) + act(out), macs
	case "DEPTHWISE_CONV_2D":
		x, w, y := c.in(0), c.in(1), c.out(0)
		area := c.mul(c.dim(y, 1), c.dim(y, 2))
		channels := c.mul(c.dim(x, 3), c.attr("depth_multiplier", 1))
		macs = c.mul(c.dim(w, 1), c.dim(w, 2), channels, area)
		return 2*macs + c.biased(2, c.mul(channels, area)) + act(c.mul(area, c.dim(y, 3))), macs
	case "TRANSPOSE_CONV":
		x, w, y := c.in(2), c.in(1), c.out(0)
		kh, kw := c.dim(w, 1), c.dim(w, 2)
		macs = c.mul(kh, kw, c.dim(y, 3), c.dim(x, 1), c.dim(x, 2), c.dim(x, 3))
		h := c.padded(c.dim(x, 1), kh, c.attr("stride_h", 1))
		w2 := c.padded(c.dim(x, 2), kw, c.attr("stride_w", 1))
		return 2*macs + c.biased(3, c.mul(h, w2, c.dim(y, 3))), macs
	case "MAX_POOL_2D", "AVERAGE_POOL_2D":
		y := c.out(0)
		out := c.mul(c.dim(y, 1), c.dim(y, 2), c.dim(y, 3))
		taps := c.mul(c.attr("filter_height", 1), c.attr("filter_width", 1))
		if c.n.Op == "AVERAGE_POOL_2D" {
			taps++
		}
		return c.mul(out, taps) + act(out), 0
	case "SOFTMAX":
		x := c.in(0)
		k := 0
		if len(x) == 2 {
			k = 1
		}
		return 5 * c.dim(x, k), 0
	case "ADD":
		return c.nin(0), 0
	case "MUL":
		return c.nout(0), 0
	case "QUANTIZE":
		return 4 * c.nin(0), 0
	case "DEQUANTIZE", "RELU", "RELU6":
		return 2 * c.nin(0), 0
	case "PAD":
		return 6 * c.nout(0), 0
	case "RESIZE_NEAREST_NEIGHBOR":
		y := c.out(0)
		return c.mul(c.dim(y, 1), 8+8*c.dim(y, 2)), 0
	}
	return 0, 0
}

// padded is TFLite's output size of a strided window.
func (c *call) padded(in, kernel, stride int64) int64 {
	if stride <= 0 {
		c.bad = true
		return 0
	}
	if c.n.Attrs.Str("padding", "SAME") == "VALID" {
		return max(0, (in-kernel+stride)/stride)
	}
	return (in + stride - 1) / stride
}
