package rewrite

import (
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// sizeOperands lists constant operands that contain sizes of the first output, by operator.
var sizeOperands = map[string]int{"Reshape": 1, "RESHAPE": 1, "TRANSPOSE_CONV": 0, "SLICE": 2, "STRIDED_SLICE": 2}

// resize updates the sizes in a node's operands and attributes after indices were removed. before
// and after return shapes.
func (e *edit) resize(at int, before, after func(id int) []int) {
	n := e.g.Nodes[at]
	changed := func(id int) bool { return id >= 0 && !slices.Equal(before(id), after(id)) }
	if !slices.ContainsFunc(n.Inputs, changed) && !slices.ContainsFunc(n.Outputs, changed) {
		return
	}
	n = e.mutableNode(at)
	if k, ok := sizeOperands[n.Op]; ok {
		e.resizeOperand(n, k, before, after)
	}
	switch n.Op {
	case "Conv", "FusedConv", "ConvTranspose", "QLinearConv", "ConvInteger":
		w := 1
		if n.Op == "QLinearConv" {
			w = 3
		}
		in := after(n.Inputs[w])[1]
		if n.Op == "ConvTranspose" {
			in = 1 // one channel per group
		}
		if n.Attrs.Int("group", 1) > 1 && in > 0 {
			setAttr(n, "group", int64(after(n.Inputs[0])[1]/in))
		}
	case "LSTM", "GRU", "RNN", "DynamicQuantizeLSTM":
		axis := 2
		if n.Op == "DynamicQuantizeLSTM" {
			axis = 1
		}
		if n.Attrs.Has("hidden_size") {
			setAttr(n, "hidden_size", int64(after(n.Inputs[2])[axis]))
		}
	case "Attention", "QAttention", "MultiHeadAttention":
		y := n.Outputs[0]
		if heads := n.Attrs.Int("num_heads", 0); heads > 0 && n.Domain == graph.Microsoft && before(y)[2] > 0 {
			left := int64(after(y)[2])
			setAttr(n, "num_heads", left*int64(heads)/int64(before(y)[2]))
			if n.Attrs.Has("qkv_hidden_sizes") {
				setAttr(n, "qkv_hidden_sizes", []int64{left, left, left})
			}
		}
	case "RESHAPE", "Reshape":
		for _, name := range []string{"new_shape", "shape"} {
			if s := n.Attrs.Ints(name); s != nil {
				setAttr(n, name, resizedList(s, before(n.Outputs[0]), after(n.Outputs[0])))
			}
		}
	case "Split":
		e.resizeSplit(n, after)
	case "SPLIT", "SPLIT_V":
		e.resizeSplitLite(n, after)
	case "Resize":
		e.resizeOperand(n, 3, before, after)
	}
}

// resizedList replaces the elements of a list of sizes that changed.
func resizedList(s, before, after []int) []int64 {
	out := make([]int64, len(s))
	for i, d := range s {
		if out[i] = int64(d); i < len(before) && i < len(after) && before[i] != after[i] && d == before[i] {
			out[i] = int64(after[i])
		}
	}
	return out
}

// resizeOperand replaces a constant operand by one with the new sizes of the first output.
func (e *edit) resizeOperand(n *graph.Node, k int, before, after func(id int) []int) {
	id := operandAt(n.Inputs, k)
	if id >= 0 && e.g.Values[id].Const == nil {
		e.resizeConcat(n, k, before, after)
		return
	}
	list := constInts(e.g, id)
	if next := resizedList(list, before(n.Outputs[0]), after(n.Outputs[0])); !equal(list, next) {
		n.Inputs[k] = e.addResized(id, next)
	}
}

// addResized adds a copy of a constant with other integers.
func (e *edit) addResized(id int, list []int64) int {
	out := e.g.Values[id].Const.Clone()
	tensor.WriteInt64(out, 0, list)
	return e.addConst(e.freshName(e.g.Values[id].Name, "_resized"), out)
}

// equal reports whether a list of sizes is unchanged.
func equal(was []int, now []int64) bool {
	return slices.EqualFunc(was, now, func(a int, b int64) bool { return int64(a) == b })
}

// resizeConcat does the same where Concat joins computed sizes, such as the batch, and constant
// ones.
func (e *edit) resizeConcat(n *graph.Node, k int, before, after func(id int) []int) {
	join := e.made[n.Inputs[k]]
	if join == nil || join.Op != "Concat" {
		return
	}
	was, now := before(n.Outputs[0]), after(n.Outputs[0])
	ins, at := slices.Clone(join.Inputs), 0
	for i, id := range ins {
		s := before(id)
		if len(s) != 1 || at+s[0] > len(was) {
			return
		}
		part := weights.SourceOf(e.g, e.made, id)
		if part != nil && e.g.Values[part.Value].Const.Type == tensor.Int64 && e.g.Values[part.Value].Const.Len() == s[0] {
			sizes := constInts(e.g, part.Value)
			if next := resizedList(sizes, was[at:at+s[0]], now[at:at+s[0]]); !equal(sizes, next) {
				ins[i] = e.addConst(e.freshName(e.g.Values[id].Name, "_resized"), tensor.From(tensor.Int64, []int{len(next)}, next))
			}
		}
		at += s[0]
	}
	if slices.Equal(ins, join.Inputs) {
		return
	}
	c := *join
	v := e.g.Values[n.Inputs[k]]
	c.Inputs, c.Attrs = ins, maps.Clone(join.Attrs)
	c.Name = ""
	c.Outputs = []int{e.addValue(e.freshName(v.Name, "_resized"), v.Type, v.Shape).ID}
	e.insertAfter(&c, n.Inputs[k])
	n.Inputs[k] = c.Outputs[0]
}

// shrinkPads reduces padding where indices of the padding were removed.
func (e *edit) shrinkPads(at int, removed map[[2]int][]bool) {
	n := e.g.Nodes[at]
	lite := n.Op == "PAD" || n.Op == "PADV2"
	if !lite && n.Op != "Pad" {
		return
	}
	pads, id := n.Attrs.Ints("pads"), operandAt(n.Inputs, 1)
	if pads == nil {
		pads = constInts(e.g, id)
	}
	next := make([]int64, len(pads))
	for i, p := range pads {
		axis, end := i%max(len(pads)/2, 1), i >= len(pads)/2
		if lite {
			axis, end = i/2, i%2 == 1
		}
		next[i] = int64(p)
		r := removed[[2]int{n.Outputs[0], axis}]
		if r == nil || p <= 0 {
			continue
		}
		part := r[:p]
		if end {
			part = r[len(r)-p:]
		}
		for _, gone := range part {
			if gone {
				next[i]--
			}
		}
	}
	if !slices.ContainsFunc(next, func(p int64) bool { return p < 0 }) && !equal(pads, next) {
		if n = e.mutableNode(at); n.Attrs.Has("pads") {
			setAttr(n, "pads", next)
			return
		}
		n.Inputs[1] = e.addResized(id, next)
	}
}

// resizeSplit updates the part sizes of a Split node.
func (e *edit) resizeSplit(n *graph.Node, after func(id int) []int) {
	axis := n.Attrs.Int("axis", 0)
	if axis < 0 {
		axis += len(after(n.Inputs[0]))
	}
	sizes := make([]int64, len(n.Outputs))
	for i, id := range n.Outputs {
		sizes[i] = int64(after(id)[axis])
	}
	if n.Version < 13 {
		setAttr(n, "split", sizes)
		return
	}
	delete(n.Attrs, "num_outputs")
	id := e.addConst(e.freshName(e.g.Values[n.Outputs[0]].Name, "_sizes"), tensor.From(tensor.Int64, []int{len(sizes)}, sizes))
	n.Inputs = append(n.Inputs[:1], id)
}

// resizeSplitLite updates the part sizes of a TFLite split node. Where equal parts become
// unequal, SPLIT becomes SPLIT_V.
func (e *edit) resizeSplitLite(n *graph.Node, after func(id int) []int) {
	x, axis := 0, 2
	if n.Op == "SPLIT" {
		x, axis = 1, 0
	}
	list := constInts(e.g, n.Inputs[axis])
	if len(list) != 1 {
		return
	}
	rank := len(after(n.Inputs[x]))
	a := (list[0] + rank) % max(rank, 1)
	sizes := make([]int32, len(n.Outputs))
	for i, id := range n.Outputs {
		sizes[i] = int32(after(id)[a])
	}
	if n.Op == "SPLIT" && !slices.ContainsFunc(sizes, func(s int32) bool { return s != sizes[0] }) {
		return
	}
	id := e.addConst(e.freshName(e.g.Values[n.Outputs[0]].Name, "_sizes"), tensor.From(tensor.Int32, []int{len(sizes)}, sizes))
	n.Inputs = []int{n.Inputs[x], id, n.Inputs[axis]}
	if n.Op == "SPLIT" {
		n.Op, n.Version = "SPLIT_V", max(n.Version, 2)
	}
}
