package plan

import (
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// fusePadding fuses zero padding that the file writes as a separate operator into the convolution
// after it. TFLite sums stay bit-exact: they start at zero, and zero times a finite number does
// not change them.
func fusePadding(g *Graph) {
	uses := g.readers()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		c := t.Node
		if t.State != Runs || t.final || t.Dynamic || len(c.Inputs) < 2 || c.Inputs[0] < 0 || uses[c.Inputs[0]] != 1 {
			continue
		}
		j := g.maker[c.Inputs[0]] - 1
		if j < 0 {
			continue
		}
		name, pads := g.paddingAttr(c, j)
		if pads == nil {
			continue
		}
		m := *c
		m.Inputs = slices.Clone(c.Inputs)
		m.Inputs[0] = g.Tasks[j].Node.Inputs[0]
		m.Attrs = maps.Clone(c.Attrs)
		if m.Attrs == nil {
			m.Attrs = graph.Attrs{}
		}
		delete(m.Attrs, "auto_pad")
		m.Attrs[name] = pads
		g.replace(i, &m, j)
		t.Lowered = true
	}
	g.InferAll()
}

// paddingAttr returns the attribute with which convolution c computes the padding of task j; nil
// pads if it cannot.
func (g *Graph) paddingAttr(c *graph.Node, j int) (name string, pads []int64) {
	w := g.value(c.Inputs[1])
	switch {
	case !known(w):
	case c.Domain == graph.ONNX && c.Op == "Conv":
		if pads := g.zeroPads(j); pads != nil && len(pads) == 2*w.Rank()-4 {
			return "pads", addPads(c.Attrs, pads, w.Shape[2:])
		}
	case c.Domain == graph.TFLite && (c.Op == "CONV_2D" || c.Op == "DEPTHWISE_CONV_2D"):
		pads := g.liteZeroPads(j)
		if pads == nil || w.Rank() != 4 || c.Attrs.Str("padding", "SAME") != "VALID" {
			return "", nil
		}
		dilations := []int{max(1, c.Attrs.Int("dilation_h_factor", 1)), max(1, c.Attrs.Int("dilation_w_factor", 1))}
		if windowReaches(w.Shape[1:3], dilations, pads) && g.zerosKeepSums(c) {
			return op.AttrPads, pads
		}
	}
	return "", nil
}

// windowReaches reports whether every kernel window at the border still overlaps the unpadded
// input.
func windowReaches(window, dilations []int, pads []int64) bool {
	for k, p := range pads {
		axis := k % len(window)
		reach := window[axis] - 1
		if axis < len(dilations) {
			reach *= dilations[axis]
		}
		if p > int64(reach) {
			return false
		}
	}
	return true
}

// addPads adds pads to the pads of a convolution with the given attributes and window. It returns
// nil if the convolution computes its padding at run time, or if a window would lie entirely in
// the padding.
func addPads(attrs graph.Attrs, pads []int64, window []int) []int64 {
	own := make([]int64, len(pads))
	switch attrs.Str("auto_pad", "NOTSET") {
	case "NOTSET":
		for k, v := range attrs.Ints("pads") {
			if k < len(own) {
				own[k] = int64(v)
			}
		}
	case "VALID":
	default:
		return nil
	}
	for k := range own {
		own[k] += pads[k]
	}
	if !windowReaches(window, attrs.Ints("dilations"), own) {
		return nil
	}
	return own
}

// zeroPads returns what task i adds before and then after each spatial axis, if it is a Pad with
// zeros on spatial axes only; else nil.
func (g *Graph) zeroPads(i int) []int64 {
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.final || t.Lowered && !t.wide || n.Domain != graph.ONNX || n.Op != "Pad" || n.Version < 2 || n.Inputs[0] < 0 ||
		n.Attrs.Str("mode", "constant") != "constant" || n.Attrs.Float("value", 0) != 0 {
		return nil
	}
	x, y := g.value(n.Inputs[0]), g.value(n.Outputs[0])
	if x == nil || y == nil || x.Type != y.Type || x.Type != tensor.Float32 && !x.Type.IsHalf() || x.Rank() < 3 {
		return nil
	}
	pads, axes := n.Attrs.Ints("pads"), []int(nil)
	if n.Version >= 11 {
		var ok bool
		if pads, ok = g.integers(n, 1); !ok {
			return nil
		}
		if axes, ok = g.integers(n, 3); !ok {
			return nil
		}
		if v, given := g.constantInput(n, 2); given && (v == nil || v.Len() != 1 || tensor.At(v, 0) != 0) {
			return nil
		}
	}
	rank := x.Rank()
	if axes == nil {
		for a := range rank {
			axes = append(axes, a)
		}
	}
	if len(pads) != 2*len(axes) {
		return nil
	}
	out := make([]int64, 2*(rank-2))
	for k, a := range axes {
		if a < 0 {
			a += rank
		}
		before, after := pads[k], pads[len(axes)+k]
		if a < 0 || a >= rank || min(before, after) < 0 || a < 2 && max(before, after) > 0 {
			return nil
		}
		if a >= 2 {
			out[a-2], out[rank-2+a-2] = int64(before), int64(after)
		}
	}
	return out
}

// liteZeroPads is zeroPads for PAD and PADV2 of TFLite, whose feature maps are channels-last.
// Quantised values are padded with the zero point.
func (g *Graph) liteZeroPads(i int) []int64 {
	n := g.Tasks[i].Node
	if !g.asInFileShaped(i) || n.Op != "PAD" && n.Op != "PADV2" || len(n.Inputs) < 2 || n.Inputs[0] < 0 {
		return nil
	}
	x, y := g.value(n.Inputs[0]), g.value(n.Outputs[0])
	if x == nil || y == nil || x.Type != y.Type || x.Rank() != 4 || !sameQuant(x.Quant, y.Quant) {
		return nil
	}
	zero := 0.0
	if x.Quant != nil && len(x.Quant.Zero) == 1 {
		zero = float64(x.Quant.Zero[0])
	}
	if n.Op == "PADV2" {
		if v, _ := g.constantInput(n, 2); v == nil || v.Type != x.Type || v.Len() != 1 || tensor.At(v, 0) != zero {
			return nil
		}
	}
	pads, ok := g.integers(n, 1)
	if !ok || len(pads) != 8 || slices.Min(pads) < 0 || pads[0]+pads[1]+pads[6]+pads[7] > 0 {
		return nil
	}
	return []int64{int64(pads[2]), int64(pads[4]), int64(pads[3]), int64(pads[5])}
}

// sameQuant reports whether scales and zero points are equal.
func sameQuant(a, b *tensor.Quant) bool {
	return a == b || a != nil && b != nil && slices.Equal(a.Scale, b.Scale) && slices.Equal(a.Zero, b.Zero)
}

// zerosKeepSums reports whether a TFLite convolution has the same sums whether it adds zeros or
// skips them: quantised inputs, or finite weights.
func (g *Graph) zerosKeepSums(c *graph.Node) bool {
	switch x := g.value(c.Inputs[0]); {
	case x == nil:
		return false
	case x.Type == tensor.Float32:
		return g.value(c.Inputs[1]).Type == tensor.Float32 && g.finite(c.Inputs[1])
	default:
		return x.Type == tensor.Int8 || x.Type == tensor.Uint8 || x.Type == tensor.Int16
	}
}

// finite reports whether a value is a float32 constant without infinities and NaNs.
func (g *Graph) finite(id int) bool {
	if !g.Fixed[id] || g.compute(id, g.opts.FoldBytes, 0) != nil {
		return false
	}
	for _, v := range tensor.Of[float32](g.Values[id]) {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// constantInput returns the constant in input k of a node, nil if it is not constant, and whether
// the input is present.
func (g *Graph) constantInput(n *graph.Node, k int) (*tensor.Tensor, bool) {
	if k >= len(n.Inputs) || n.Inputs[k] < 0 {
		return nil, false
	}
	id := n.Inputs[k]
	if !g.Fixed[id] || g.compute(id, g.opts.FoldBytes, 0) != nil {
		return nil, true
	}
	return g.Values[id], true
}

// integers returns the elements of input k of a node, none if it is absent; false if it is not
// constant.
func (g *Graph) integers(n *graph.Node, k int) ([]int, bool) {
	v, given := g.constantInput(n, k)
	if !given {
		return nil, true
	}
	if v == nil {
		return nil, false
	}
	out, err := op.Ints(v)
	return out, err == nil
}
