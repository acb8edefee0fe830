package weights

import "github.com/opmeter/opmeter/internal/model/graph"

// matrixLayout assigns the dimensions of weights. Rows are the outputs of all groups.
type matrixLayout struct {
	rows, channels, taps view
	groups               int
}

// layoutFunc assigns the dimensions of a view. data is the shape of the multiplied input, nil
// where unknown. It is false for shapes that the operator does not accept.
type layoutFunc func(n *graph.Node, v view, data []int) (matrixLayout, bool)

// convolution: outputs, inputs of a group, kernel window.
func convolution(n *graph.Node, v view, _ []int) (matrixLayout, bool) {
	g := max(n.Attrs.Int("group", 1), 1)
	if len(v) < 3 || v[0].size%g != 0 {
		return matrixLayout{}, false
	}
	return matrixLayout{rows: v[:1], channels: v[1:2], taps: v[2:], groups: g}, true
}

// transposed: inputs of all groups, outputs of a group, kernel window.
func transposed(n *graph.Node, v view, _ []int) (matrixLayout, bool) {
	g := max(n.Attrs.Int("group", 1), 1)
	if len(v) < 3 || v[0].size%g != 0 {
		return matrixLayout{}, false
	}
	if g == 1 {
		return matrixLayout{rows: v[1:2], channels: v[:1], taps: v[2:], groups: 1}, true
	}
	if v[0].offsets != nil {
		return matrixLayout{}, false
	}
	in := v[0].size / g
	return matrixLayout{rows: view{{size: g, stride: in * v[0].stride}, v[1]}, channels: view{{size: in, stride: v[0].stride}}, taps: v[2:], groups: g}, true
}

// channelsLast: outputs, kernel window, inputs of a group; without a window a dense layer's
// matrix.
func channelsLast(n *graph.Node, v view, data []int) (matrixLayout, bool) {
	if len(v) < 2 {
		return matrixLayout{}, false
	}
	last := len(v) - 1
	g := max(n.Attrs.Int("group", 1), 1)
	if n.Op == "CONV_2D" && len(data) == 4 && v[last].size > 0 && data[3] > 0 && data[3]%v[last].size == 0 {
		g = data[3] / v[last].size
	}
	if v[0].size%g != 0 {
		return matrixLayout{}, false
	}
	return matrixLayout{rows: v[:1], channels: v[last:], taps: v[1:last], groups: g}, true
}

// depthwise: 1, kernel window, outputs.
func depthwise(n *graph.Node, v view, data []int) (matrixLayout, bool) {
	if len(v) != 4 || v[0].size != 1 {
		return matrixLayout{}, false
	}
	m := n.Attrs.Int("depth_multiplier", 0)
	if len(data) == 4 && data[3] > 0 && v[3].size%data[3] == 0 {
		m = v[3].size / data[3]
	}
	if m < 1 || v[3].size%m != 0 {
		return matrixLayout{}, false
	}
	return matrixLayout{rows: v[3:], channels: v[:1], taps: v[1:3], groups: v[3].size / m}, true
}

// inputsThenOutputs: kernel window, inputs, outputs.
func inputsThenOutputs(_ *graph.Node, v view, _ []int) (matrixLayout, bool) {
	if len(v) < 3 {
		return matrixLayout{}, false
	}
	k := len(v) - 2
	return matrixLayout{rows: v[k+1:], channels: v[k : k+1], taps: v[:k], groups: 1}, true
}

// outputsThenInputs: kernel window, outputs, inputs.
func outputsThenInputs(_ *graph.Node, v view, _ []int) (matrixLayout, bool) {
	if len(v) < 3 {
		return matrixLayout{}, false
	}
	k := len(v) - 2
	return matrixLayout{rows: v[k : k+1], channels: v[k+1:], taps: v[:k], groups: 1}, true
}

// rightOperand is the right operand of a matrix multiplication: inputs by outputs, one matrix per
// group.
func rightOperand(n *graph.Node, v view, _ []int) (matrixLayout, bool) {
	return matmulLayout(v, n.Attrs.Bool("transB", false) || n.Attrs.Bool("adj_y", false))
}

// leftOperand is the left operand of a matrix multiplication: outputs by inputs.
func leftOperand(n *graph.Node, v view, _ []int) (matrixLayout, bool) {
	return matmulLayout(v, !n.Attrs.Bool("transA", false) && !n.Attrs.Bool("adj_x", false))
}

func matmulLayout(v view, outputsFirst bool) (matrixLayout, bool) {
	if len(v) < 2 {
		return matrixLayout{}, false
	}
	k := len(v) - 2
	in, out := v[k], v[k+1]
	if outputsFirst {
		in, out = out, in
	}
	batch := v[:k:k]
	return matrixLayout{rows: append(batch, out), channels: view{in}, groups: max(batch.count(), 1)}, true
}

// inputGates: directions, gates, inputs. All directions read the same inputs.
func inputGates(_ *graph.Node, v view, _ []int) (matrixLayout, bool) {
	if len(v) != 3 {
		return matrixLayout{}, false
	}
	return matrixLayout{rows: v[:2], channels: v[2:], groups: 1}, true
}

// stateGates: directions, gates, states. Every direction has its own state.
func stateGates(n *graph.Node, v view, data []int) (matrixLayout, bool) {
	p, ok := inputGates(n, v, data)
	if ok {
		p.groups = max(v[0].size, 1)
	}
	return p, ok
}

// inputGatesLast: directions, inputs, gates.
func inputGatesLast(n *graph.Node, v view, data []int) (matrixLayout, bool) {
	v, ok := v.transpose([]int{0, 2, 1})
	if !ok {
		return matrixLayout{}, false
	}
	return inputGates(n, v, data)
}

// stateGatesLast: directions, states, gates.
func stateGatesLast(n *graph.Node, v view, data []int) (matrixLayout, bool) {
	v, ok := v.transpose([]int{0, 2, 1})
	if !ok {
		return matrixLayout{}, false
	}
	return stateGates(n, v, data)
}

// lookupTable is a table from which rows are fetched: a matrix that maps a one-hot index to the
// row.
func lookupTable(n *graph.Node, v view, _ []int) (matrixLayout, bool) {
	axis := n.Attrs.Int("axis", n.Attrs.Int("gather_axis", 0))
	if axis < 0 {
		axis += len(v)
	}
	if len(v) < 2 || axis < 0 || axis >= len(v) {
		return matrixLayout{}, false
	}
	rows := append(append(view{}, v[:axis]...), v[axis+1:]...)
	return matrixLayout{rows: rows, channels: v[axis : axis+1], groups: 1}, true
}

// packedBlocks are low-bit values packed into bytes: outputs, blocks of inputs, bytes. The view
// is already that of the unpacked values.
func packedBlocks(_ *graph.Node, v view, _ []int) (matrixLayout, bool) {
	if len(v) != 2 {
		return matrixLayout{}, false
	}
	return matrixLayout{rows: v[:1], channels: v[1:], groups: 1}, true
}
