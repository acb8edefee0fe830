package openvino

import (
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// place classifies a counter's node.
type place int

const (
	elsewhere place = iota
	executed        // a node of the executed graph
	fused           // part of the one before it
)

// graphs combines both graphs: hints about executed nodes.
type graphs struct {
	read, ran *irGraph
	hints     []runlog.Hint // by layers of the executed graph
}

// newGraphs finds the model operators that executed layers compute.
func newGraphs(read, ran *irGraph, m *graph.Model) *graphs {
	g := &graphs{read: read, ran: ran, hints: make([]runlog.Hint, len(ran.layers))}
	var ops []op
	if m != nil && len(m.Graphs) > 0 {
		ops = opsOf(m.Main())
	}
	own := owners(read, ops)
	parts := make([][]int, len(ran.layers)) // operators that each executed layer does
	taken := make([]bool, len(ops))
	for i := range ran.layers {
		if ran.layers[i].constant || len(ran.layers[i].from) == 0 {
			continue
		}
		parts[i] = read.parts(&ran.layers[i], own, ops)
		for _, o := range parts[i] {
			taken[o] = true
		}
	}
	does := g.mains(ops, parts)
	g.between(ops, parts, taken, does)
	for i, list := range does {
		h, named := &g.hints[i], true
		for _, o := range list {
			named = named && ops[o].name != "" && m.Format == "onnx"
			h.Nodes = add(h.Nodes, ops[o].name)
			for _, t := range ops[o].out {
				h.Within = add(h.Within, t)
			}
		}
		// A name that the engine generated is not the model's, even if it looks like one.
		if !named && len(h.Within) > 0 {
			h.Nodes = h.Within[:1:1]
		}
	}
	g.tensors(ops, does)
	return g
}

// parts lists the operators merged into an executed layer. If no merged node belongs to an
// operator, it is the operator that the layer leads to.
func (g *irGraph) parts(l *layer, own []int, ops []op) (parts []int) {
	for _, name := range l.calls() {
		if at, ok := g.find(name); ok && own[at] >= 0 {
			parts = with(parts, own[at])
		}
	}
	if len(parts) > 0 {
		return parts
	}
	for _, name := range l.calls() {
		at, ok := g.find(name)
		if !ok {
			continue
		}
		o := g.becomes(at, own)
		if k := kindOf(g.layers[at].op); o < 0 || whole[k] && ops[o].kind != k && slices.ContainsFunc(ops, func(o op) bool { return o.kind == k }) {
			continue
		}
		own[at] = o
		parts = with(parts, o)
	}
	return parts
}

// tensors names the input and output tensors of executed layers: by the model's names if known,
// otherwise by the layers' names. Constants, and tensors computed from constants only, are
// skipped.
func (g *graphs) tensors(ops []op, does [][]int) {
	varies := g.ran.varies()
	outs := make([][]string, len(g.ran.layers))
	for i := range g.ran.layers {
		l := &g.ran.layers[i]
		var known []string
		if o := sink(ops, does[i]); o >= 0 {
			known = ops[o].out
		}
		if at, ok := g.read.byName[l.name]; ok && len(l.from) == 0 {
			for _, o := range g.read.layers[at].outs {
				known = append(known, o.names[:min(1, len(o.names))]...)
			}
		}
		for k := range l.outs {
			name := "openvino:" + l.name + "#" + strconv.Itoa(k)
			if k < len(known) {
				name = known[k]
			}
			outs[i] = append(outs[i], name)
		}
		if !varies[i] {
			continue
		}
		h := &g.hints[i]
		h.Outputs = outs[i]
		for _, f := range l.from {
			if f.layer >= 0 && f.layer < i && varies[f.layer] && f.out < len(outs[f.layer]) {
				h.Inputs = append(h.Inputs, outs[f.layer][f.out])
			}
		}
	}
}

// sink returns the operator of a set that all others in it lead to, -1 if absent. Its
// output is the output of a layer that computes the whole set.
func sink(ops []op, set []int) int {
	if len(set) == 0 {
		return -1
	}
	low, high := slices.Min(set), slices.Max(set)
	seen := map[int]bool{high: true}
	for walk := []int{high}; len(walk) > 0; {
		o := walk[len(walk)-1]
		walk = walk[:len(walk)-1]
		for _, f := range ops[o].from {
			if f >= low && f < high && !seen[f] {
				seen[f] = true
				walk = append(walk, f)
			}
		}
	}
	if slices.ContainsFunc(set, func(o int) bool { return !seen[o] }) {
		return -1
	}
	return high
}

func add(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// mains assigns each operator to one of the layers that compute it: the layer of its kind,
// otherwise the last one that does not only move data. The other layers prepare or post-process
// data.
func (g *graphs) mains(ops []op, parts [][]int) [][]int {
	winner := make([]int, len(ops))
	rank := make([]int, len(ops))
	for i, list := range parts {
		for _, o := range list {
			r := 2
			switch l := &g.ran.layers[i]; {
			case kindOf(l.op) == ops[o].kind:
				r = 3
			case passive[l.op]:
				r = 1
			}
			if r >= rank[o] {
				winner[o], rank[o] = i, r
			}
		}
	}
	out := make([][]int, len(parts))
	for i, list := range parts {
		for _, o := range list {
			if winner[o] == i {
				out[i] = append(out[i], o)
			}
		}
	}
	return out
}

// calls returns the names of an executed layer and of the nodes merged into it.
func (l *layer) calls() []string { return append([]string{l.name}, l.origins...) }

// made are the suffixes that OpenVINO adds to names of derived nodes.
var made = []string{
	"/WithoutBiases", "/DequantizationMultiply", "/DequantizationSubtract", "/DequantizationConvert", "_original", "/fq_input_0", "/1",
	"/sink_port_0", "/reduce", "/Split", "/FakeQuantize", "/MatMul", "/Add",
}

// find finds a layer by its name, or by the name without such a suffix.
func (g *irGraph) find(name string) (int, bool) {
	for range 4 {
		if i, ok := g.byName[name]; ok {
			return i, !g.layers[i].constant
		}
		cut := false
		for _, e := range made {
			if s, ok := strings.CutSuffix(name, e); ok && s != "" {
				name, cut = s, true
				break
			}
		}
		if !cut {
			return 0, false
		}
	}
	return 0, false
}

// whole are kinds that converters produce only from operators of that kind, if the model has
// them.
var whole = map[string]bool{"conv": true, "deconv": true, "resize": true, "maxpool": true, "avgpool": true}

// maxSteps bounds a graph traversal.
const maxSteps = 200

// becomes returns the single operator that the layer's output leads to, through layers without a
// known operator. Converters turn an operator into several layers, of which the last has its
// name. It returns -1 for several or none.
func (g *irGraph) becomes(i int, own []int) int {
	found := -1
	seen := map[int]bool{i: true}
	walk := []int{i}
	for n := 0; n < len(walk); n++ {
		if len(walk) > maxSteps {
			return -1
		}
		for _, to := range g.layers[walk[n]].to {
			switch {
			case seen[to]:
			case own[to] >= 0:
				if found >= 0 && found != own[to] {
					return -1
				}
				found = own[to]
			case g.layers[to].op == "Result":
				return -1
			default:
				seen[to] = true
				walk = append(walk, to)
			}
		}
	}
	return found
}

// passive are executed kinds that move or convert data for others.
var passive = map[string]bool{"Reorder": true, "Reshape": true, "Convert": true, "Input": true, "Output": true, "Parameter": true, "Result": true, "Broadcast": true}

// between assigns operators without a layer to unknown layers that lie on a data path from an
// operator before to an operator behind both. Whatever lies between known tensors computes the
// tensors read there. If several layers are possible, kinds decide.
func (g *graphs) between(ops []op, parts [][]int, taken []bool, does [][]int) {
	if len(ops) == 0 {
		return
	}
	above, below := nearestOps(ops, taken), beneath(ops, taken)
	before, behind := g.ran.around(parts)
	claims := map[int][]int{} // layers by operators
	can := map[int][]int{}
	for i := range g.ran.layers {
		l := &g.ran.layers[i]
		if l.constant || len(parts[i]) > 0 || passive[l.op] {
			continue
		}
		for o := range ops {
			if !taken[o] && meets(above[o], before[i]) && meets(below[o], behind[i]) {
				can[i] = append(can[i], o)
				claims[o] = append(claims[o], i)
			}
		}
	}
	for i := range g.ran.layers {
		var alone, alike []int
		for _, o := range can[i] {
			if len(claims[o]) == 1 {
				alone = append(alone, o)
			} else if ops[o].kind == kindOf(g.ran.layers[i].op) && !taken[o] {
				alike = append(alike, o)
			}
		}
		if len(alone) == 0 && len(alike) > 0 {
			alone = alike[:1]
		}
		for _, o := range alone {
			taken[o] = true
			does[i] = append(does[i], o)
		}
	}
}

// meets reports whether two sets intersect, or are both empty (the ends of the model).
func meets(a, b []int) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}

// around lists the nearest known operators before and behind each layer.
func (g *irGraph) around(parts [][]int) (before, behind [][]int) {
	before, behind = make([][]int, len(g.layers)), make([][]int, len(g.layers))
	for i := range g.layers {
		for _, f := range g.layers[i].from {
			if f.layer < 0 || f.layer >= i {
				continue
			}
			list := parts[f.layer]
			if len(list) == 0 {
				list = before[f.layer]
			}
			for _, o := range list {
				before[i] = with(before[i], o)
			}
		}
	}
	for i := len(g.layers) - 1; i >= 0; i-- {
		for _, to := range g.layers[i].to {
			if to <= i {
				continue
			}
			list := parts[to]
			if len(list) == 0 {
				list = behind[to]
			}
			for _, o := range list {
				behind[i] = with(behind[i], o)
			}
		}
	}
	return before, behind
}

// classify classifies a node of the counters and returns the model operators that it computes.
func (g *graphs) classify(name string) (runlog.Hint, place) {
	if g == nil {
		return runlog.Hint{Nodes: []string{name}}, elsewhere
	}
	at, ok := g.ran.byName[name]
	if !ok {
		return runlog.Hint{}, fused
	}
	return g.hints[at], executed
}
