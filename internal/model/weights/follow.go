package weights

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// seen is a constant as an operator reads it.
type seen struct {
	v view
	// q holds scales and zero points, qv the view that its axis counts in.
	q  *tensor.Quant
	qv view
	// blind says that scales or zero points are not known, rounded that codes have just been made of numbers.
	blind, rounded bool
}

// follower follows a value to the constant that its elements come from, through what moves all or some of them.
type follower struct {
	g    *graph.Graph
	made []*graph.Node
	s    *Source
	by   map[int]seen // what was followed
	deep int
}

// maxWay bounds the nodes between a constant and its operator.
const maxWay = 1000

// follow finds the constant of which a value has elements, each at most once, and where they lie in it; nil where there is
// none.
func follow(g *graph.Graph, made []*graph.Node, id int) (*Source, seen) {
	f := &follower{g: g, made: made, s: &Source{Value: -1}, by: map[int]seen{}}
	at, ok := f.value(id)
	if !ok || f.s.Value < 0 || at.v.count() > g.Values[f.s.Value].Const.Len() {
		return nil, seen{}
	}
	return f.s, at
}

func (f *follower) value(id int) (seen, bool) {
	if at, ok := f.by[id]; ok {
		return at, true
	}
	if id < 0 || id >= len(f.g.Values) || f.deep > maxWay {
		return seen{}, false
	}
	f.deep++
	defer func() { f.deep-- }()
	at, ok := seen{}, false
	switch v := f.g.Values[id]; {
	case v.Const != nil:
		at, ok = f.constant(id)
	case id < len(f.made) && f.made[id] != nil && f.made[id].Outputs[0] == id: // nodes are in order, so that the way ends
		if at, ok = f.node(f.made[id]); ok {
			f.s.Chain = append(f.s.Chain, f.made[id])
		}
	}
	if ok {
		f.by[id] = at
	}
	return at, ok
}

// constant is where the way ends: at one constant only.
func (f *follower) constant(id int) (seen, bool) {
	c := f.g.Values[id]
	if Behind(f.g, nil, id) == nil || f.s.Value >= 0 && f.s.Value != id {
		return seen{}, false
	}
	f.s.Value = id
	at := seen{v: whole(c.Const.Shape)}
	if c.Quant != nil && c.Const.Type.IsInteger() && len(c.Quant.Scale) > 0 {
		at.q, at.qv = c.Quant, at.v
	}
	return at, true
}

// node is what a node makes of what it reads.
func (f *follower) node(n *graph.Node) (seen, bool) {
	if joins(n) {
		return f.concat(n)
	}
	if !Passes(n) && !cuts(n) {
		return seen{}, false
	}
	at, ok := f.value(n.Inputs[0])
	if !ok {
		return seen{}, false
	}
	var from *graph.Node // what made it
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
	case "QuantizeLinear": // what is quantised and dequantised again keeps its zeros
		at.rounded, ok = true, floats
	case "DequantizeLinear":
		if from != nil && from.Op == "QuantizeLinear" {
			at.rounded = false
			break
		}
		ok = at.v.plain() && !at.rounded
		at.qv = at.v
		var known bool
		if at.q, known = dequantizer(f.g, n, len(at.v)); !known {
			at.blind = true
		}
	}
	return at, ok
}

// concat puts together what was taken apart.
func (f *follower) concat(n *graph.Node) (seen, bool) {
	var parts []view
	var at seen
	count := 0
	for i, id := range n.Inputs {
		p, ok := f.value(id)
		if !ok || i > 0 && (p.q != at.q || p.blind != at.blind || p.rounded != at.rounded) {
			return seen{}, false
		}
		at, parts = p, append(parts, p.v)
		if count += p.v.count(); count > f.g.Values[f.s.Value].Const.Len() { // some would be there twice
			return seen{}, false
		}
	}
	axis := n.Attrs.Int("axis", 1)
	if axis < 0 {
		axis += len(parts[0])
	}
	if axis < 0 || axis >= len(parts[0]) {
		return seen{}, false
	}
	var ok bool
	at.v, ok = concat(parts, axis)
	return at, ok
}

// sliced is what Slice leaves of a view. False where it is not known or has nothing.
func sliced(g *graph.Graph, n *graph.Node, v view) (view, bool) {
	list := func(input int, name string) []int {
		if has(n, input) {
			x, _ := ints(g, n, input)
			return x
		}
		return n.Attrs.Ints(name)
	}
	starts, ends, axes, steps := list(1, "starts"), list(2, "ends"), list(3, "axes"), list(4, "")
	if len(starts) == 0 || len(ends) != len(starts) || has(n, 3) && len(axes) != len(starts) || has(n, 4) && len(steps) != len(starts) {
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
