package weights

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Source is a constant and the nodes between it and an operator.
type Source struct {
	// Value is the constant's id.
	Value int
	// Chain are the nodes in between, the constant's reader first.
	Chain []*graph.Node
}

// passThrough lists operators that return all elements of their first input, moved or converted
// one by one. true marks operators that keep the shape.
var passThrough = map[string]bool{
	"Identity": true, "Cast": true, "CastLike": true, "DequantizeLinear": true, "QuantizeLinear": true, "Quant": true,
	"Reshape": false, "Squeeze": false, "Unsqueeze": false, "Flatten": false, "Transpose": false,
	"DENSIFY": true, "DEQUANTIZE": true, "CAST": true, "RESHAPE": false, "SQUEEZE": false, "EXPAND_DIMS": false, "TRANSPOSE": false,
}

// PassesThrough reports whether a node returns all elements of its first input.
func PassesThrough(n *graph.Node) bool {
	_, ok := passThrough[n.Op]
	if n.Op == "Quant" { // rounds floats to quantised values and converts them back
		ok = slices.Contains(quantDomains, n.Domain)
	} else {
		ok = ok && (n.Domain == graph.ONNX || n.Domain == graph.TFLite || n.Domain == graph.Microsoft)
	}
	return ok && len(n.Inputs) > 0 && n.Inputs[0] >= 0 && len(n.Outputs) > 0 && n.Outputs[0] >= 0
}

// quantDomains are the domains of QONNX's Quant operator.
var quantDomains = []string{graph.ONNX, "qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas"}

// MovesElements reports whether a node returns elements of its inputs, all or some of them.
func MovesElements(n *graph.Node) bool { return PassesThrough(n) || isSlice(n) || isConcat(n) }

// isSlice reports whether a node returns a part of its first input.
func isSlice(n *graph.Node) bool {
	return n.Domain == graph.ONNX && n.Op == "Slice" && len(n.Inputs) > 0 && n.Inputs[0] >= 0 && len(n.Outputs) > 0
}

// isConcat reports whether a node returns all its inputs.
func isConcat(n *graph.Node) bool {
	return n.Domain == graph.ONNX && n.Op == "Concat" && len(n.Inputs) > 0 && len(n.Outputs) > 0
}

// ReadsShapeOnly reports whether a node reads only the shape of its input.
func ReadsShapeOnly(n *graph.Node) bool {
	switch n.Op {
	case "Shape", "Size", "SHAPE", "RANK":
		return true
	}
	return false
}

// KeepsShape reports whether the operator reads the constant in its original shape.
func (s *Source) KeepsShape() bool {
	return !slices.ContainsFunc(s.Chain, func(n *graph.Node) bool { return !passThrough[n.Op] })
}

// Producers returns for each value the node that produces it, or nil.
func Producers(g *graph.Graph) []*graph.Node {
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

// SourceOf finds the constant that holds all elements of a value: the value itself, or a constant
// before pass-through nodes; nil if absent. made is the result of [Producers]; with nil
// only the value itself is checked.
func SourceOf(g *graph.Graph, made []*graph.Node, id int) *Source {
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
		// Nodes are in topological order, so this terminates.
		if n == nil || !PassesThrough(n) || n.Outputs[0] != s.Value {
			return nil
		}
		s.Chain = append(s.Chain, n)
		s.Value = n.Inputs[0]
	}
}

// ints returns the elements of a constant operand.
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

// constOperand returns a constant operand of a node, or nil.
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

// hasInput reports whether a node has an operand.
func hasInput(n *graph.Node, input int) bool { return input < len(n.Inputs) && n.Inputs[input] >= 0 }

func permutation(g *graph.Graph, n *graph.Node) ([]int, bool) {
	if n.Domain == graph.TFLite {
		return ints(g, n, 1)
	}
	return n.Attrs.Ints("perm"), true
}

// reshaped returns the output shape of a node: the declared one, or the one given by its
// operands.
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
		return completeShape(to, in, n.Attrs.Bool("allowzero", false))
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

// completeShape replaces -1 and, unless zero is set, zeros (copied from the input) in a shape.
func completeShape(to, in []int, zero bool) ([]int, bool) {
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

// dequantizer returns the quantisation of a DequantizeLinear with constant scales.
func dequantizer(g *graph.Graph, n *graph.Node, rank int) (*tensor.Quant, bool) {
	axis := n.Attrs.Int("axis", 1)
	if axis < 0 {
		axis += rank
	}
	return quantOf(constOperand(g, n, 1), constOperand(g, n, 2), hasInput(n, 2), axis, n.Attrs.Int("block_size", 0))
}

// quantOf makes a quantisation from its tensors. It is false where the scale is missing or not
// constant, or where a zero point exists but is unknown.
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
