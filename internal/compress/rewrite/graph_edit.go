package rewrite

import (
	"fmt"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// edit is a model being changed. Changed parts are copied first. Ids of values stay; new values
// follow the old ones.
type edit struct {
	m     *graph.Model
	g     *graph.Graph
	names map[string]bool
	made  []*graph.Node // producing node by value
	// first has new nodes before all others, after the new nodes that follow a node.
	first   []*graph.Node
	after   map[*graph.Node][]*graph.Node
	copies  map[*graph.Node]bool // nodes that were already copied
	removed map[*graph.Node]bool
	// ranges are the ranges of activations. activations has the quantisation of those that have
	// one, by float value.
	ranges      *activationRanges
	activations map[int]activationQuant
	parts       map[*tensor.Tensor]jointPart
	symmetric   map[int]bool // activations with a zero point of 0
	// dynamic has the outputs of DynamicQuantizeLinear by float value.
	dynamic map[int][]int
}

// activationQuant is the quantisation of an activation.
type activationQuant struct {
	id    int // of the quantised value
	scale float32
	zero  int64
}

func newEdit(m *graph.Model) *edit {
	g := *m.Main()
	g.Values, g.Nodes, g.Inputs, g.Outputs = slices.Clone(g.Values), slices.Clone(g.Nodes), slices.Clone(g.Inputs), slices.Clone(g.Outputs)
	out := weights.WithMain(m, &g)
	out.Opsets = maps.Clone(m.Opsets)
	e := &edit{m: out, g: &g, names: map[string]bool{}, after: map[*graph.Node][]*graph.Node{}, copies: map[*graph.Node]bool{}, removed: map[*graph.Node]bool{}}
	e.activations, e.parts, e.symmetric = map[int]activationQuant{}, map[*tensor.Tensor]jointPart{}, map[int]bool{}
	e.dynamic = map[int][]int{}
	e.made = weights.Producers(&g)
	for _, v := range g.Values {
		e.names[v.Name] = true
	}
	return e
}

// freshName returns an unused name from a base and a suffix.
func (e *edit) freshName(base, end string) string {
	s := base + end
	for k := 1; e.names[s]; k++ {
		s = fmt.Sprintf("%s%s_%d", base, end, k)
	}
	e.names[s] = true
	return s
}

// addValue adds a value.
func (e *edit) addValue(name string, t tensor.Type, shape []int) *graph.Value {
	v := &graph.Value{ID: len(e.g.Values), Name: name, Type: t, Shape: slices.Clone(shape), HasShape: shape != nil, Offset: -1}
	e.g.Values = append(e.g.Values, v)
	e.made = append(e.made, nil)
	return v
}

// addConst adds a constant.
func (e *edit) addConst(name string, c *tensor.Tensor) int {
	v := e.addValue(name, c.Type, c.Shape)
	v.Const, v.Quant, v.HasShape = c, c.Quant, true
	return v.ID
}

// mutableValue copies a value and returns the copy.
func (e *edit) mutableValue(id int) *graph.Value {
	v := *e.g.Values[id]
	e.g.Values[id] = &v
	return &v
}

// setConst replaces the constant of a value.
func (e *edit) setConst(id int, c *tensor.Tensor) {
	v := e.mutableValue(id)
	v.Const, v.Type, v.Shape, v.HasShape, v.Sparse, v.Offset = c, c.Type, c.Shape, true, nil, -1
	v.Quant = c.Quant
}

// mutableNode returns the node at a position, copied if necessary.
func (e *edit) mutableNode(i int) *graph.Node {
	n := e.g.Nodes[i]
	if e.copies[n] {
		return n
	}
	c := *n
	c.Inputs, c.Outputs, c.Attrs = slices.Clone(n.Inputs), slices.Clone(n.Outputs), maps.Clone(n.Attrs)
	e.copies[&c] = true
	e.g.Nodes[i] = &c
	for _, id := range c.Outputs {
		if id >= 0 && e.made[id] == n {
			e.made[id] = &c
		}
	}
	e.after[&c] = e.after[n]
	return &c
}

// insertAfter inserts a node after the producer of a value, or at the very beginning without a
// producer.
func (e *edit) insertAfter(n *graph.Node, behind int) {
	for _, id := range n.Outputs {
		if id >= 0 {
			e.made[id] = n
		}
	}
	e.copies[n] = true
	var from *graph.Node
	if behind >= 0 {
		from = e.made[behind]
	}
	if from == nil {
		e.first = append(e.first, n)
		return
	}
	for root, list := range e.after { // inserted nodes are in a list themselves
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

// readers returns the positions of nodes that read a value.
func (e *edit) readers(id int) (out []int) {
	for i, n := range e.g.Nodes {
		if slices.Contains(n.Inputs, id) {
			out = append(out, i)
		}
	}
	return out
}

// redirect makes the nodes that read a value read another one.
func (e *edit) redirect(from, to int) {
	for _, at := range e.readers(from) {
		n := e.mutableNode(at)
		for k, id := range n.Inputs {
			if id == from {
				n.Inputs[k] = to
			}
		}
	}
}

// visibleOutside reports whether a value is used outside of the main graph's nodes.
func (e *edit) visibleOutside(id int) bool { return usedOutside(e.m, e.g, id) }

// usedOutside reports whether a value is used outside of its graph's nodes: as an output, or
// captured by a subgraph.
func usedOutside(m *graph.Model, g *graph.Graph, id int) bool {
	return slices.Contains(g.Outputs, id) || slices.ContainsFunc(m.Graphs, func(b *graph.Graph) bool {
		return b.Parent == g && slices.ContainsFunc(b.Captures, func(c graph.Capture) bool { return c.Outer == id })
	})
}

// finish puts the nodes in order, drops unused nodes behind constants, and returns the model.
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
	nodes = slices.DeleteFunc(nodes, func(n *graph.Node) bool { return e.removed[n] })
	inside := map[*tensor.Tensor]bool{} // constants that subgraphs share with this graph
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
			return weights.MovesElements(n) && !read[n.Outputs[0]] && !e.visibleOutside(n.Outputs[0])
		})
		if len(nodes) == before {
			for id := range e.g.Values {
				if v := e.g.Values[id]; v.Const != nil && !inside[v.Const] && !read[id] && !e.visibleOutside(id) {
					v = e.mutableValue(id)
					v.Const, v.Sparse = nil, nil
				}
			}
			break
		}
	}
	e.g.Nodes = make([]*graph.Node, len(nodes))
	for i, n := range nodes {
		if n.Index != i || !e.copies[n] {
			c := *n
			c.Index = i
			n = &c
		}
		e.g.Nodes[i] = n
	}
	return e.m
}
