package weights

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Source is a constant and what stands between it and an operator.
type Source struct {
	// Value is the constant's id.
	Value int
	// Chain are the nodes on the way, the constant's reader first.
	Chain []*graph.Node
}

// passes are operators that hand on all elements of their first input, moved or
// converted one by one. true marks those that leave the shape as it is.
var passes = map[string]bool{
	"Identity": true, "Cast": true, "CastLike": true, "DequantizeLinear": true, "QuantizeLinear": true, "Quant": true,
	"Reshape": false, "Squeeze": false, "Unsqueeze": false, "Flatten": false, "Transpose": false,
	"DENSIFY": true, "DEQUANTIZE": true, "CAST": true, "RESHAPE": false, "SQUEEZE": false, "EXPAND_DIMS": false, "TRANSPOSE": false,
}

// Passes reports whether a node hands on all elements of its first input.
func Passes(n *graph.Node) bool {
	_, ok := passes[n.Op]
	if n.Op == "Quant" { // numbers that are rounded to codes and are numbers again
		ok = slices.Contains(roundings, n.Domain)
	} else {
		ok = ok && (n.Domain == graph.ONNX || n.Domain == graph.TFLite || n.Domain == graph.Microsoft)
	}
	return ok && len(n.Inputs) > 0 && n.Inputs[0] >= 0 && len(n.Outputs) > 0 && n.Outputs[0] >= 0
}

// roundings are the domains in which files have the Quant of QONNX.
var roundings = []string{graph.ONNX, "qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas"}

// Moves reports whether a node hands on elements of its inputs, all or some of them.
func Moves(n *graph.Node) bool { return Passes(n) || cuts(n) || joins(n) }

// cuts reports whether a node hands on a part of its first input.
func cuts(n *graph.Node) bool {
	return n.Domain == graph.ONNX && n.Op == "Slice" && len(n.Inputs) > 0 && n.Inputs[0] >= 0 && len(n.Outputs) > 0
}

// joins reports whether a node hands on all its inputs.
func joins(n *graph.Node) bool {
	return n.Domain == graph.ONNX && n.Op == "Concat" && len(n.Inputs) > 0 && len(n.Outputs) > 0
}

// SeesShape reports whether a node sees of its input the shape only.
func SeesShape(n *graph.Node) bool {
	switch n.Op {
	case "Shape", "Size", "SHAPE", "RANK":
		return true
	}
	return false
}

// Straight reports whether an operator reads the constant in the shape that it has.
func (s *Source) Straight() bool {
	return !slices.ContainsFunc(s.Chain, func(n *graph.Node) bool { return !passes[n.Op] })
}

// Makers finds for each value the node that makes it, nil for others.
func Makers(g *graph.Graph) []*graph.Node {
	made := make([]*graph.Node, len(g.Values))
	for _, n := range g.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 && id < len(made) {
				made[id] = n
			}
		}
	}
	return made
}

// Behind finds the constant whose elements a value has, itself or behind nodes that hand
// them on; nil where there is none. made is what [Makers] gives; nil looks at constants themselves only.
func Behind(g *graph.Graph, made []*graph.Node, id int) *Source {
	s := &Source{Value: id}
	for {
		if s.Value < 0 || s.Value >= len(g.Values) {
			return nil
		}
		v := g.Values[s.Value]
		if v.Const != nil {
			if v.Variable || !v.Const.Known() || v.Const.Type.IsContainer() || v.Const.Type == tensor.String {
				return nil
			}
			slices.Reverse(s.Chain)
			return s
		}
		if s.Value >= len(made) {
			return nil
		}
		n := made[s.Value]
		// Nodes are in order, so that the way ends.
		if n == nil || !Passes(n) || n.Outputs[0] != s.Value {
			return nil
		}
		s.Chain = append(s.Chain, n)
		s.Value = n.Inputs[0]
	}
}

// ints are the elements of a constant operand.
func ints(g *graph.Graph, n *graph.Node, input int) ([]int, bool) {
	c := constOperand(g, n, input)
	if c == nil || !c.Type.IsInteger() || !c.Known() {
		return nil, false
	}
	list, err := tensor.All[int64](c)
	if err != nil {
		return nil, false
	}
	out := make([]int, len(list))
	for i, x := range list {
		out[i] = int(x)
	}
	return out, true
}

// constOperand is a constant operand of a node, nil where it has none.
func constOperand(g *graph.Graph, n *graph.Node, input int) *tensor.Tensor {
	if input < 0 || input >= len(n.Inputs) || n.Inputs[input] < 0 || n.Inputs[input] >= len(g.Values) {
		return nil
	}
	c := g.Values[n.Inputs[input]].Const
	if !c.Known() {
		return nil
	}
	return c
}

// has reports whether a node has an operand.
func has(n *graph.Node, input int) bool { return input < len(n.Inputs) && n.Inputs[input] >= 0 }

func permutation(g *graph.Graph, n *graph.Node) ([]int, bool) {
	if n.Domain == graph.TFLite {
		return ints(g, n, 1)
	}
	return n.Attrs.Ints("perm"), true
}

// reshaped is the shape that a node gives a tensor, from the declared one or from its operands.
func reshaped(g *graph.Graph, n *graph.Node, in []int) ([]int, bool) {
	out := g.Values[n.Outputs[0]]
	if out.HasShape && !slices.ContainsFunc(out.Shape, func(d int) bool { return d < 0 }) {
		return out.Shape, true
	}
	switch n.Op {
	case "Reshape", "RESHAPE":
		to, ok := ints(g, n, 1)
		if !ok {
			if to = n.Attrs.Ints("shape"); to == nil {
				if to = n.Attrs.Ints("new_shape"); to == nil {
					return nil, false
				}
			}
		}
		return fill(to, in, n.Attrs.Bool("allowzero", false))
	case "Flatten":
		axis := n.Attrs.Int("axis", 1)
		if axis < 0 {
			axis += len(in)
		}
		if axis < 0 || axis > len(in) {
			return nil, false
		}
		return []int{tensor.Elements(in[:axis]), tensor.Elements(in[axis:])}, true
	case "Squeeze", "Unsqueeze":
		axes, ok := ints(g, n, 1)
		if !ok {
			axes = n.Attrs.Ints("axes")
		}
		return squeezed(in, axes, n.Op == "Unsqueeze")
	}
	return nil, false
}

// fill completes a shape with -1 and, unless they count as such, zeros.
func fill(to, in []int, zero bool) ([]int, bool) {
	out := slices.Clone(to)
	free, n := -1, 1
	for i, d := range out {
		switch {
		case d == -1 && free < 0:
			free = i
			continue
		case d == 0 && !zero && i < len(in):
			out[i] = in[i]
		case d <= 0:
			return nil, false
		}
		n *= out[i]
	}
	if free >= 0 {
		out[free] = tensor.Elements(in) / n
	}
	return out, true
}

func squeezed(in, axes []int, add bool) ([]int, bool) {
	rank := len(in)
	if add {
		rank += len(axes)
	}
	on := make([]bool, rank)
	for _, a := range axes {
		if a < 0 {
			a += rank
		}
		if a < 0 || a >= rank || on[a] {
			return nil, false
		}
		on[a] = true
	}
	var out []int
	if !add {
		for i, d := range in {
			if on[i] || len(axes) == 0 && d == 1 {
				continue
			}
			out = append(out, d)
		}
		return out, true
	}
	for i, k := 0, 0; i < rank; i++ {
		if on[i] {
			out = append(out, 1)
			continue
		}
		out = append(out, in[k])
		k++
	}
	return out, true
}

// dequantizer is the quantisation of a DequantizeLinear with constant scales.
func dequantizer(g *graph.Graph, n *graph.Node, rank int) (*tensor.Quant, bool) {
	axis := n.Attrs.Int("axis", 1)
	if axis < 0 {
		axis += rank
	}
	return quantOf(constOperand(g, n, 1), constOperand(g, n, 2), has(n, 2), axis, n.Attrs.Int("block_size", 0))
}

// quantOf makes a quantisation of the tensors that hold it. scale nil stands for 1, which
// serves where only zeros matter. False where a zero point is there and not known.
func quantOf(scale, zero *tensor.Tensor, hasZero bool, axis, block int) (*tensor.Quant, bool) {
	if scale == nil || !scale.Type.IsFloat() || hasZero && zero == nil {
		return nil, false
	}
	q := &tensor.Quant{Scale: make([]float32, scale.Len()), Axis: axis, Block: block}
	tensor.Read(q.Scale, scale, 0)
	q.Zero = make([]int64, len(q.Scale))
	if zero == nil {
		return q, true
	}
	if zero.Len() != len(q.Zero) && zero.Len() != 1 || zero.Type.IsFloat() {
		return nil, false
	}
	z, err := tensor.All[int64](zero)
	if err != nil {
		return nil, false
	}
	for i := range q.Zero {
		q.Zero[i] = z[min(i, len(z)-1)]
	}
	return q, true
}
