package plan

import (
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// borders lets convolutions see zeros around their pictures that the file writes with Pad.
func borders(g *Graph) {
	if g.model.Format != "onnx" {
		return
	}
	uses := g.readers()
	for i := range g.Tasks {
		t := &g.Tasks[i]
		c := t.Node
		if t.State != Runs || t.asIs || t.Dynamic || c.Domain != graph.ONNX || c.Op != "Conv" || len(c.Inputs) < 2 || c.Inputs[0] < 0 || uses[c.Inputs[0]] != 1 {
			continue
		}
		j := g.maker[c.Inputs[0]] - 1
		if j < 0 {
			continue
		}
		pads := g.zeros(j)
		w := g.value(c.Inputs[1])
		if pads == nil || !whole(w) || len(pads) != 2*w.Rank()-4 {
			continue
		}
		if pads = joinBorders(c.Attrs, pads, w.Shape[2:]); pads == nil {
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
		m.Attrs["pads"] = pads
		g.replace(i, &m, j)
		t.Lowered = true
	}
	g.Settle()
}

// joinBorders adds pads to those of a convolution with the attributes and the window; nil where these are found when it runs, or
// where a window would see nothing else.
func joinBorders(attrs graph.Attrs, pads []int64, window []int) []int64 {
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
	dilations := attrs.Ints("dilations")
	for k := range own {
		axis := k % len(window)
		reach := window[axis] - 1
		if axis < len(dilations) {
			reach *= dilations[axis]
		}
		if own[k] += pads[k]; own[k] > int64(reach) {
			return nil
		}
	}
	return own
}

// zeros is what task i adds before and then after each axis behind that of the channels, if it is a Pad that adds zeros there only.
func (g *Graph) zeros(i int) []int64 {
	t := &g.Tasks[i]
	n := t.Node
	if t.State != Runs || t.asIs || t.Lowered && !t.wide || n.Domain != graph.ONNX || n.Op != "Pad" || n.Version < 2 || n.Inputs[0] < 0 ||
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

// constantInput is the constant that is input k of a node, nil for what is none, and whether there is such an input.
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

// integers are the elements of input k of a node, none where there is no such input; false where it is no constant.
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
