package inputuse

import "slices"

// liteRequirements is onnxRequirements for TFLite.
var liteRequirements = map[string]func(*call){
	"RESHAPE":                 func(c *call) { c.reshaped(1) },
	"BROADCAST_TO":            func(c *call) { c.requireShape(1, c.shape(0)) },
	"FILL":                    func(c *call) { c.requireShape(0, nil) },
	"RANDOM_UNIFORM":          func(c *call) { c.requireShape(0, nil) },
	"RANDOM_STANDARD_NORMAL":  func(c *call) { c.requireShape(0, nil) },
	"TRANSPOSE_CONV":          func(c *call) { c.transposeConvShape(2) },
	"CONV_3D_TRANSPOSE":       func(c *call) { c.transposeConvShape(3) },
	"RESIZE_BILINEAR":         (*call).resized,
	"RESIZE_NEAREST_NEIGHBOR": (*call).resized,
	"TILE":                    func(c *call) { c.repeats(1) },
	"SLICE":                   func(c *call) { c.window(1, 2, -1, -1, true) },
	"STRIDED_SLICE":           func(c *call) { c.strided() },
	"PAD":                     func(c *call) { c.pads(true) },
	"PADV2":                   func(c *call) { c.pads(true) },
	"MIRROR_PAD":              func(c *call) { c.pads(true) },
	"RANGE":                   (*call).span,
	"TRANSPOSE":               func(c *call) { c.axes(1) },
	"EXPAND_DIMS":             func(c *call) { c.axes(1) },
	"ARG_MAX":                 func(c *call) { c.axes(1) },
	"ARG_MIN":                 func(c *call) { c.axes(1) },
	"CUMSUM":                  func(c *call) { c.axes(1) },
	"REVERSE_V2":              func(c *call) { c.axes(1) },
	"SUM":                     func(c *call) { c.axes(1) },
	"MEAN":                    func(c *call) { c.axes(1) },
	"REDUCE_MAX":              func(c *call) { c.axes(1) },
	"REDUCE_MIN":              func(c *call) { c.axes(1) },
	"REDUCE_PROD":             func(c *call) { c.axes(1) },
	"REDUCE_ANY":              func(c *call) { c.axes(1) },
	"REDUCE_ALL":              func(c *call) { c.axes(1) },
	"TOPK_V2":                 func(c *call) { c.topK(1, -1) },
	"ONE_HOT":                 (*call).oneHot,
	"SPLIT":                   func(c *call) { c.splitAxis(0, 1) },
	"SPLIT_V":                 func(c *call) { c.split(); c.splitAxis(2, 0) },
	"GATHER":                  func(c *call) { c.indexes(1, 0, c.n.Attrs.Int("axis", 0)) },
	"EMBEDDING_LOOKUP":        func(c *call) { c.indexes(0, 1, 0) },
	"GATHER_ND":               func(c *call) { c.tuples(1, c.shape(0)) },
	"SCATTER_ND":              (*call).scattered,
	"SPARSE_TO_DENSE":         func(c *call) { c.requireShape(1, nil); c.zeros(0, Indices) },
	"REVERSE_SEQUENCE":        func(c *call) { c.wholeAxis(1, 0, c.n.Attrs.Int("seq_dim", 0)) },
	"SEGMENT_SUM":             func(c *call) { c.zeros(1, Indices) },
	"SPACE_TO_BATCH_ND":       func(c *call) { c.fill(1, Bounds, 1); c.zeros(2, Paddings) },
	"BATCH_TO_SPACE_ND":       func(c *call) { c.fill(1, Bounds, 1); c.zeros(2, Bounds) },
	"MULTINOMIAL":             func(c *call) { c.fill(1, Count, 1) },
	"EQUAL":                   (*call).equal,
	"LESS":                    (*call).shorter,
	"GREATER":                 (*call).equal,
	"SUB":                     (*call).invertedMask,
}

// transposeConvShape requires the output shape of a transposed convolution with the given number
// of spatial axes: the declared one if it is consistent with input, strides and padding.
func (c *call) transposeConvShape(space int) {
	w, x, to := c.shape(1), c.shape(2), c.result(0)
	if len(w) != space+2 || len(x) != space+2 || c.length(0) != space+2 {
		return
	}
	names := []string{"stride_d", "stride_h", "stride_w"}[3-space:]
	kernel, out := w[1:1+space], w[0]
	if space == 3 { // depth, height, width, output, input
		kernel, out = w[:3], w[3]
	}
	same := c.n.Attrs.Str("padding", "SAME") == "SAME"
	all := []int{x[0]}
	for i, name := range names {
		stride := max(1, c.n.Attrs.Int(name, 1))
		d := (x[1+i]-1)*stride + kernel[i]
		if same {
			d = x[1+i] * stride
		}
		if len(to) == space+2 && forward(to[1+i], kernel[i], stride, same) == x[1+i] {
			d = to[1+i]
		}
		all = append(all, d)
	}
	c.values(0, Shape, append(all, out))
}

// forward returns the output size of a convolution for one input dimension.
func forward(d, kernel, stride int, same bool) int {
	if same {
		return (d + stride - 1) / stride
	}
	return (d - kernel + stride) / stride
}

// resized requires height and width.
func (c *call) resized() {
	for _, s := range [][]int{c.result(0), c.shape(0)} {
		if len(s) == 4 {
			c.values(1, Shape, s[1:3])
			return
		}
	}
}

// strided requires the whole of the axes that are not masked.
func (c *call) strided() {
	s, n := c.shape(0), c.length(1)
	if n < 0 || n > len(s) || c.n.Attrs.Int("new_axis_mask", 0) != 0 || c.n.Attrs.Int("ellipsis_mask", 0) != 0 {
		return
	}
	begin, end := make([]int, n), slices.Clone(s[:n])
	shrink := c.n.Attrs.Int("shrink_axis_mask", 0)
	at, known := c.constant(1)
	for i := range begin {
		if known && len(at) == n {
			begin[i] = at[i]
		}
		if shrink>>i&1 != 0 {
			end[i] = begin[i] + 1
		}
	}
	c.values(1, Bounds, begin)
	c.values(2, Bounds, end)
	c.fill(3, Bounds, 1)
}

// scattered requires the shape of the result and indices into it.
func (c *call) scattered() {
	c.requireShape(2, nil)
	to := c.result(0)
	if at, ok := c.constant(2); ok {
		to = at
	}
	if to == nil {
		c.zeros(0, Indices) // the requested shape has that element
		return
	}
	c.tuples(0, to)
}
