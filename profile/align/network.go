package align

import (
	"cmp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// edge leads to the node that makes an operand, -1 for inputs of the graph.
type edge struct {
	from int
	// output is which of the results of the node it is, or which input of the graph.
	output int
	// helper marks what carries no data: scales, zero points, and what follows from constants.
	helper bool
}

// use is an operand of a consumer.
type use struct{ by, operand int }

// node is a layer in the graph.
type node struct {
	layer int64
	class string
	role  role
	names []name
	ins   []edge // operands in order, without constants
	outs  []use
	// principal is the node that makes the first operand with data, -1 for none.
	principal int
	// helper marks nodes all of whose operands carry no data.
	helper bool
	// owner is the core node that a node of another role belongs to, -1 for none.
	owner int
	shape description
	// result is the place among the results of the model, from 1, 0 for none.
	result int
}

// network is the graph of the layers of one graph of a model.
type network struct {
	p       *profile.Profile
	nodes   []node
	order   []int   // every node after those that it reads from
	edges   int     // between nodes
	partner []int   // node of the other network, -1 for none
	how     []stage // by node, how its partner was found
}

// newNetwork makes the graph of some layers of a profile.
func newNetwork(p *profile.Profile, layers []int64) *network {
	n := len(layers)
	g := &network{p: p, nodes: make([]node, n), partner: make([]int, n), how: make([]stage, n)}
	g.connect(layers)
	g.sort()
	for _, i := range g.order {
		g.assign(i)
	}
	g.owners()
	return g
}

// lite reports whether the operators are those of TFLite.
func (g *network) lite() bool { return len(g.nodes) > 0 && lite(&g.p.Layers[g.nodes[0].layer]) }

// made is a result of a node.
type made struct{ node, output int }

// connect makes the nodes and their edges. A name may be that of several tensors: the one made
// last before its reader counts.
func (g *network) connect(layers []int64) {
	makers := map[string]made{}
	for i, l := range layers {
		g.partner[i] = -1
		g.nodes[i] = newNode(&g.p.Layers[l], l)
		for k := range g.p.Layers[l].Outputs {
			if name := g.p.Layers[l].Outputs[k].Name; name != "" {
				makers[name] = made{i, k}
			}
		}
	}
	inputs, results := places(g.p.Model.Inputs), places(g.p.Model.Outputs)
	before := map[string]made{}
	for i, at := range layers {
		l := &g.p.Layers[at]
		for k := range l.Inputs {
			t := &l.Inputs[k]
			if t.Constant || t.Absent || t.Name == "" {
				continue
			}
			m, ok := before[t.Name]
			if !ok {
				m, ok = makers[t.Name]
			}
			e := edge{from: -1, output: inputs[t.Name]}
			if ok && m.node != i {
				e = edge{from: m.node, output: m.output, helper: m.output > 0 && dynamicQuantize(g.p.Layers[layers[m.node]].Op)}
				g.nodes[m.node].outs = append(g.nodes[m.node].outs, use{i, len(g.nodes[i].ins)})
				g.edges++
			}
			g.nodes[i].ins = append(g.nodes[i].ins, e)
		}
		for k := range l.Outputs {
			if name := l.Outputs[k].Name; name != "" {
				before[name] = made{i, k}
				g.nodes[i].result = max(g.nodes[i].result, results[name])
			}
		}
	}
}

// places numbers tensors from 1 by their names.
func places(ts []profile.Tensor) map[string]int {
	out := map[string]int{}
	for k := range ts {
		out[ts[k].Name] = k + 1
	}
	return out
}

func dynamicQuantize(op string) bool {
	return strings.Contains(strings.ToLower(op), "dynamicquantizelinear")
}

func newNode(l *profile.Layer, at int64) node {
	class := classOf(l.Op)
	return node{layer: at, class: class, role: roles[class], names: namesOf(l), principal: -1, owner: -1, shape: describe(l)}
}

// sizes counts the operators before and at a node, with those on several paths on each of them.
// Exporters agree in the heavy ones, such as convolutions.
type sizes struct{ heavy, core int }

const maxSize = 1 << 40

func (s *sizes) add(t sizes) {
	s.heavy, s.core = min(s.heavy+t.heavy, maxSize), min(s.core+t.core, maxSize)
}

// sort orders the nodes by a depth-first search from the results, so that the order of a file does
// not matter. Operands of commutative operators come by the number of nodes before them.
func (g *network) sort() {
	size, id := make([]sizes, len(g.nodes)), make([]uint64, len(g.nodes))
	var around []uint64
	for i := range g.nodes { // layers come after those that they read from, in most files
		if g.nodes[i].role == core {
			size[i].core = 1
		}
		if heavy[g.nodes[i].class] {
			size[i].heavy = 1
		}
		around = around[:0]
		for _, e := range g.nodes[i].ins {
			if e.from >= 0 {
				size[i].add(size[e.from])
				around = append(around, id[e.from])
			}
		}
		id[i] = mix(g.nodes[i].shape.exact, around)
	}
	var roots []int
	for i := range g.nodes {
		if len(g.nodes[i].outs) == 0 {
			roots = append(roots, i)
		}
	}
	// Outputs may stand in any order in a file, and formats have other operators around them.
	sorting.Stable(roots, func(a, b int) int {
		return cmp.Or(cmp.Compare(size[b].heavy, size[a].heavy), cmp.Compare(g.nodes[a].class, g.nodes[b].class), cmp.Compare(g.nodes[a].shape.extent, g.nodes[b].shape.extent),
			cmp.Compare(size[b].core, size[a].core),
			cmp.Compare(g.nodes[a].result, g.nodes[b].result), cmp.Compare(id[a], id[b]))
	})
	for i := range g.nodes { // cycles, in hostile files
		roots = append(roots, i)
	}
	g.search(roots, size)
}

// search appends nodes to the order, those that they read from before them.
func (g *network) search(roots []int, size []sizes) {
	type frame struct {
		node int
		ins  []edge
	}
	seen := make([]bool, len(g.nodes))
	var stack []frame
	for _, root := range roots {
		if seen[root] {
			continue
		}
		seen[root] = true
		stack = append(stack, frame{root, g.operands(root, size)})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.ins) == 0 {
				g.order = append(g.order, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			m := top.ins[0].from
			top.ins = top.ins[1:]
			if m >= 0 && !seen[m] {
				seen[m] = true
				stack = append(stack, frame{m, g.operands(m, size)})
			}
		}
	}
}

func (g *network) operands(i int, size []sizes) []edge {
	n := &g.nodes[i]
	if !commutative[n.class] {
		return n.ins
	}
	out := slices.Clone(n.ins)
	sorting.Stable(out, func(a, b edge) int {
		if a.from < 0 || b.from < 0 {
			return cmp.Compare(a.from, b.from)
		}
		x, y := size[a.from], size[b.from]
		return cmp.Or(cmp.Compare(y.heavy, x.heavy), cmp.Compare(y.core, x.core), cmp.Compare(g.nodes[a.from].class, g.nodes[b.from].class))
	})
	return out
}

// assign finds the final role of a node, after those that it reads from.
func (g *network) assign(i int) {
	n := &g.nodes[i]
	l := &g.p.Layers[n.layer]
	data := 0
	for k := range n.ins {
		e := &n.ins[k]
		e.helper = e.helper || e.from >= 0 && g.nodes[e.from].helper
		if e.helper {
			continue
		}
		if data++; data == 1 {
			n.principal = e.from
		}
	}
	switch {
	case l.Constant || data == 0 && (len(l.Inputs) > 0 || n.class == "constant"):
		// Computed once, such as weights that are unpacked, or for a consumer, such as its scale.
		n.helper, n.role = true, conversion
	case arithmetic[n.class] && data == 1 && len(l.Inputs) == 2:
		n.role = satellite
	}
}

// owners finds the core nodes that the others belong to: the one before them along the data; of
// what is computed for a consumer that of the consumer.
func (g *network) owners() {
	at := make([]int, len(g.nodes))
	for k, i := range g.order {
		at[i] = k
		n := &g.nodes[i]
		if m := n.principal; m >= 0 && n.role != core && !n.helper && !g.leads(i) && !dynamicQuantize(g.p.Layers[n.layer].Op) {
			n.owner = g.before(m)
		}
	}
	for _, i := range slices.Backward(g.order) {
		n := &g.nodes[i]
		if n.role == core || n.owner >= 0 {
			continue
		}
		for _, u := range n.outs {
			c := u.by
			if g.nodes[c].role != core {
				c = g.nodes[c].owner
			}
			if c >= 0 && (n.owner < 0 || at[c] < at[n.owner]) {
				n.owner = c
			}
		}
	}
}

// leads reports whether a node belongs to the operator behind it: its padding or its dilation.
func (g *network) leads(i int) bool {
	n := &g.nodes[i]
	if len(n.outs) != 1 {
		return false
	}
	next := g.nodes[n.outs[0].by].class
	return n.class == "spacetobatchnd" || n.class == "pad" && (next == "conv" || next == "spacetobatchnd" || next == "maxpool" || next == "averagepool")
}

// before is the core node at or before a node along the data, -1 for none.
func (g *network) before(m int) int {
	if m >= 0 && g.nodes[m].role != core {
		return g.nodes[m].owner
	}
	return m
}

// owned lists the nodes of other roles than core by their owners, -1 for none, in order.
func (g *network) owned() map[int][]int {
	out := map[int][]int{}
	for _, i := range g.order {
		n := &g.nodes[i]
		if n.role == core {
			continue
		}
		owner := n.owner
		if owner >= 0 && g.partner[owner] < 0 {
			owner = -1 // what belongs to a node without a partner may have one
		}
		out[owner] = append(out[owner], i)
	}
	return out
}
