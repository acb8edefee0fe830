package align

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// node is a layer in the graph.
type node struct {
	layer int
	class string
	role  role
	name  string
	// ins are the nodes that make its operands, in order, -1 for inputs of the model; constants
	// have none. outs are those that read its results.
	ins, outs []int
	// before and after are the nearest core nodes that it reads from, and that read from it.
	before, after []int
	// owner is the core node that a node of another role belongs to, -1 for none.
	owner int
	// context hashes the classes of the core nodes within some steps: before, after, and in both
	// directions, each for fewer and for more steps.
	context [sides][2]uint64
	// window, width and extent describe the operator: kernel size and stride, channels, and size of
	// the result without batch.
	window, width, extent string
}

// network is the graph of a profile's layers.
type network struct {
	p       *profile.Profile
	nodes   []node // by layer
	order   []int  // every node after those that it reads from
	partner []int  // node of the other network, -1 for none
	other   *network
}

func newGraph(p *profile.Profile) *network {
	g := &network{p: p, nodes: make([]node, len(p.Layers)), partner: make([]int, len(p.Layers))}
	type tensor struct{ graph, name string }
	makers := map[tensor]int{}
	for i := range p.Layers {
		l := &p.Layers[i]
		g.partner[i] = -1
		g.nodes[i] = describe(l, i)
		for k := range l.Outputs {
			if name := l.Outputs[k].Name; name != "" {
				makers[tensor{l.Graph, name}] = i
			}
		}
	}
	for i := range p.Layers {
		l, n := &p.Layers[i], &g.nodes[i]
		data := 0
		for k := range l.Inputs {
			t := &l.Inputs[k]
			if t.Constant || t.Absent || t.Name == "" {
				continue
			}
			data++
			m, ok := makers[tensor{l.Graph, t.Name}]
			if !ok || m == i {
				m = -1
			} else {
				g.nodes[m].outs = append(g.nodes[m].outs, i)
			}
			n.ins = append(n.ins, m)
		}
		if arithmetic[n.class] && data == 1 && len(l.Inputs) == 2 {
			n.role = satellite
		}
		if l.Constant && n.role == core {
			n.role = conversion // computed once, such as weights that are unpacked
		}
	}
	g.sort()
	g.reach()
	g.contexts()
	return g
}

// describe takes from a layer what is compared.
func describe(l *profile.Layer, i int) node {
	n := node{layer: i, class: classOf(l.Op), name: l.Name, owner: -1}
	n.role = roles[n.class]
	n.window = window2(l)
	for _, t := range l.Outputs[:min(1, len(l.Outputs))] {
		n.width, n.extent = widthOf(l, t.Shape), extentOf(t.Shape)
	}
	return n
}

// window2 describes kernel size and stride: height and width do not tell the formats apart where
// they are equal, and sizes of one are left out.
func window2(l *profile.Layer) string {
	var parts []string
	for _, key := range []string{"kernel", "filter", "stride"} {
		v := l.Option(key)
		if v == "" || strings.Trim(v, "1x,") == "" {
			continue
		}
		ds := strings.FieldsFunc(v, func(r rune) bool { return r == 'x' || r == ',' })
		slices.Sort(ds)
		if key == "filter" {
			key = "kernel"
		}
		parts = append(parts, key[:1]+strings.Join(ds, ","))
	}
	if len(parts) > 0 || len(l.Inputs) < 2 {
		return strings.Join(parts, " ")
	}
	return ""
}

// widthOf is the number of channels of a result: the dimension that is also one of the weights', or
// the last one.
func widthOf(l *profile.Layer, shape []int64) string {
	if len(shape) < 2 {
		return ""
	}
	for k := range l.Inputs {
		t := &l.Inputs[k]
		if !t.Constant || len(t.Shape) < 2 {
			continue
		}
		for _, d := range []int64{shape[1], shape[len(shape)-1]} {
			if d > 1 && slices.Contains(t.Shape, d) {
				return strconv.FormatInt(d, 10)
			}
		}
	}
	return strconv.FormatInt(shape[len(shape)-1], 10)
}

// extentOf is the size of a result without the batch, in any layout.
func extentOf(shape []int64) string {
	if len(shape) < 2 {
		return ""
	}
	ds := slices.Clone(shape[1:])
	slices.Sort(ds)
	return fmt.Sprint(ds)
}

// sort orders the nodes by a depth-first search from the results, so that the order of a file does
// not matter. Operands of commutative operators come by the size of what makes them.
func (g *network) sort() {
	size := make([]int, len(g.nodes))
	for i := range g.nodes { // layers come after those that they read from, in most files
		size[i] = 1
		for _, m := range g.nodes[i].ins {
			if m >= 0 {
				size[i] = min(size[i]+size[m], 1<<40)
			}
		}
	}
	seen := make([]bool, len(g.nodes))
	type frame struct {
		node int
		ins  []int
	}
	visit := func(root int) {
		if seen[root] {
			return
		}
		seen[root] = true
		stack := []frame{{root, g.operands(root, size)}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.ins) == 0 {
				g.order = append(g.order, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			m := top.ins[0]
			top.ins = top.ins[1:]
			if m >= 0 && !seen[m] {
				seen[m] = true
				stack = append(stack, frame{m, g.operands(m, size)})
			}
		}
	}
	for i := range g.nodes {
		if len(g.nodes[i].outs) == 0 {
			visit(i)
		}
	}
	for i := range g.nodes { // cycles, in hostile files
		visit(i)
	}
}

func (g *network) operands(i int, size []int) []int {
	n := &g.nodes[i]
	if !commutative[n.class] {
		return n.ins
	}
	out := slices.Clone(n.ins)
	slices.SortStableFunc(out, func(a, b int) int {
		if a < 0 || b < 0 {
			return cmp.Compare(a, b)
		}
		return cmp.Or(cmp.Compare(size[b], size[a]), cmp.Compare(g.nodes[a].class, g.nodes[b].class))
	})
	return out
}

// inOrder lists the nodes of a role.
func (g *network) inOrder(r role) []int {
	var out []int
	for _, i := range g.order {
		if g.nodes[i].role == r {
			out = append(out, i)
		}
	}
	return out
}

// dynamic reports whether a node quantises while the model runs: it belongs to what it is for.
func (g *network) dynamic(i int) bool {
	return strings.Contains(strings.ToLower(g.p.Layers[g.nodes[i].layer].Op), "dynamicquantize") && g.nodes[i].role == conversion
}

// maxNear bounds how many core nodes a node has on one side.
const maxNear = 64

// reach finds the core nodes around each node, and the owners of the others.
func (g *network) reach() {
	for _, i := range g.order {
		n := &g.nodes[i]
		for _, m := range n.ins {
			if m < 0 || m == i {
				continue
			}
			if g.nodes[m].role == core {
				n.before = near(n.before, m)
			} else {
				n.before = near(n.before, g.nodes[m].before...)
			}
		}
	}
	for _, i := range slices.Backward(g.order) {
		n := &g.nodes[i]
		for _, c := range n.outs {
			if g.nodes[c].role == core {
				n.after = near(n.after, c)
			} else {
				n.after = near(n.after, g.nodes[c].after...)
			}
		}
	}
	prepared := make([]bool, len(g.nodes)) // made from what is quantised for a consumer
	for _, i := range g.order {
		n := &g.nodes[i]
		if n.role == core {
			continue
		}
		prepared[i] = g.dynamic(i)
		if !prepared[i] && len(n.ins) > 0 {
			prepared[i] = !slices.ContainsFunc(n.ins, func(m int) bool { return m < 0 || !prepared[m] })
		}
		switch {
		case !prepared[i] && len(n.before) > 0:
			n.owner = n.before[0]
			for _, m := range n.ins { // the nearest one along the first operand that is not prepared
				if m >= 0 && !prepared[m] {
					n.owner = m
					if g.nodes[m].role != core {
						n.owner = g.nodes[m].owner
					}
					break
				}
			}
		case len(n.after) > 0:
			n.owner = n.after[0]
		}
	}
}

func near(have []int, more ...int) []int {
	for _, m := range more {
		if len(have) < maxNear && !slices.Contains(have, m) {
			have = append(have, m)
		}
	}
	return have
}

// sides are the directions of contexts.
const sides = 3

// contextSteps is the number of steps of each context.
var contextSteps = [sides][2]int{{3, 6}, {3, 6}, {2, 4}}

// contexts hashes the classes around each node.
func (g *network) contexts() {
	for side, steps := range contextSteps {
		now := make([]uint64, len(g.nodes))
		for i := range g.nodes {
			now[i] = hash(g.nodes[i].class)
		}
		for step := 1; step <= steps[1]; step++ {
			next := make([]uint64, len(g.nodes))
			for i := range g.nodes {
				n := &g.nodes[i]
				var hs []uint64
				if side != 1 {
					hs = around(hs, now, n.before)
				}
				if side != 0 {
					hs = around(append(hs, 0), now, n.after)
				}
				next[i] = hash(n.class, hs...)
			}
			now = next
			for k, s := range steps {
				if s == step {
					for i := range g.nodes {
						g.nodes[i].context[side][k] = now[i]
					}
				}
			}
		}
	}
}

// around appends the hashes of nodes, in ascending order.
func around(to, now []uint64, ns []int) []uint64 {
	from := len(to)
	for _, m := range ns {
		to = append(to, now[m])
	}
	slices.Sort(to[from:])
	return to
}

func hash(class string, around ...uint64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(class))
	var b [8]byte
	for _, v := range around {
		for k := range b {
			b[k] = byte(v >> (8 * k))
		}
		_, _ = h.Write(b[:])
	}
	return h.Sum64()
}

// owned lists the nodes that are no core by their owners, -1 for none, in order.
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
