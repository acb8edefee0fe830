package rewrite

import (
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// counted are constant operands that hold sizes, by operator: which input, and of which output's axes its elements
// are sizes.
var counted = map[string]int{"Reshape": 1, "RESHAPE": 1, "TRANSPOSE_CONV": 0, "SLICE": 2, "STRIDED_SLICE": 2}

// resize gives a node the sizes that its values have after lanes were taken out: by shape, from before.
func (e *edit) resize(at int, before, after func(id int) []int) {
	n := e.g.Nodes[at]
	changed := func(id int) bool { return id >= 0 && !slices.Equal(before(id), after(id)) }
	if !slices.ContainsFunc(n.Inputs, changed) && !slices.ContainsFunc(n.Outputs, changed) {
		return
	}
	n = e.node(at)
	if k, ok := counted[n.Op]; ok {
		e.resizeOperand(n, k, before, after)
	}
	switch n.Op {
	case "Conv", "FusedConv", "ConvTranspose", "QLinearConv", "ConvInteger":
		w := 1
		if n.Op == "QLinearConv" {
			w = 3
		}
		x, in := n.Inputs[0], after(n.Inputs[w])[1]
		if n.Op == "ConvTranspose" {
			if n.Attrs.Int("group", 1) > 1 {
				put(n, "group", int64(after(x)[1]))
			}
		} else if n.Attrs.Int("group", 1) > 1 && in > 0 {
			put(n, "group", int64(after(x)[1]/in))
		}
	case "LSTM", "GRU", "RNN":
		if n.Attrs.Has("hidden_size") {
			put(n, "hidden_size", int64(after(n.Inputs[2])[2]))
		}
	case "DynamicQuantizeLSTM":
		if n.Attrs.Has("hidden_size") {
			put(n, "hidden_size", int64(after(n.Inputs[2])[1]))
		}
	case "Attention", "QAttention", "MultiHeadAttention":
		y := n.Outputs[0]
		if heads := n.Attrs.Int("num_heads", 0); heads > 0 && n.Domain == graph.Microsoft && before(y)[2] > 0 {
			left := int64(after(y)[2])
			put(n, "num_heads", left*int64(heads)/int64(before(y)[2]))
			if n.Attrs.Has("qkv_hidden_sizes") {
				put(n, "qkv_hidden_sizes", []int64{left, left, left})
			}
		}
	case "RESHAPE":
		if s := n.Attrs.Ints("new_shape"); s != nil {
			put(n, "new_shape", resized64(s, before(n.Outputs[0]), after(n.Outputs[0])))
		}
	case "Reshape":
		if s := n.Attrs.Ints("shape"); s != nil {
			put(n, "shape", resized64(s, before(n.Outputs[0]), after(n.Outputs[0])))
		}
	case "Split":
		e.resizeSplit(n, after)
	case "SPLIT", "SPLIT_V":
		e.resizeSplitLite(n, after)
	case "Resize":
		e.resizeOperand(n, 3, before, after)
	}
}

// resized64 is a list of sizes in which those that were sizes of a value are its new ones.
func resized64(s, before, after []int) []int64 {
	out := make([]int64, len(s))
	for i, d := range s {
		if out[i] = int64(d); i < len(before) && i < len(after) && before[i] != after[i] && d == before[i] {
			out[i] = int64(after[i])
		}
	}
	return out
}

// resizeOperand gives a node a constant operand with new sizes of its first output.
func (e *edit) resizeOperand(n *graph.Node, k int, before, after func(id int) []int) {
	id := operandAt(n.Inputs, k)
	if id >= 0 && e.g.Values[id].Const == nil {
		e.resizeJoined(n, k, before, after)
		return
	}
	if id < 0 || !e.g.Values[id].Const.Known() {
		return
	}
	c := e.g.Values[id].Const
	list, err := tensor.All[int64](c)
	if err != nil {
		return
	}
	s := make([]int, len(list))
	for i, v := range list {
		s[i] = int(v)
	}
	next := resized64(s, before(n.Outputs[0]), after(n.Outputs[0]))
	if slices.Equal(next, list) {
		return
	}
	out := c.Clone()
	tensor.WriteInt64(out, 0, next)
	n.Inputs[k] = e.constant(e.name(e.g.Values[id].Name, "_resized"), out)
}

// resizeJoined gives a node new sizes where they are joined of some that are computed, such as those of a batch, and others that are constants.
func (e *edit) resizeJoined(n *graph.Node, k int, before, after func(id int) []int) {
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
		part := weights.Behind(e.g, e.made, id)
		if part != nil && e.g.Values[part.Value].Const.Type == tensor.Int64 && e.g.Values[part.Value].Const.Len() == s[0] {
			list, err := tensor.All[int64](e.g.Values[part.Value].Const)
			if err != nil {
				return
			}
			sizes := make([]int, len(list))
			for j, v := range list {
				sizes[j] = int(v)
			}
			if next := resized64(sizes, was[at:at+s[0]], now[at:at+s[0]]); !slices.Equal(next, list) {
				ins[i] = e.constant(e.name(e.g.Values[id].Name, "_resized"), tensor.From(tensor.Int64, []int{len(next)}, next))
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
	c.Outputs = []int{e.add(e.name(v.Name, "_resized"), v.Type, v.Shape).ID}
	e.place(&c, n.Inputs[k])
	n.Inputs[k] = c.Outputs[0]
}

// repad makes a node add less where lanes of what it adds were taken out.
func (e *edit) repad(at int, removed map[[2]int][]bool) {
	n := e.g.Nodes[at]
	lite := n.Op == "PAD" || n.Op == "PADV2"
	if !lite && n.Op != "Pad" {
		return
	}
	pads, id := n.Attrs.Ints("pads"), operandAt(n.Inputs, 1)
	if pads == nil && id >= 0 && e.g.Values[id].Const.Known() {
		if list, err := tensor.All[int64](e.g.Values[id].Const); err == nil {
			for _, p := range list {
				pads = append(pads, int(p))
			}
		}
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
	if !slices.ContainsFunc(next, func(p int64) bool { return p < 0 }) && !slices.Equal(resized64(pads, nil, nil), next) {
		n = e.node(at)
		if n.Attrs.Has("pads") {
			put(n, "pads", next)
			return
		}
		out := e.g.Values[id].Const.Clone()
		tensor.WriteInt64(out, 0, next)
		n.Inputs[1] = e.constant(e.name(e.g.Values[id].Name, "_resized"), out)
	}
}

// resizeSplit gives a node that splits the sizes of its parts.
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
		put(n, "split", sizes)
		return
	}
	delete(n.Attrs, "num_outputs")
	id := e.constant(e.name(e.g.Values[n.Outputs[0]].Name, "_sizes"), tensor.From(tensor.Int64, []int{len(sizes)}, sizes))
	n.Inputs = append(n.Inputs[:1], id)
}

// resizeSplitLite gives a node of TFLite that splits the sizes of its parts: where they were equal and are no more, it
// becomes one that is told them.
func (e *edit) resizeSplitLite(n *graph.Node, after func(id int) []int) {
	x, axis := 0, 2
	if n.Op == "SPLIT" {
		x, axis = 1, 0
	}
	list, err := tensor.All[int64](e.g.Values[n.Inputs[axis]].Const)
	if err != nil || len(list) != 1 {
		return
	}
	rank := len(after(n.Inputs[x]))
	a := (int(list[0]) + rank) % max(rank, 1)
	sizes := make([]int32, len(n.Outputs))
	for i, id := range n.Outputs {
		sizes[i] = int32(after(id)[a])
	}
	if n.Op == "SPLIT" && !slices.ContainsFunc(sizes, func(s int32) bool { return s != sizes[0] }) {
		return
	}
	id := e.constant(e.name(e.g.Values[n.Outputs[0]].Name, "_sizes"), tensor.From(tensor.Int32, []int{len(sizes)}, sizes))
	n.Inputs = []int{n.Inputs[x], id, n.Inputs[axis]}
	if n.Op == "SPLIT" {
		n.Op, n.Version = "SPLIT_V", max(n.Version, 2)
	}
}
