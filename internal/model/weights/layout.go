package weights

import "github.com/opmeter/opmeter/internal/model/graph"

// plan says what the dimensions of weights are. Rows are outputs of all groups.
type plan struct {
	rows, channels, taps view
	groups               int
}

// layout tells the dimensions of a view apart; data is the shape of what is multiplied, nil
// where it is not known. False for shapes that the operator does not take.
type layout func(n *graph.Node, v view, data []int) (plan, bool)

// convolution: outputs, inputs of a group, window.
func convolution(n *graph.Node, v view, _ []int) (plan, bool) {
	g := max(n.Attrs.Int("group", 1), 1)
	if len(v) < 3 || v[0].size%g != 0 {
		return plan{}, false
	}
	return plan{rows: v[:1], channels: v[1:2], taps: v[2:], groups: g}, true
}

// transposed: inputs of all groups, outputs of a group, window.
func transposed(n *graph.Node, v view, _ []int) (plan, bool) {
	g := max(n.Attrs.Int("group", 1), 1)
	if len(v) < 3 || v[0].size%g != 0 {
		return plan{}, false
	}
	if g == 1 {
		return plan{rows: v[1:2], channels: v[:1], taps: v[2:], groups: 1}, true
	}
	if v[0].at != nil {
		return plan{}, false
	}
	in := v[0].size / g
	return plan{rows: view{{size: g, stride: in * v[0].stride}, v[1]}, channels: view{{size: in, stride: v[0].stride}}, taps: v[2:], groups: g}, true
}

// channelsLast: outputs, window, inputs of a group. Without a window the matrix of a dense layer.
func channelsLast(n *graph.Node, v view, data []int) (plan, bool) {
	if len(v) < 2 {
		return plan{}, false
	}
	last := len(v) - 1
	g := max(n.Attrs.Int("group", 1), 1)
	if n.Op == "CONV_2D" && len(data) == 4 && v[last].size > 0 && data[3] > 0 && data[3]%v[last].size == 0 {
		g = data[3] / v[last].size
	}
	if v[0].size%g != 0 {
		return plan{}, false
	}
	return plan{rows: v[:1], channels: v[last:], taps: v[1:last], groups: g}, true
}

// depthwise: 1, window, outputs.
func depthwise(n *graph.Node, v view, data []int) (plan, bool) {
	if len(v) != 4 || v[0].size != 1 {
		return plan{}, false
	}
	m := n.Attrs.Int("depth_multiplier", 0)
	if len(data) == 4 && data[3] > 0 && v[3].size%data[3] == 0 {
		m = v[3].size / data[3]
	}
	if m < 1 || v[3].size%m != 0 {
		return plan{}, false
	}
	return plan{rows: v[3:], channels: v[:1], taps: v[1:3], groups: v[3].size / m}, true
}

// filtersLast: window, inputs, outputs.
func filtersLast(_ *graph.Node, v view, _ []int) (plan, bool) {
	if len(v) < 3 {
		return plan{}, false
	}
	k := len(v) - 2
	return plan{rows: v[k+1:], channels: v[k : k+1], taps: v[:k], groups: 1}, true
}

// channelsEnd: window, outputs, inputs.
func channelsEnd(_ *graph.Node, v view, _ []int) (plan, bool) {
	if len(v) < 3 {
		return plan{}, false
	}
	k := len(v) - 2
	return plan{rows: v[k : k+1], channels: v[k+1:], taps: v[:k], groups: 1}, true
}

// right is the right operand of a product: matrices of inputs by outputs, a group each.
func right(n *graph.Node, v view, _ []int) (plan, bool) {
	return product(v, n.Attrs.Bool("transB", false) || n.Attrs.Bool("adj_y", false))
}

// left is the left operand: outputs by inputs.
func left(n *graph.Node, v view, _ []int) (plan, bool) {
	return product(v, !n.Attrs.Bool("transA", false) && !n.Attrs.Bool("adj_x", false))
}

func product(v view, outputsFirst bool) (plan, bool) {
	if len(v) < 2 {
		return plan{}, false
	}
	k := len(v) - 2
	in, out := v[k], v[k+1]
	if outputsFirst {
		in, out = out, in
	}
	batch := v[:k:k]
	return plan{rows: append(batch, out), channels: view{in}, groups: max(batch.count(), 1)}, true
}

// inputGates: directions, gates, inputs. All directions read the same inputs.
func inputGates(_ *graph.Node, v view, _ []int) (plan, bool) {
	if len(v) != 3 {
		return plan{}, false
	}
	return plan{rows: v[:2], channels: v[2:], groups: 1}, true
}

// stateGates: directions, gates, states. Every direction has a state of its own.
func stateGates(n *graph.Node, v view, data []int) (plan, bool) {
	p, ok := inputGates(n, v, data)
	if ok {
		p.groups = max(v[0].size, 1)
	}
	return p, ok
}

// inputGatesLast: directions, inputs, gates.
func inputGatesLast(n *graph.Node, v view, data []int) (plan, bool) {
	v, ok := v.transpose([]int{0, 2, 1})
	if !ok {
		return plan{}, false
	}
	return inputGates(n, v, data)
}

// stateGatesLast: directions, states, gates.
func stateGatesLast(n *graph.Node, v view, data []int) (plan, bool) {
	v, ok := v.transpose([]int{0, 2, 1})
	if !ok {
		return plan{}, false
	}
	return stateGates(n, v, data)
}

// lookup is a table from which rows are fetched: a matrix that takes an index, as a vector with
// a one, to the row.
func lookup(n *graph.Node, v view, _ []int) (plan, bool) {
	axis := n.Attrs.Int("axis", n.Attrs.Int("gather_axis", 0))
	if axis < 0 {
		axis += len(v)
	}
	if len(v) < 2 || axis < 0 || axis >= len(v) {
		return plan{}, false
	}
	rows := append(append(view{}, v[:axis]...), v[axis+1:]...)
	return plan{rows: rows, channels: v[axis : axis+1], groups: 1}, true
}

// blocks are packed codes of a few bits: outputs, blocks of inputs, bytes. The view is already
// that of the codes.
func blocks(_ *graph.Node, v view, _ []int) (plan, bool) {
	if len(v) != 2 {
		return plan{}, false
	}
	return plan{rows: v[:1], channels: v[1:], groups: 1}, true
}
