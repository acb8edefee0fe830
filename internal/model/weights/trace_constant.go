package weights

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// tracedView is a constant as an operator reads it.
type tracedView struct {
	v view
	// q has scales and zero points; qv is the view that its axis refers to.
	q  *tensor.Quant
	qv view
	// unknownQuant says that scales or zero points are unknown, quantised that the last node
	// quantised floats.
	unknownQuant, quantised bool
}

// follower traces a value back to the constant that its elements come from, through nodes that
// move all or some of them.
type follower struct {
	g    *graph.Graph
	made []*graph.Node
	s    *Source
	by   map[int]tracedView // values that were traced already
	deep int
}

// maxChain bounds the nodes between a constant and its operator.
const maxChain = 1000

// follow finds the constant that the elements of a value come from, each at most once, and their
// positions in it; nil if absent.
func follow(g *graph.Graph, made []*graph.Node, id int) (*Source, tracedView) {
	f := &follower{g: g, made: made, s: &Source{Value: -1}, by: map[int]tracedView{}}
	at, ok := f.value(id)
	if !ok || f.s.Value < 0 || at.v.count() > g.Values[f.s.Value].Const.Len() {
		return nil, tracedView{}
	}
	return f.s, at
}

func (f *follower) value(id int) (tracedView, bool) {
	if at, ok := f.by[id]; ok {
		return at, true
	}
	if id < 0 || id >= len(f.g.Values) || f.deep > maxChain {
		return tracedView{}, false
	}
	f.deep++
	defer func() { f.deep-- }()
	at, ok := tracedView{}, false
	switch v := f.g.Values[id]; {
	case v.Const != nil:
		at, ok = f.constant(id)
	case id < len(f.made) && f.made[id] != nil && f.made[id].Outputs[0] == id:
		// nodes are in topological order, so this terminates
		if at, ok = f.node(f.made[id]); ok {
			f.s.Chain = append(f.s.Chain, f.made[id])
		}
	}
	if ok {
		f.by[id] = at
	}
	return at, ok
}

// constant ends a path. All paths must end at the same constant.
func (f *follower) constant(id int) (tracedView, bool) {
	c := f.g.Values[id]
	if SourceOf(f.g, nil, id) == nil || f.s.Value >= 0 && f.s.Value != id {
		return tracedView{}, false
	}
	f.s.Value = id
	at := tracedView{v: contiguous(c.Const.Shape)}
	if c.Quant != nil && c.Const.Type.IsInteger() && len(c.Quant.Scale) > 0 {
		at.q, at.qv = c.Quant, at.v
	}
	return at, true
}

// node traces through a node.
func (f *follower) node(n *graph.Node) (tracedView, bool) {
	if isConcat(n) {
		return f.concat(n)
	}
	if !PassesThrough(n) && !isSlice(n) {
		return tracedView{}, false
	}
	at, ok := f.value(n.Inputs[0])
	if !ok {
		return tracedView{}, false
	}
	var from *graph.Node // producer of the input
	if id := n.Inputs[0]; id < len(f.made) {
		from = f.made[id]
	}
	floats := f.g.Values[f.s.Value].Const.Type.IsFloat()
	switch n.Op {
	case "Transpose", "TRANSPOSE":
		var perm []int
		if perm, ok = permutation(f.g, n); ok {
			at.v, ok = at.v.transpose(perm)
		}
	case "Reshape", "Squeeze", "Unsqueeze", "Flatten", "RESHAPE", "SQUEEZE", "EXPAND_DIMS":
		var shape []int
		if shape, ok = reshaped(f.g, n, at.v.shape()); ok {
			at.v, ok = at.v.reshape(shape)
		}
	case "Slice":
		at.v, ok = sliced(f.g, n, at.v)
	case "Cast", "CastLike", "CAST":
		ok = floats || at.q == nil
	case "QuantizeLinear": // quantising and dequantising again keeps zeros
		at.quantised, ok = true, floats
	case "DequantizeLinear":
		if from != nil && from.Op == "QuantizeLinear" {
			at.quantised = false
			break
		}
		ok = at.v.regular() && !at.quantised
		at.qv = at.v
		var known bool
		if at.q, known = dequantizer(f.g, n, len(at.v)); !known {
			at.unknownQuant = true
		}
	}
	return at, ok
}

// concat traces through Concat, whose inputs are parts of one constant.
func (f *follower) concat(n *graph.Node) (tracedView, bool) {
	var parts []view
	var at tracedView
	count := 0
	for i, id := range n.Inputs {
		p, ok := f.value(id)
		if !ok || i > 0 && (p.q != at.q || p.unknownQuant != at.unknownQuant || p.quantised != at.quantised) {
			return tracedView{}, false
		}
		at, parts = p, append(parts, p.v)
		// some elements would occur twice
		if count += p.v.count(); count > f.g.Values[f.s.Value].Const.Len() {
			return tracedView{}, false
		}
	}
	axis := n.Attrs.Int("axis", 1)
	if axis < 0 {
		axis += len(parts[0])
	}
	if axis < 0 || axis >= len(parts[0]) {
		return tracedView{}, false
	}
	var ok bool
	at.v, ok = concat(parts, axis)
	return at, ok
}

// sliced applies Slice to a view. It is false where the operands are unknown or the result is
// empty.
func sliced(g *graph.Graph, n *graph.Node, v view) (view, bool) {
	list := func(input int, name string) []int {
		if hasInput(n, input) {
			x, _ := ints(g, n, input)
			return x
		}
		return n.Attrs.Ints(name)
	}
	starts, ends, axes, steps := list(1, "starts"), list(2, "ends"), list(3, "axes"), list(4, "")
	if len(starts) == 0 || len(ends) != len(starts) || hasInput(n, 3) && len(axes) != len(starts) || hasInput(n, 4) && len(steps) != len(starts) {
		return nil, false
	}
	for i, first := range starts {
		axis, step := i, 1
		if axes != nil && i < len(axes) {
			axis = axes[i]
		}
		if axis < 0 {
			axis += len(v)
		}
		if len(steps) > 0 {
			step = steps[i]
		}
		if axis < 0 || axis >= len(v) || step < 1 {
			return nil, false
		}
		size, end := v[axis].size, ends[i]
		if first < 0 {
			first += size
		}
		if end < 0 {
			end += size
		}
		first, end = max(first, 0), min(end, size)
		if first == 0 && end == size && step == 1 {
			continue
		}
		var take []int
		for k := first; k < end; k += step {
			take = append(take, k)
		}
		if len(take) == 0 {
			return nil, false
		}
		v = v.slice(axis, take)
	}
	return v, true
}
