package inputuse

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// require records what a node itself requires of its inputs.
func (c *call) require() {
	ask := onnxRequirements[c.n.Op]
	switch c.n.Domain {
	case graph.ONNX, graph.ONNXTraining:
	case graph.ONNXML:
		if c.n.Op == "ArrayFeatureExtractor" {
			c.indexes(1, 0, -1)
		}
		return
	case graph.Microsoft:
		if d := microsoftRequirements[c.n.Op]; d != nil {
			ask = d
		}
	case graph.TFLite, graph.TFLiteCustom:
		ask = liteRequirements[c.n.Op]
	default:
		return
	}
	if ask != nil {
		ask(c)
	}
}

// requireShape requires the shape of the node's output: the declared one, or else the shape or.
func (c *call) requireShape(k int, or []int) {
	n := c.length(k)
	for _, s := range [][]int{c.result(0), or} {
		if s != nil && len(s) == n {
			c.values(k, Shape, s)
			return
		}
	}
	if n >= 0 && n <= maxConstant {
		c.values(k, Shape, slices.Repeat([]int{anything}, n))
	}
}

// reshaped requires a shape with as many elements as input 0 has.
func (c *call) reshaped(k int) {
	n, have, to := c.length(k), c.length(0), c.result(0)
	s := c.shape(0)
	switch {
	case have < 0 || n < 0:
		return
	case to != nil && len(to) == n && product(to) == have:
		c.values(k, Shape, to)
	case len(s) == n:
		c.values(k, Shape, s)
	case n > 0 && n <= maxConstant:
		to = slices.Repeat([]int{1}, n)
		to[n-1] = have
		// Keep the existing dimensions as far as possible.
		for i := 0; i < n-1 && i < len(s) && s[i] > 0; i++ {
			to[i], to[n-1] = s[i], to[n-1]/s[i]
		}
		c.values(k, Shape, to)
	}
}

// axes requires axes of input 0: the first ones, as many as input k has elements.
func (c *call) axes(k int) { c.axesOf(k, len(c.shape(0))) }

func (c *call) axesOf(k, rank int) {
	n := c.length(k)
	if n < 0 || n > max(rank, 1) {
		return
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	c.values(k, Axes, all)
}

// zeros requires zeros.
func (c *call) zeros(k int, kind Kind) { c.fill(k, kind, 0) }

// indexes requires indices along an axis of input table.
func (c *call) indexes(k, table, axis int) {
	s := c.shape(table)
	if axis < 0 {
		axis += len(s)
	}
	if axis >= 0 && axis < len(s) {
		c.below(k, Indices, s[axis])
	}
}

// tuples requires index tuples, in the last dimension, into the first axes of a shape.
func (c *call) tuples(k int, table []int) {
	s := c.shape(k)
	if len(s) == 0 || len(table) == 0 {
		return
	}
	if n := s[len(s)-1]; n > 0 && n <= len(table) {
		c.below(k, Indices, slices.Min(table[:n]))
	}
}

// gatheredTuples requires index tuples into the axes of input 0 after the batch dimensions.
func (c *call) gatheredTuples() {
	if s, batch := c.shape(0), c.n.Attrs.Int("batch_dims", 0); batch >= 0 && batch <= len(s) {
		c.tuples(1, s[batch:])
	}
}

// wholeAxis requires the length of an axis.
func (c *call) wholeAxis(k, of, axis int) {
	if s := c.shape(of); axis >= 0 && axis < len(s) {
		c.fill(k, Length, s[axis])
	}
}

// window requires a slice of input 0 that is all of it, or that has the shape of the result.
func (c *call) window(begin, end, axes, steps int, sizes bool) {
	s := c.shape(0)
	if n := c.length(axes); n >= 0 {
		c.axes(axes)
		s = s[:min(n, len(s))]
		if at, ok := c.constant(axes); ok {
			s = c.pick(c.shape(0), at)
		}
	} else if to := c.result(0); to != nil && len(to) == len(s) {
		s = to
	}
	c.zeros(begin, Bounds)
	if b, ok := c.constant(begin); ok && !sizes && len(b) == len(s) {
		s = slices.Clone(s)
		for i := range s {
			s[i] += max(0, b[i])
		}
	}
	c.values(end, Bounds, s)
	c.fill(steps, Bounds, 1)
}

// pick lists the dimensions at some axes.
func (c *call) pick(s, at []int) []int {
	out := make([]int, 0, len(at))
	for _, i := range at {
		if i < 0 {
			i += len(s)
		}
		if i < 0 || i >= len(s) {
			return nil
		}
		out = append(out, s[i])
	}
	return out
}

// pads requires paddings: none, or at the end what the result has more.
func (c *call) pads(pairs bool) {
	s, to, n := c.shape(0), c.result(0), c.length(1)
	if s == nil || n != 2*len(s) {
		return
	}
	all := make([]int, n)
	for i := range s {
		if len(to) != len(s) || to[i] < s[i] {
			continue
		}
		if pairs {
			all[2*i+1] = to[i] - s[i]
		} else {
			all[len(s)+i] = to[i] - s[i]
		}
	}
	c.values(1, Paddings, all)
}

// repeats requires how often input 0 is repeated along each axis.
func (c *call) repeats(k int) {
	s, to := c.shape(0), c.result(0)
	if c.length(k) != len(s) {
		return
	}
	all := slices.Repeat([]int{1}, len(s))
	for i := range all {
		if len(to) == len(s) && s[i] > 0 && to[i]%s[i] == 0 {
			all[i] = to[i] / s[i]
		}
	}
	c.values(k, Count, all)
}

// span requires a range that is as long as its result.
func (c *call) span() {
	n := 10
	if s := c.result(0); len(s) == 1 && s[0] > 0 {
		n = s[0]
	}
	start, step := 0, 1
	if v, ok := c.number(0); ok {
		start = int(v)
	}
	if v, ok := c.number(2); ok && v != 0 {
		step = int(v)
	}
	c.fill(0, Bounds, start)
	c.fill(1, Bounds, start+n*step)
	c.fill(2, Bounds, step)
}

// topK requires the number of top elements along an axis.
func (c *call) topK(k, axis int) {
	s, to := c.shape(0), c.result(0)
	if axis < 0 {
		axis += len(s)
	}
	if axis < 0 || axis >= len(s) {
		return
	}
	n := min(1, s[axis])
	if axis < len(to) && to[axis] <= s[axis] {
		n = to[axis]
	}
	c.fill(k, Count, n)
}

// equal requires a constant that a single number is compared with, and non-zero positions if
// there are many.
func (c *call) equal() {
	for k := range min(2, len(c.n.Inputs)) {
		v := c.in(k)
		if v == nil || c.fixed(k) != nil || !v.Type.IsInteger() {
			continue
		}
		s := c.shape(k)
		if x, ok := c.constant(1 - k); ok && len(x) == 1 && s != nil {
			if len(s) <= 1 && product(s) == 1 {
				c.fill(k, Choice, x[0])
			} else if x[0] == 0 {
				c.fill(k, Mask, 1)
			}
		}
	}
}

// shorter requires that lengths that positions are compared with cover all positions.
func (c *call) shorter() {
	s, n, v := c.shape(0), c.shape(1), c.in(1)
	if v == nil || !v.Type.IsInteger() || len(s) == 0 || n == nil || s[len(s)-1] < 2 || len(n) > 0 && n[len(n)-1] != 1 {
		return
	}
	c.fill(1, Length, s[len(s)-1])
}

// masks requires ones.
func (c *call) masks(k int) { c.fill(k, Mask, 1) }

// choose requires that a condition derived from integers is true.
func (c *call) choose() { c.masks(0) }

// invertedMask requires a mask if it is subtracted from one.
func (c *call) invertedMask() {
	if one, ok := c.number(0); ok && one == 1 {
		c.masks(1)
	}
}

// onnxRequirements maps an operator to what it requires of its inputs.
var onnxRequirements = map[string]func(*call){
	"Reshape":                   func(c *call) { c.reshaped(1) },
	"Expand":                    func(c *call) { c.requireShape(1, c.shape(0)) },
	"ConstantOfShape":           func(c *call) { c.requireShape(0, nil) },
	"Tile":                      func(c *call) { c.repeats(1) },
	"Resize":                    func(c *call) { c.requireShape(3, c.shape(0)) },
	"AffineGrid":                func(c *call) { c.requireShape(1, nil) },
	"CenterCropPad":             func(c *call) { c.requireShape(1, c.shape(0)) },
	"Slice":                     func(c *call) { c.window(1, 2, 3, 4, false) },
	"Pad":                       func(c *call) { c.pads(false); c.axes(3) },
	"Range":                     (*call).span,
	"Unsqueeze":                 func(c *call) { c.axesOf(1, len(c.shape(0))+max(0, c.length(1))) },
	"Squeeze":                   func(c *call) { c.squeezed(1) },
	"CumSum":                    func(c *call) { c.axes(1) },
	"CumProd":                   func(c *call) { c.axes(1) },
	"DFT":                       (*call).transformed,
	"Col2Im":                    (*call).unfolded,
	"MaxUnpool":                 func(c *call) { c.below(1, Indices, c.length(0)) },
	"SplitToSequence":           (*call).split,
	"NegativeLogLikelihoodLoss": func(c *call) { c.indexes(1, 0, 1) },
	"SoftmaxCrossEntropyLoss":   func(c *call) { c.indexes(1, 0, 1) },
	"TopK":                      func(c *call) { c.topK(1, c.n.Attrs.Int("axis", -1)) },
	"OneHot":                    (*call).oneHot,
	"Split":                     (*call).split,
	"Gather":                    func(c *call) { c.indexes(1, 0, c.n.Attrs.Int("axis", 0)) },
	"GatherElements":            func(c *call) { c.indexes(1, 0, c.n.Attrs.Int("axis", 0)) },
	"ScatterElements":           func(c *call) { c.indexes(1, 0, c.n.Attrs.Int("axis", 0)) },
	"Scatter":                   func(c *call) { c.indexes(1, 0, c.n.Attrs.Int("axis", 0)) },
	"GatherND":                  (*call).gatheredTuples,
	"ScatterND":                 func(c *call) { c.tuples(1, c.shape(0)) },
	"RoiAlign":                  func(c *call) { c.indexes(2, 0, 0) },
	"TensorScatter":             func(c *call) { c.zeros(2, Indices) },
	"ReverseSequence":           func(c *call) { c.wholeAxis(1, 0, c.n.Attrs.Int("time_axis", 0)) },
	"LSTM":                      (*call).recurrent,
	"GRU":                       (*call).recurrent,
	"RNN":                       (*call).recurrent,
	"Trilu":                     func(c *call) { c.zeros(1, Bounds) },
	"HannWindow":                func(c *call) { c.fill(0, Count, 16) },
	"HammingWindow":             func(c *call) { c.fill(0, Count, 16) },
	"BlackmanWindow":            func(c *call) { c.fill(0, Count, 16) },
	"Equal":                     (*call).equal,
	"Greater":                   (*call).equal,
	"Where":                     (*call).choose,
	"Less":                      (*call).shorter,
	"Sub":                       (*call).invertedMask,
	"ReduceSum":                 (*call).reduced, "ReduceMean": (*call).reduced, "ReduceMax": (*call).reduced, "ReduceMin": (*call).reduced, "ReduceProd": (*call).reduced,
	"ReduceL1": (*call).reduced, "ReduceL2": (*call).reduced, "ReduceLogSum": (*call).reduced, "ReduceLogSumExp": (*call).reduced, "ReduceSumSquare": (*call).reduced,
	"RotaryEmbedding": func(c *call) { c.positions(3, 1) },
	"Attention":       func(c *call) { c.wholeAxis(6, 1, 2) },
}

// microsoftRequirements is onnxRequirements for the com.microsoft domain.
var microsoftRequirements = map[string]func(*call){
	"Attention":                func(c *call) { c.masks(3) },
	"QAttention":               func(c *call) { c.masks(5) },
	"MultiHeadAttention":       func(c *call) { c.masks(4) },
	"GroupQueryAttention":      (*call).groupQuery,
	"RotaryEmbedding":          func(c *call) { c.positions(1, 2) },
	"GatherBlockQuantized":     func(c *call) { c.indexes(1, 0, c.n.Attrs.Int("gather_axis", 0)) },
	"EmbedLayerNormalization":  (*call).embeddings,
	"QEmbedLayerNormalization": (*call).embeddings,
}

// embeddings requires rows of word and segment tables.
func (c *call) embeddings() {
	c.indexes(0, 2, 0)
	c.indexes(1, 4, 0)
	c.masks(7)
}

// positions requires rows of a table of angles.
func (c *call) positions(k, table int) {
	if s := c.shape(table); len(s) > 1 {
		c.below(k, Indices, s[len(s)-2])
	}
}

// reduced requires the axes of a reduction. A single axis is the last one, the most usual case.
func (c *call) reduced() {
	s := c.shape(0)
	if c.length(1) == 1 && len(s) > 0 {
		c.values(1, Axes, []int{len(s) - 1})
		return
	}
	c.axes(1)
}

// squeezed requires axes of extent 1.
func (c *call) squeezed(k int) {
	var ones []int
	for i, d := range c.shape(0) {
		if d == 1 {
			ones = append(ones, i)
		}
	}
	if n := c.length(k); n >= 0 && n <= len(ones) {
		c.values(k, Axes, ones[:n])
	}
}

// oneHot requires as many classes as the result has, and indices among them.
func (c *call) oneHot() {
	n := 10
	if v, ok := c.number(1); ok && v >= 1 {
		n = int(v)
	} else if to := c.result(0); len(to) > 0 {
		axis := c.n.Attrs.Int("axis", -1)
		if axis < 0 {
			axis += len(to)
		}
		if axis >= 0 && axis < len(to) {
			n = to[axis]
		}
	}
	c.fill(1, Count, n)
	c.below(0, Indices, n)
}

// split requires parts whose lengths add up to the axis.
func (c *call) split() {
	s, axis := c.shape(0), c.n.Attrs.Int("axis", 0)
	if c.n.Op == "SPLIT_V" {
		if at, ok := c.constant(2); ok && len(at) == 1 {
			axis = at[0]
		}
	}
	if axis < 0 {
		axis += len(s)
	}
	n := c.length(1)
	if n < 1 || n > maxConstant || axis < 0 || axis >= len(s) {
		return
	}
	all := slices.Repeat([]int{s[axis] / n}, n)
	all[n-1] += s[axis] % n
	c.values(1, Bounds, all)
}

// splitAxis requires the first axis that is divisible by the number of parts.
func (c *call) splitAxis(k, data int) {
	parts := len(c.n.Outputs)
	for i, d := range c.shape(data) {
		if d%max(parts, 1) == 0 {
			c.fill(k, Axes, i)
			return
		}
	}
}

// recurrent requires whole sequences.
func (c *call) recurrent() { c.wholeAxis(4, 0, c.n.Attrs.Int("layout", 0)) }

// groupQuery requires the number of keys: those of the cache and the new ones. A cache with the
// same declared length before and after is a buffer that the keys fill.
func (c *call) groupQuery() {
	q, past := c.shape(0), c.shape(3)
	if len(q) != 3 {
		return
	}
	total := q[1]
	if len(past) == 4 {
		total += past[2]
		if past[2] >= q[1] && c.sharedCache(3, 1) {
			total = past[2]
		}
	}
	c.fill(5, Length, total-1) // index of the last key
	c.fill(6, Length, total)
}

// sharedCache reports whether the file declares the same length of the cache for input k and
// output o, as a size or as a name.
func (c *call) sharedCache(k, o int) bool {
	if o >= len(c.n.Outputs) || c.n.Outputs[o] < 0 {
		return false
	}
	in, out := c.in(k), c.g.Values[c.n.Outputs[o]]
	name := func(v *graph.Value) string {
		if len(v.DimNames) == 4 {
			return v.DimNames[2]
		}
		return ""
	}
	if n := name(in); n != "" && n == name(out) {
		return true
	}
	s := c.result(o)
	return len(s) == 4 && len(in.Shape) == 4 && s[2] == in.Shape[2]
}

// transformed requires the length and the axis of a Fourier transform: the whole of the last axis
// before the real and imaginary parts.
func (c *call) transformed() {
	s := c.shape(0)
	if len(s) < 2 {
		return
	}
	axis := len(s) - 2
	if at, ok := c.number(2); ok && c.in(2) != nil {
		axis = int(at)
	} else if a := c.n.Attrs.Int("axis", axis); c.in(2) == nil {
		axis = a
	}
	if axis < 0 {
		axis += len(s)
	}
	c.wholeAxis(1, 0, axis)
	c.fill(2, Axes, len(s)-2)
}

// unfolded requires an image and block sizes with as many positions as there are columns: blocks
// of size one if the columns are not a multiple of anything else.
func (c *call) unfolded() {
	s, n := c.shape(0), c.length(1)
	if len(s) != 3 || n < 1 || n > maxConstant || c.length(2) != n {
		return
	}
	// One row with as many positions, and blocks that cover all channels of one.
	image, block := slices.Repeat([]int{1}, n), slices.Repeat([]int{1}, n)
	image[n-1] = s[2]
	if at, ok := c.constant(2); ok && len(at) == n {
		block = at
		for i := range image {
			image[i] += at[i] - 1
		}
	}
	c.values(1, Shape, image)
	c.values(2, Shape, block)
}
