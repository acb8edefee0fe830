package join

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// This file finds nodes by the tensors that executed layers read and make, where the engine
// tells these: the graph that it executes has the model's tensors at places, and between
// two of these an executed layer does what the model does there.

// converts are operators that engines put in by themselves: they bring a tensor into another
// layout, order or type.
var converts = map[string]bool{
	"reorderinput": true, "reorderoutput": true, "reorder": true, "reformat": true, "transpose": true, "permute": true, "cast": true, "convert": true,
	"quantizelinear": true, "dequantizelinear": true, "quantize": true, "dequantize": true, "reshape": true, "squeeze": true, "unsqueeze": true,
	"identity": true, "copy": true, "memcpyfromhost": true, "memcpytohost": true, "memcpy": true, "layout": true, "pack": true,
}

// opaque are operators whose names do not say what they do: small ones that an engine compiled
// together, and limits and steps of numbers.
var opaque = map[string]bool{"subgraph": true, "fakequantize": true}

// graph is the graph that an engine executes.
type graph struct {
	ins, outs [][]string     // of rows
	maker     map[string]int // row that makes a tensor; -1 where several do
	users     map[string][]int
	means     map[string]string // the model's tensor that one of the engine's is, in whatever form
	kind      map[string]string // element types
}

// maxRounds bounds how often what was found leads on to more.
const maxRounds = 64

// executed looks at the graph that the engine executes; nil where it does not tell.
func (f *finder) executed() *graph {
	g := &graph{ins: make([][]string, len(f.rows)), outs: make([][]string, len(f.rows)), maker: map[string]int{}, users: map[string][]int{}, means: map[string]string{}, kind: map[string]string{}}
	known := 0
	for r := range f.rows {
		h := f.hint(r)
		g.ins[r], g.outs[r] = h.Inputs, h.Outputs
		if len(h.Inputs) > 0 {
			known++
		}
		for i, t := range h.Outputs {
			if _, twice := g.maker[t]; twice {
				g.maker[t] = -1
				continue
			}
			g.maker[t] = r
			if len(f.rows[r].Outputs) == len(h.Outputs) {
				g.kind[t] = f.rows[r].Outputs[i].DType
			}
		}
		for _, t := range h.Inputs {
			g.users[t] = append(g.users[t], r)
		}
	}
	if known == 0 {
		return nil
	}
	for r := range f.rows {
		for _, t := range slices.Concat(g.ins[r], g.outs[r]) {
			f.meant(g, t)
		}
	}
	return g
}

// meant finds the model's tensor of the name that one of the engine's has, with or without what
// engines add.
func (f *finder) meant(g *graph, name string) {
	if name == "" || g.means[name] != "" {
		return
	}
	for _, s := range append([]string{name}, stems(name)...) {
		if f.exists(s) {
			g.means[name] = s
			return
		}
	}
}

// exists reports whether the model has a tensor.
func (f *finder) exists(name string) bool {
	if _, ok := f.tensors[name]; ok {
		return true
	}
	return len(f.readers[name]) > 0
}

// flows reports whether a tensor of the engine is data: neither a constant of the model nor
// made of constants alone.
func (f *finder) flows(g *graph, t string) bool {
	r, made := g.maker[t]
	for depth := 0; made && r >= 0 && depth < 8; depth++ {
		// What was made of a constant is one.
		if len(f.out[r].Layers) > 0 || len(g.ins[r]) != 1 || !converts[plain(f.rows[r].Op)] {
			return true
		}
		t = g.ins[r][0]
		r, made = g.maker[t]
	}
	if made {
		return true
	}
	m := g.means[t]
	return m != "" && !f.constant(m)
}

// constant reports whether one of the model's tensors is a constant, or follows from constants.
func (f *finder) constant(name string) bool {
	if l, ok := f.tensors[name]; ok {
		return f.fixed[l]
	}
	for _, l := range f.readers[name] {
		for _, t := range f.model[l].Inputs {
			if t.Name == name {
				return t.Constant
			}
		}
	}
	return false
}

// data are the inputs of a row that are no constants.
func (f *finder) data(g *graph, row int) (out []string) {
	for _, t := range g.ins[row] {
		if t != "" && f.flows(g, t) {
			out = append(out, t)
		}
	}
	return out
}

// reads are the tensors that a set of layers reads from outside and that are no constants, in
// their order.
func (f *finder) reads(set []int) (out []string) {
	made := map[string]bool{}
	for _, l := range set {
		for _, t := range f.model[l].Outputs {
			made[t.Name] = true
		}
	}
	sorted := slices.Clone(set)
	slices.Sort(sorted)
	for _, l := range sorted {
		for _, t := range f.model[l].Inputs {
			if t.Name != "" && !t.Absent && !t.Constant && !made[t.Name] && !f.constant(t.Name) && !slices.Contains(out, t.Name) {
				out = append(out, t.Name)
			}
		}
	}
	return out
}

// byGraph lets what is known of some rows lead on to their neighbours.
func (f *finder) byGraph(g *graph) {
	if g == nil {
		return
	}
	for range maxRounds {
		before := len(g.means) + f.taken
		for r := range f.rows {
			f.backward(g, r)
		}
		for r := range f.rows {
			f.forward(g, r)
			f.between(g, r)
		}
		if len(g.means)+f.taken == before && !f.nothing(g) {
			break
		}
	}
	for r := range f.rows {
		f.weights(r)
		f.serve(g, r)
	}
}

// nothing finds rows that have no node left to do, since all that read their tensor are done
// elsewhere: they bring it into another form. It reports whether there is one more.
func (f *finder) nothing(g *graph) bool {
	found := false
	for r := range f.rows {
		ins, outs := f.data(g, r), g.outs[r]
		if len(f.out[r].Layers) > 0 || !opaque[plain(f.rows[r].Op)] || len(ins) != 1 || len(outs) != 1 || g.means[outs[0]] != "" {
			continue
		}
		m := g.means[ins[0]]
		if m == "" || slices.ContainsFunc(f.readers[m], func(l int) bool { return f.owner[l] < 0 && !f.model[l].Constant }) {
			continue
		}
		g.means[outs[0]] = m
		found = true
	}
	return found
}

// weights takes the nodes that only bring constants of a row's nodes into another form.
func (f *finder) weights(row int) {
	for k := 0; k < len(f.out[row].Layers); k++ {
		if f.out[row].How[k] == profile.ByOrder {
			continue
		}
		for _, t := range f.model[f.out[row].Layers[k]].Inputs {
			l, ok := f.tensors[t.Name]
			if ok && f.owner[l] < 0 && f.fixed[l] && !f.model[l].Constant && !slices.ContainsFunc(f.readers[t.Name], func(to int) bool { return f.owner[to] != row }) {
				f.take(row, l, profile.ByTensor)
			}
		}
	}
}

// byWeight takes the only node that reads a constant which the row reads, itself or
// by way of nodes that only bring the constant into another form.
func (f *finder) byWeight(g *graph, row int) {
	for _, t := range g.ins[row] {
		if _, made := g.maker[t]; made || t == "" || !f.constant(t) {
			continue
		}
		for range 4 {
			l := f.readers[t]
			if len(l) != 1 {
				break
			}
			if f.owner[l[0]] < 0 && !f.fixed[l[0]] && alike(f.model[l[0]].Op, f.rows[row].Op) {
				f.take(row, l[0], profile.ByTensor)
				return
			}
			if !f.fixed[l[0]] || len(f.model[l[0]].Outputs) != 1 {
				break
			}
			t = f.model[l[0]].Outputs[0].Name
		}
	}
}

// copies finds rows that make once more what another row of the same operator makes: a
// node that was copied, such as one that several branches need.
func (f *finder) copies(g *graph, row int) {
	for _, t := range g.outs[row] {
		l, ok := f.tensors[g.means[t]]
		if !ok || f.owner[l] < 0 || f.owner[l] == row || !alike(f.model[l].Op, f.rows[row].Op) {
			continue
		}
		if o := f.owner[l]; f.rows[o].Op == f.rows[row].Op && slices.Equal(f.meanings(g, g.ins[o]), f.meanings(g, g.ins[row])) {
			f.take(row, l, profile.ByTensor)
		}
	}
}

func (f *finder) meanings(g *graph, list []string) (out []string) {
	for _, t := range list {
		out = append(out, g.means[t])
	}
	return out
}

// similar reports whether two element types are one, or of one width where engines change the
// sign of quantised tensors.
func similar(a, b string) bool {
	return a == b || strings.TrimPrefix(a, "u") == strings.TrimPrefix(b, "u")
}

// backward says of the tensors that a row reads which of the model's they are: what its nodes
// read.
func (f *finder) backward(g *graph, row int) {
	f.carry(g, row)
	set := f.sure(row)
	// Of a row that does more than is known, what it reads is not known either.
	if !slices.ContainsFunc(set, func(l int) bool { return alike(f.model[l].Op, f.rows[row].Op) }) {
		return
	}
	mine, model := f.data(g, row), f.reads(set)
	if len(model) == 0 || len(mine) < len(model) {
		return
	}
	for i, m := range model {
		if t := mine[i]; g.means[t] == "" {
			g.means[t] = f.upward(g, t, m)
		}
	}
}

// carry says of what a row reads, that only brings it into another form, that it is what comes
// out, unless the model does what the row does.
func (f *finder) carry(g *graph, row int) {
	if len(f.out[row].Layers) > 0 || !converts[plain(f.rows[row].Op)] || len(g.outs[row]) != 1 {
		return
	}
	ins, m := f.data(g, row), g.means[g.outs[row][0]]
	if len(ins) != 1 || m == "" || g.means[ins[0]] != "" {
		return
	}
	if l, ok := f.tensors[m]; ok && f.owner[l] < 0 && alike(f.model[l].Op, f.rows[row].Op) {
		return
	}
	g.means[ins[0]] = m
}

// upward follows the model's tensor against the flow, past nodes that nobody does yet, to one of
// the element type that the engine's has: such as past a DequantizeLinear that the row does itself.
func (f *finder) upward(g *graph, t, m string) string {
	want, at := g.kind[t], m
	for range 16 {
		l, ok := f.tensors[at]
		if !ok || want == "" {
			break
		}
		if k := f.kind(l, at); k == "" || similar(k, want) {
			return at
		}
		ins := f.reads([]int{l})
		if f.owner[l] >= 0 || len(ins) != 1 {
			break
		}
		at = ins[0]
	}
	return m
}

func (f *finder) kind(layer int, tensor string) string {
	for _, t := range f.model[layer].Outputs {
		if t.Name == tensor {
			return t.DType
		}
	}
	return ""
}

// sure are a row's nodes that were not found by order.
func (f *finder) sure(row int) (out []int) {
	m := &f.out[row]
	for k, l := range m.Layers {
		if m.How[k] != profile.ByOrder {
			out = append(out, l)
		}
	}
	return out
}

// forward finds the node of a row by what it reads: of the model's nodes that read the
// same tensors, the only one of its kind.
func (f *finder) forward(g *graph, row int) {
	ins := f.data(g, row)
	if len(f.out[row].Layers) > 0 {
		f.made(g, row)
		return
	}
	if len(ins) == 0 || slices.ContainsFunc(ins, func(t string) bool { return g.means[t] == "" }) {
		return
	}
	at := g.means[ins[0]]
	found, past := -1, false
	for range 8 { // past conversions that the row does itself, and what was fused into the one before
		for _, l := range f.readers[at] {
			if f.owner[l] < 0 && !f.model[l].Constant && plain(f.model[l].Op) == plain(f.rows[row].Op) && f.same(l, ins) {
				if found >= 0 && found != l {
					return
				}
				found = l
			}
		}
		next := f.readers[at]
		if found >= 0 || len(next) != 1 || f.owner[next[0]] >= 0 || len(f.model[next[0]].Outputs) != 1 || len(f.reads(next)) != 1 {
			break
		}
		if !converts[plain(f.model[next[0]].Op)] {
			if f.exists(ins[0]) || len(ins) != 1 || value(f.model[next[0]].MACs) > 0 {
				break
			}
			past = true
		}
		at = f.model[next[0]].Outputs[0].Name
	}
	if found < 0 {
		// Nothing in the model does that here: it is the same tensor in another form.
		if outs := g.outs[row]; converts[plain(f.rows[row].Op)] && len(ins) == 1 && len(outs) == 1 && g.means[outs[0]] == "" {
			g.means[outs[0]] = g.means[ins[0]]
		}
		return
	}
	if f.rival(g, row, ins[0]) {
		return
	}
	if past {
		g.means[ins[0]] = at
	}
	f.take(row, found, profile.ByTensor)
	f.made(g, row)
}

// same reports whether a node reads as many tensors as a row does.
func (f *finder) same(layer int, ins []string) bool {
	return len(f.reads([]int{layer})) == len(ins) || len(ins) == 1
}

// rival reports whether another row of the same kind that nothing is known of reads the same.
func (f *finder) rival(g *graph, row int, t string) bool {
	for _, r := range g.users[t] {
		if r != row && len(f.out[r].Layers) == 0 && plain(f.rows[r].Op) == plain(f.rows[row].Op) {
			return true
		}
	}
	return false
}

// made says which of the model's tensors comes out of a row, where its nodes make one alone.
func (f *finder) made(g *graph, row int) {
	var leave []string
	set := f.sure(row)
	for _, l := range set {
		for _, t := range f.model[l].Outputs {
			inside := len(f.readers[t.Name]) > 0
			for _, to := range f.readers[t.Name] {
				inside = inside && slices.Contains(set, to)
			}
			if t.Name != "" && !inside {
				leave = append(leave, t.Name)
			}
		}
	}
	outs := slices.DeleteFunc(slices.Clone(g.outs[row]), func(t string) bool { return t == "" })
	if len(leave) != 1 || len(outs) != 1 || g.means[outs[0]] != "" {
		return
	}
	g.means[outs[0]] = f.downward(g, outs[0], leave[0])
}

// downward follows the model's tensor with the flow, past nodes that nobody does yet, to one of the
// element type that the engine's has.
func (f *finder) downward(g *graph, t, m string) string {
	want, at := g.kind[t], m
	for range 16 {
		l, ok := f.tensors[at]
		if !ok || want == "" {
			break
		}
		if k := f.kind(l, at); k == "" || similar(k, want) {
			return at
		}
		next := f.readers[at]
		if len(next) != 1 || f.owner[next[0]] >= 0 || len(f.model[next[0]].Outputs) != 1 {
			break
		}
		at = f.model[next[0]].Outputs[0].Name
	}
	return m
}

// maxBetween bounds the nodes that one row may stand for.
const maxBetween = 10_000

// between takes all nodes that lie between what a row reads and what it makes: nothing else can
// have done their work.
func (f *finder) between(g *graph, row int) {
	have := map[string]bool{}
	for _, t := range f.data(g, row) {
		if g.means[t] == "" {
			return
		}
		have[g.means[t]] = true
	}
	var todo []string
	for _, t := range g.outs[row] {
		if m := g.means[t]; m != "" && !have[m] {
			todo = append(todo, m)
		}
	}
	if len(todo) == 0 || len(have) == 0 {
		return
	}
	seen, nodes := map[string]bool{}, []int{}
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if have[t] || seen[t] || f.constant(t) {
			continue
		}
		seen[t] = true
		l, ok := f.tensors[t]
		if !ok || f.owner[l] >= 0 && f.owner[l] != row || len(nodes) > maxBetween {
			return // something else flows in
		}
		if !slices.Contains(nodes, l) {
			nodes = append(nodes, l)
		}
		todo = append(todo, f.reads([]int{l})...)
	}
	if converts[plain(f.rows[row].Op)] && !slices.ContainsFunc(nodes, func(l int) bool { return alike(f.model[l].Op, f.rows[row].Op) }) {
		return // it may stand beside what does them
	}
	slices.Sort(nodes)
	for _, l := range nodes {
		f.take(row, l, profile.ByTensor)
	}
	// What a name alone said is now seen by the tensors.
	m := &f.out[row]
	for k, l := range m.Layers {
		if m.How[k] == profile.ByName && slices.Contains(nodes, l) {
			m.How[k] = profile.ByTensor
		}
	}
}

// serve says of a row that the engine put in by itself of which tensor it is.
func (f *finder) serve(g *graph, row int) {
	if len(f.out[row].Layers) > 0 {
		return
	}
	if !converts[plain(f.rows[row].Op)] && !f.again(g, row) && !f.stays(g, row) {
		return
	}
	for _, t := range slices.Concat(g.outs[row], g.ins[row]) {
		m := g.means[t]
		if m == "" {
			continue
		}
		if l, ok := f.tensors[m]; ok && !f.model[l].Constant {
			f.out[row].Serves = []int{l}
			return
		}
		if l := f.readers[m]; len(l) > 0 {
			f.out[row].Serves = l[:1:1]
			return
		}
	}
}

// stays reports whether what a row makes is the one tensor that it reads, in another form.
func (f *finder) stays(g *graph, row int) bool {
	ins := f.data(g, row)
	if len(ins) != 1 || len(g.outs[row]) != 1 {
		return false
	}
	m := g.means[ins[0]]
	return m != "" && m == g.means[g.outs[row][0]]
}

// again reports whether a row makes what a row that it reads of has made before: it changes
// the form only.
func (f *finder) again(g *graph, row int) bool {
	for _, t := range g.outs[row] {
		l, ok := f.tensors[g.means[t]]
		if !ok || f.owner[l] < 0 {
			continue
		}
		for _, in := range g.ins[row] {
			if r, made := g.maker[in]; made && r == f.owner[l] {
				return true
			}
		}
	}
	return false
}
