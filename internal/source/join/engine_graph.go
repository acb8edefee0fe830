package join

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// This file finds nodes by the tensors that executed layers read and write, where the engine
// reports them. The engine's graph contains some of the model's tensors; between two of these an
// executed layer computes what the model computes there.

// formatConversions lists operators that engines insert to convert the layout, order or type of a
// tensor.
var formatConversions = map[string]bool{
	"reorderinput": true, "reorderoutput": true, "reorder": true, "reformat": true, "transpose": true, "permute": true, "cast": true, "convert": true,
	"quantizelinear": true, "dequantizelinear": true, "quantize": true, "dequantize": true, "reshape": true, "squeeze": true, "unsqueeze": true,
	"identity": true, "copy": true, "memcpyfromhost": true, "memcpytohost": true, "memcpy": true, "layout": true, "pack": true,
}

// opaque lists operators whose names do not say what they compute: small operators that an engine
// compiled together, and operators for ranges and steps of numbers.
var opaque = map[string]bool{"subgraph": true, "fakequantize": true}

// engineGraph is the graph that an engine executes.
type engineGraph struct {
	ins, outs [][]string     // tensors of each row
	producer  map[string]int // row that writes a tensor; -1 if several do
	users     map[string][]int
	// the model's tensor that an engine's tensor represents, in any format
	modelTensor map[string]string
	elemType    map[string]string // element types
}

// maxRounds bounds how often new matches are used to find more.
const maxRounds = 64

// buildGraph builds the graph that the engine executes; nil if the engine does not report it.
func (f *finder) buildGraph() *engineGraph {
	g := &engineGraph{ins: make([][]string, len(f.rows)), outs: make([][]string, len(f.rows)), producer: map[string]int{}, users: map[string][]int{}, modelTensor: map[string]string{}, elemType: map[string]string{}}
	known := 0
	for r := range f.rows {
		h := f.hint(r)
		g.ins[r], g.outs[r] = h.Inputs, h.Outputs
		if len(h.Inputs) > 0 {
			known++
		}
		for i, t := range h.Outputs {
			if _, twice := g.producer[t]; twice {
				g.producer[t] = -1
				continue
			}
			g.producer[t] = r
			if len(f.rows[r].Outputs) == len(h.Outputs) {
				g.elemType[t] = f.rows[r].Outputs[i].DType
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
			f.mapTensor(g, t)
		}
	}
	return g
}

// mapTensor maps an engine's tensor to the model's tensor with its name, with or without the
// engine's affixes.
func (f *finder) mapTensor(g *engineGraph, name string) {
	if name == "" || g.modelTensor[name] != "" {
		return
	}
	for _, s := range append([]string{name}, stems(name)...) {
		if f.exists(s) {
			g.modelTensor[name] = s
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

// isData reports whether a tensor of the engine is neither a constant of the model nor derived
// from constants only.
func (f *finder) isData(g *engineGraph, t string) bool {
	r, made := g.producer[t]
	for depth := 0; made && r >= 0 && depth < 8; depth++ {
		// A value converted from a constant is constant too.
		if len(f.out[r].Layers) > 0 || len(g.ins[r]) != 1 || !formatConversions[plain(f.rows[r].Op)] {
			return true
		}
		t = g.ins[r][0]
		r, made = g.producer[t]
	}
	if made {
		return true
	}
	m := g.modelTensor[t]
	return m != "" && !f.constant(m)
}

// constant reports whether one of the model's tensors is constant or follows from constants.
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

// dataInputs returns the inputs of a row that are not constant.
func (f *finder) dataInputs(g *engineGraph, row int) (out []string) {
	for _, t := range g.ins[row] {
		if t != "" && f.isData(g, t) {
			out = append(out, t)
		}
	}
	return out
}

// externalInputs returns the non-constant tensors that a set of layers reads from outside, in
// order.
func (f *finder) externalInputs(set []int) (out []string) {
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

// byGraph extends the matches of some rows to their neighbours.
func (f *finder) byGraph(g *engineGraph) {
	if g == nil {
		return
	}
	for range maxRounds {
		before := len(g.modelTensor) + f.taken
		for r := range f.rows {
			f.backward(g, r)
		}
		for r := range f.rows {
			f.forward(g, r)
			f.between(g, r)
		}
		if len(g.modelTensor)+f.taken == before && !f.mapConversions(g) {
			break
		}
	}
	for r := range f.rows {
		f.takeWeightConversions(r)
		f.markServed(g, r)
	}
}

// mapConversions finds rows for which no node is left, because all readers of their tensor are
// matched elsewhere: they only convert its format. It reports whether there is one more.
func (f *finder) mapConversions(g *engineGraph) bool {
	found := false
	for r := range f.rows {
		ins, outs := f.dataInputs(g, r), g.outs[r]
		if len(f.out[r].Layers) > 0 || !opaque[plain(f.rows[r].Op)] || len(ins) != 1 || len(outs) != 1 || g.modelTensor[outs[0]] != "" {
			continue
		}
		m := g.modelTensor[ins[0]]
		if m == "" || slices.ContainsFunc(f.readers[m], func(l int) bool { return f.owner[l] < 0 && !f.model[l].Constant }) {
			continue
		}
		g.modelTensor[outs[0]] = m
		found = true
	}
	return found
}

// takeWeightConversions takes the nodes that only convert the format of constants of a row's
// nodes.
func (f *finder) takeWeightConversions(row int) {
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

// byWeight takes the only node that reads a constant which the row reads, directly or through
// nodes that only convert the constant's format.
func (f *finder) byWeight(g *engineGraph, row int) {
	for _, t := range g.ins[row] {
		if _, made := g.producer[t]; made || t == "" || !f.constant(t) {
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

// matchDuplicates finds rows that compute the same as another row of the same operator: the
// engine duplicated a node, such as one that several branches need.
func (f *finder) matchDuplicates(g *engineGraph, row int) {
	for _, t := range g.outs[row] {
		l, ok := f.tensors[g.modelTensor[t]]
		if !ok || f.owner[l] < 0 || f.owner[l] == row || !alike(f.model[l].Op, f.rows[row].Op) {
			continue
		}
		if o := f.owner[l]; f.rows[o].Op == f.rows[row].Op && slices.Equal(f.modelTensors(g, g.ins[o]), f.modelTensors(g, g.ins[row])) {
			f.take(row, l, profile.ByTensor)
		}
	}
}

func (f *finder) modelTensors(g *engineGraph, list []string) (out []string) {
	for _, t := range list {
		out = append(out, g.modelTensor[t])
	}
	return out
}

// similarType reports whether two element types are equal, or differ only in their sign, because
// engines change the sign of quantised tensors.
func similarType(a, b string) bool {
	return a == b || strings.TrimPrefix(a, "u") == strings.TrimPrefix(b, "u")
}

// backward maps the tensors that a row reads to the tensors that its nodes read.
func (f *finder) backward(g *engineGraph, row int) {
	f.mapThrough(g, row)
	set := f.certainLayers(row)
	// If a row computes more than is known, its inputs are not known either.
	if !slices.ContainsFunc(set, func(l int) bool { return alike(f.model[l].Op, f.rows[row].Op) }) {
		return
	}
	mine, model := f.dataInputs(g, row), f.externalInputs(set)
	if len(model) == 0 || len(mine) < len(model) {
		return
	}
	for i, m := range model {
		if t := mine[i]; g.modelTensor[t] == "" {
			g.modelTensor[t] = f.upward(g, t, m)
		}
	}
}

// mapThrough maps the input of a row that only converts the format to the same tensor as its
// output, unless the model has a node for that conversion.
func (f *finder) mapThrough(g *engineGraph, row int) {
	if len(f.out[row].Layers) > 0 || !formatConversions[plain(f.rows[row].Op)] || len(g.outs[row]) != 1 {
		return
	}
	ins, m := f.dataInputs(g, row), g.modelTensor[g.outs[row][0]]
	if len(ins) != 1 || m == "" || g.modelTensor[ins[0]] != "" {
		return
	}
	if l, ok := f.tensors[m]; ok && f.owner[l] < 0 && alike(f.model[l].Op, f.rows[row].Op) {
		return
	}
	g.modelTensor[ins[0]] = m
}

// upward follows the model's tensor towards the inputs, past unmatched nodes, to a tensor with
// the engine's element type, such as past a DequantizeLinear that the row computes itself.
func (f *finder) upward(g *engineGraph, t, m string) string {
	want, at := g.elemType[t], m
	for range 16 {
		l, ok := f.tensors[at]
		if !ok || want == "" {
			break
		}
		if k := f.tensorType(l, at); k == "" || similarType(k, want) {
			return at
		}
		ins := f.externalInputs([]int{l})
		if f.owner[l] >= 0 || len(ins) != 1 {
			break
		}
		at = ins[0]
	}
	return m
}

func (f *finder) tensorType(layer int, tensor string) string {
	for _, t := range f.model[layer].Outputs {
		if t.Name == tensor {
			return t.DType
		}
	}
	return ""
}

// certainLayers returns a row's nodes that were not matched by order.
func (f *finder) certainLayers(row int) (out []int) {
	m := &f.out[row]
	for k, l := range m.Layers {
		if m.How[k] != profile.ByOrder {
			out = append(out, l)
		}
	}
	return out
}

// forward finds the node of a row by its inputs: among the model's nodes that read the same
// tensors, the only one of its kind.
func (f *finder) forward(g *engineGraph, row int) {
	ins := f.dataInputs(g, row)
	if len(f.out[row].Layers) > 0 {
		f.mapOutput(g, row)
		return
	}
	if len(ins) == 0 || slices.ContainsFunc(ins, func(t string) bool { return g.modelTensor[t] == "" }) {
		return
	}
	at := g.modelTensor[ins[0]]
	found, past := -1, false
	for range 8 { // past conversions in the row itself, and nodes fused into the previous row
		for _, l := range f.readers[at] {
			if f.owner[l] < 0 && !f.model[l].Constant && plain(f.model[l].Op) == plain(f.rows[row].Op) && f.sameInputCount(l, ins) {
				if found >= 0 && found != l {
					return
				}
				found = l
			}
		}
		next := f.readers[at]
		if found >= 0 || len(next) != 1 || f.owner[next[0]] >= 0 || len(f.model[next[0]].Outputs) != 1 || len(f.externalInputs(next)) != 1 {
			break
		}
		if !formatConversions[plain(f.model[next[0]].Op)] {
			if f.exists(ins[0]) || len(ins) != 1 || value(f.model[next[0]].MACs) > 0 {
				break
			}
			past = true
		}
		at = f.model[next[0]].Outputs[0].Name
	}
	if found < 0 {
		// The model has no such node here: the output is the same tensor in another format.
		if outs := g.outs[row]; formatConversions[plain(f.rows[row].Op)] && len(ins) == 1 && len(outs) == 1 && g.modelTensor[outs[0]] == "" {
			g.modelTensor[outs[0]] = g.modelTensor[ins[0]]
		}
		return
	}
	if f.hasRival(g, row, ins[0]) {
		return
	}
	if past {
		g.modelTensor[ins[0]] = at
	}
	f.take(row, found, profile.ByTensor)
	f.mapOutput(g, row)
}

// sameInputCount reports whether a node reads as many tensors as a row does.
func (f *finder) sameInputCount(layer int, ins []string) bool {
	return len(f.externalInputs([]int{layer})) == len(ins) || len(ins) == 1
}

// hasRival reports whether another unmatched row of the same kind reads the same tensor.
func (f *finder) hasRival(g *engineGraph, row int, t string) bool {
	for _, r := range g.users[t] {
		if r != row && len(f.out[r].Layers) == 0 && plain(f.rows[r].Op) == plain(f.rows[row].Op) {
			return true
		}
	}
	return false
}

// mapOutput maps the output of a row to the model's tensor, if its nodes have only one output.
func (f *finder) mapOutput(g *engineGraph, row int) {
	var leave []string
	set := f.certainLayers(row)
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
	if len(leave) != 1 || len(outs) != 1 || g.modelTensor[outs[0]] != "" {
		return
	}
	g.modelTensor[outs[0]] = f.downward(g, outs[0], leave[0])
}

// downward follows the model's tensor towards the outputs, past unmatched nodes, to a tensor with
// the engine's element type.
func (f *finder) downward(g *engineGraph, t, m string) string {
	want, at := g.elemType[t], m
	for range 16 {
		l, ok := f.tensors[at]
		if !ok || want == "" {
			break
		}
		if k := f.tensorType(l, at); k == "" || similarType(k, want) {
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

// between takes all nodes between the inputs and outputs of a row: nothing else can have computed
// them.
func (f *finder) between(g *engineGraph, row int) {
	have := map[string]bool{}
	for _, t := range f.dataInputs(g, row) {
		if g.modelTensor[t] == "" {
			return
		}
		have[g.modelTensor[t]] = true
	}
	var todo []string
	for _, t := range g.outs[row] {
		if m := g.modelTensor[t]; m != "" && !have[m] {
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
			return // another input reaches them
		}
		if !slices.Contains(nodes, l) {
			nodes = append(nodes, l)
		}
		todo = append(todo, f.externalInputs([]int{l})...)
	}
	if formatConversions[plain(f.rows[row].Op)] && !slices.ContainsFunc(nodes, func(l int) bool { return alike(f.model[l].Op, f.rows[row].Op) }) {
		return // another row may compute them
	}
	slices.Sort(nodes)
	for _, l := range nodes {
		f.take(row, l, profile.ByTensor)
	}
	// Matches by name only are now confirmed by the tensors.
	m := &f.out[row]
	for k, l := range m.Layers {
		if m.How[k] == profile.ByName && slices.Contains(nodes, l) {
			m.How[k] = profile.ByTensor
		}
	}
}

// markServed records the layers that an inserted row serves.
func (f *finder) markServed(g *engineGraph, row int) {
	if len(f.out[row].Layers) > 0 {
		return
	}
	if !formatConversions[plain(f.rows[row].Op)] && !f.repeatsTensor(g, row) && !f.keepsTensor(g, row) {
		return
	}
	for _, t := range slices.Concat(g.outs[row], g.ins[row]) {
		m := g.modelTensor[t]
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

// keepsTensor reports whether a row's output is its only input in another format.
func (f *finder) keepsTensor(g *engineGraph, row int) bool {
	ins := f.dataInputs(g, row)
	if len(ins) != 1 || len(g.outs[row]) != 1 {
		return false
	}
	m := g.modelTensor[ins[0]]
	return m != "" && m == g.modelTensor[g.outs[row][0]]
}

// repeatsTensor reports whether a row writes a tensor that the row before it has already
// computed: it only converts the format.
func (f *finder) repeatsTensor(g *engineGraph, row int) bool {
	for _, t := range g.outs[row] {
		l, ok := f.tensors[g.modelTensor[t]]
		if !ok || f.owner[l] < 0 {
			continue
		}
		for _, in := range g.ins[row] {
			if r, made := g.producer[in]; made && r == f.owner[l] {
				return true
			}
		}
	}
	return false
}
