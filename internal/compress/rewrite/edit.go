package rewrite

import (
	"fmt"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// edit is a model under change. What is changed is copied first; ids of values stay, and new values
// follow the old ones.
type edit struct {
	m     *graph.Model
	g     *graph.Graph
	names map[string]bool
	made  []*graph.Node // nodes by what they make
	// first stand before all other nodes, after follow a node.
	first []*graph.Node
	after map[*graph.Node][]*graph.Node
	own   map[*graph.Node]bool // nodes that are copies
	gone  map[*graph.Node]bool
	// ranges are those of activations, coded the quantisation of those that have one, by the value of
	// floats.
	ranges *ranges
	coded  map[int]coded
	parts  map[*tensor.Tensor]part
	even   map[int]bool // activations whose zero is code 0
}

// coded is the quantisation of an activation.
type coded struct {
	id    int // of the codes
	scale float32
	zero  int64
}

func newEdit(m *graph.Model) *edit {
	out := *m
	out.Content, out.Close, out.Opsets = nil, nil, maps.Clone(m.Opsets)
	out.Graphs = slices.Clone(m.Graphs)
	g := *m.Main()
	g.Values, g.Nodes, g.Inputs, g.Outputs = slices.Clone(g.Values), slices.Clone(g.Nodes), slices.Clone(g.Inputs), slices.Clone(g.Outputs)
	out.Graphs[0] = &g
	weights.Adopt(out.Graphs, m.Main(), &g)
	e := &edit{m: &out, g: &g, names: map[string]bool{}, after: map[*graph.Node][]*graph.Node{}, own: map[*graph.Node]bool{}, gone: map[*graph.Node]bool{}}
	e.made = weights.Makers(&g)
	for _, v := range g.Values {
		e.names[v.Name] = true
	}
	return e
}

// name is a new name that begins like another.
func (e *edit) name(base, end string) string {
	s := base + end
	for k := 1; e.names[s]; k++ {
		s = fmt.Sprintf("%s%s_%d", base, end, k)
	}
	e.names[s] = true
	return s
}

// add adds a value.
func (e *edit) add(name string, t tensor.Type, shape []int) *graph.Value {
	v := &graph.Value{ID: len(e.g.Values), Name: name, Type: t, Shape: slices.Clone(shape), HasShape: shape != nil, Offset: -1}
	e.g.Values = append(e.g.Values, v)
	e.made = append(e.made, nil)
	return v
}

// constant adds a constant.
func (e *edit) constant(name string, c *tensor.Tensor) int {
	v := e.add(name, c.Type, c.Shape)
	v.Const, v.Quant, v.HasShape = c, c.Quant, true
	return v.ID
}

// value is a value that may be written to.
func (e *edit) value(id int) *graph.Value {
	v := *e.g.Values[id]
	e.g.Values[id] = &v
	return &v
}

// set gives a value another constant.
func (e *edit) set(id int, c *tensor.Tensor) {
	v := e.value(id)
	v.Const, v.Type, v.Shape, v.HasShape, v.Sparse, v.Offset = c, c.Type, c.Shape, true, nil, -1
	v.Quant = c.Quant
}

// node is the node at a position, to be written to.
func (e *edit) node(i int) *graph.Node {
	n := e.g.Nodes[i]
	if e.own[n] {
		return n
	}
	c := *n
	c.Inputs, c.Outputs, c.Attrs = slices.Clone(n.Inputs), slices.Clone(n.Outputs), maps.Clone(n.Attrs)
	e.own[&c] = true
	e.g.Nodes[i] = &c
	for _, id := range c.Outputs {
		if id >= 0 && e.made[id] == n {
			e.made[id] = &c
		}
	}
	e.after[&c] = e.after[n]
	return &c
}

// place puts a new node after the one that makes a value, at the very beginning where none does.
func (e *edit) place(n *graph.Node, behind int) {
	for _, id := range n.Outputs {
		if id >= 0 {
			e.made[id] = n
		}
	}
	e.own[n] = true
	var from *graph.Node
	if behind >= 0 {
		from = e.made[behind]
	}
	if from == nil {
		e.first = append(e.first, n)
		return
	}
	for root, list := range e.after { // what was placed itself stands in a list
		if i := slices.Index(list, from); i >= 0 {
			e.after[root] = slices.Insert(list, i+1, n)
			return
		}
	}
	if i := slices.Index(e.first, from); i >= 0 {
		e.first = slices.Insert(e.first, i+1, n)
		return
	}
	e.after[from] = append([]*graph.Node{n}, e.after[from]...)
}

// readers are the positions of nodes that read a value.
func (e *edit) readers(id int) (out []int) {
	for i, n := range e.g.Nodes {
		if slices.Contains(n.Inputs, id) {
			out = append(out, i)
		}
	}
	return out
}

// outside reports whether a value is seen outside the main graph's nodes: an output, or captured by a body.
func (e *edit) outside(id int) bool {
	if slices.Contains(e.g.Outputs, id) {
		return true
	}
	for _, b := range e.m.Graphs[1:] {
		if b.Parent == e.g && slices.ContainsFunc(b.Captures, func(c graph.Capture) bool { return c.Outer == id }) {
			return true
		}
	}
	return false
}

// finish puts the nodes in order, leaves out those behind constants that nobody reads any more, and
// gives back the model.
func (e *edit) finish() *graph.Model {
	var nodes []*graph.Node
	var put func(n *graph.Node)
	put = func(n *graph.Node) {
		nodes = append(nodes, n)
		for _, next := range e.after[n] {
			put(next)
		}
	}
	for _, n := range e.first {
		put(n)
	}
	for _, n := range e.g.Nodes {
		put(n)
	}
	nodes = slices.DeleteFunc(nodes, func(n *graph.Node) bool { return e.gone[n] })
	inside := map[*tensor.Tensor]bool{} // constants that bodies have of this graph
	for _, b := range e.m.Graphs[1:] {
		for _, v := range b.Values {
			inside[v.Const] = true
		}
	}
	for {
		read := map[int]bool{}
		for _, n := range nodes {
			for _, id := range n.Inputs {
				read[id] = true
			}
		}
		before := len(nodes)
		nodes = slices.DeleteFunc(nodes, func(n *graph.Node) bool {
			return weights.Moves(n) && !read[n.Outputs[0]] && !e.outside(n.Outputs[0])
		})
		if len(nodes) == before {
			for id := range e.g.Values {
				if v := e.g.Values[id]; v.Const != nil && !inside[v.Const] && !read[id] && !e.outside(id) {
					v = e.value(id)
					v.Const, v.Sparse = nil, nil
				}
			}
			break
		}
	}
	e.g.Nodes = make([]*graph.Node, len(nodes))
	for i, n := range nodes {
		if n.Index != i || !e.own[n] {
			c := *n
			c.Index = i
			n = &c
		}
		e.g.Nodes[i] = n
	}
	return e.m
}
