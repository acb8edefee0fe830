// Package join maps executed operators (of another engine, or in a record) back to the operators
// of the model, with a confidence for each match.
//
// It works on layers: those of the model as internal/runtime/describe makes them, and those of
// the record. It runs nothing and reads no files.
package join

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Hint says which operators of the model an executed one belongs to, as far as its engine reports
// it.
type Hint struct {
	// Nodes are names of the model's nodes as the record has them.
	Nodes []string
	// Inputs and Outputs are names of the tensors that the layer reads and writes in the engine's
	// graph: the model's names where the engine kept them, else its own. Inputs may be omitted.
	Inputs, Outputs []string
	// Within are names of the model's tensors that the layer computes, as outputs or internally.
	Within []string
	// Index is the node's position in the model's main graph, nil if the record does not have it.
	Index *int64
}

// Match says which of the model's layers an executed one computes; empty for a layer that the
// engine has inserted.
type Match struct {
	// Layers are indices of the model's layers, first the one that the match is named after.
	Layers []int
	// How says for each how it was found.
	How []profile.Confidence
	// Serves are the layers for which the engine inserted this one: it converts the format of a
	// tensor that they write or read. It is set only if Layers is empty.
	Serves []int
}

// Find matches executed layers with the model's. Hints may be nil. Each layer of the model is
// matched to at most one executed layer, except for duplicates that the engine made.
//
// The criteria, most reliable first: a position that the engine reports; the node's name; names
// of output tensors; the name without the engine's affixes; if the engine reports the tensors of
// its layers, all nodes between these; nodes that can only have been fused into matched ones;
// order and kind between matched ones.
func Find(model, rows []profile.Layer, hints []Hint) []Match {
	f := &finder{model: model, rows: rows, hints: hints, out: make([]Match, len(rows)), owner: make([]int, len(model))}
	for i := range f.owner {
		f.owner[i] = -1
	}
	f.index()
	f.eachUnmatched(f.byIndex)
	f.eachUnmatched(f.byName)
	f.eachUnmatched(func(row int) { f.byTensor(row, true) })
	g := f.buildGraph()
	if g != nil {
		f.eachUnmatched(func(row int) { f.byWeight(g, row) })
		f.eachUnmatched(func(row int) { f.matchDuplicates(g, row) })
	}
	f.eachUnmatched(func(row int) {
		// Layers that engines insert have names like those of nodes, plus an affix.
		if g == nil || !formatConversions[plain(f.rows[row].Op)] {
			f.byStem(row)
		}
	})
	f.byGraph(g)
	f.eachUnmatched(func(row int) {
		if len(f.out[row].Serves) == 0 {
			f.byStem(row)
		}
	})
	f.eachUnmatched(func(row int) {
		if len(f.out[row].Serves) == 0 {
			f.byTensor(row, false)
		}
	})
	f.absorb()
	f.byOrder()
	f.absorb()
	for i := range f.out {
		f.sortLeading(i)
		if len(f.out[i].Layers) > 0 {
			f.out[i].Serves = nil
		}
	}
	return f.out
}

// sortLeading moves the node with the row's operator to the front.
func (f *finder) sortLeading(row int) {
	m := &f.out[row]
	for k, l := range m.Layers {
		if !alike(f.model[l].Op, f.rows[row].Op) {
			continue
		}
		for ; k > 0; k-- {
			m.Layers[k], m.Layers[k-1] = m.Layers[k-1], m.Layers[k]
			m.How[k], m.How[k-1] = m.How[k-1], m.How[k]
		}
		return
	}
}

type finder struct {
	model, rows []profile.Layer
	hints       []Hint
	out         []Match
	owner       []int // row of each of the model's layers, -1 if unmatched
	names       map[string][]int
	tensors     map[string]int   // layer that writes a tensor
	readers     map[string][]int // layers that read a tensor
	main        map[int64]int    // layer by node of the main graph
	fixed       []bool           // layers that read only constants
	taken       int              // number of matched layers
}

func (f *finder) index() {
	f.names, f.tensors, f.readers, f.main = map[string][]int{}, map[string]int{}, map[string][]int{}, map[int64]int{}
	for i := range f.model {
		l := &f.model[i]
		for _, n := range nodes(l) {
			if n.Name != "" {
				f.names[n.Name] = append(f.names[n.Name], i)
			}
			if n.Graph == 0 {
				f.main[n.Node] = i
			}
		}
		for _, t := range l.Outputs {
			if t.Name != "" {
				if _, ok := f.tensors[t.Name]; !ok {
					f.tensors[t.Name] = i
				}
			}
		}
		for _, t := range l.Inputs {
			if t.Name != "" {
				f.readers[t.Name] = append(f.readers[t.Name], i)
			}
		}
	}
	f.fixed = make([]bool, len(f.model))
	for i := range f.model {
		f.fixed[i] = f.isConstantLayer(i)
	}
}

// isConstantLayer reports whether a layer is constant or reads only constants.
func (f *finder) isConstantLayer(layer int) bool {
	l := &f.model[layer]
	if l.Constant {
		return true
	}
	for _, t := range l.Inputs {
		if t.Absent || t.Constant || t.Name == "" {
			continue
		}
		if from, ok := f.tensors[t.Name]; !ok || from >= layer || !f.fixed[from] {
			return false
		}
	}
	return len(l.Inputs) > 0
}

func nodes(l *profile.Layer) []profile.SourceNode {
	if l.Provenance == nil {
		return nil
	}
	return l.Provenance.SourceNodes
}

// hint returns the hint of a row.
func (f *finder) hint(row int) Hint {
	if row < len(f.hints) {
		return f.hints[row]
	}
	return Hint{}
}

// candidateNames returns the names that a row may have from the model.
func (f *finder) candidateNames(row int) []string {
	if h := f.hint(row).Nodes; len(h) > 0 {
		return h
	}
	if n := f.rows[row].Name; n != "" {
		return []string{n}
	}
	return nil
}

// eachUnmatched calls ask for every row without a match.
func (f *finder) eachUnmatched(ask func(row int)) {
	for i := range f.rows {
		if len(f.out[i].Layers) == 0 {
			ask(i)
		}
	}
}

// take assigns a layer of the model to a row.
func (f *finder) take(row, layer int, how profile.Confidence) {
	m := &f.out[row]
	if slices.Contains(m.Layers, layer) {
		return
	}
	m.Layers, m.How = append(m.Layers, layer), append(m.How, how)
	f.taken++
	if f.owner[layer] < 0 {
		f.owner[layer] = row
	}
}

func (f *finder) byIndex(row int) {
	at := f.hint(row).Index
	if at == nil {
		return
	}
	if l, ok := f.main[*at]; ok && f.owner[l] < 0 && alike(f.model[l].Op, f.rows[row].Op) {
		f.take(row, l, profile.Exact)
	}
}

// byName takes nodes of exactly this name. If several have it (bodies, functions), it takes the
// next of its kind.
func (f *finder) byName(row int) {
	for _, name := range f.candidateNames(row) {
		if l, ok := f.named(row, name); ok {
			f.take(row, l, profile.Exact)
		}
	}
}

func (f *finder) named(row int, name string) (int, bool) {
	list := f.names[name]
	for _, same := range []bool{true, false} {
		for _, l := range list {
			if f.owner[l] < 0 && (!same || alike(f.model[l].Op, f.rows[row].Op)) {
				return l, true
			}
		}
	}
	// The engine duplicated a node, such as one that several branches need: both rows match it.
	for _, l := range list {
		if o := f.owner[l]; o >= 0 && f.rows[o].Op == f.rows[row].Op && !slices.Contains(f.out[row].Layers, l) {
			return l, true
		}
	}
	return 0, false
}

// byTensor takes the nodes that compute the outputs of a row. A row that may only convert the
// format of a tensor does not compute it, unless the node has the same operator. If nothing else
// can compute it, it does.
func (f *finder) byTensor(row int, careful bool) {
	names := slices.Concat(f.hint(row).Within, f.hint(row).Outputs)
	for _, t := range f.hint(row).Outputs {
		names = append(names[:len(names):len(names)], stems(t)...)
	}
	for _, t := range f.rows[row].Outputs {
		if t.Name != "" {
			names = append(names[:len(names):len(names)], t.Name)
		}
	}
	// Some engines name a node after its output.
	for _, n := range f.candidateNames(row) {
		names = append(names[:len(names):len(names)], n)
		names = append(names, stems(n)...)
	}
	for _, t := range names {
		l, ok := f.tensors[t]
		if ok && careful && formatConversions[plain(f.rows[row].Op)] && !alike(f.model[l].Op, f.rows[row].Op) {
			continue
		}
		if ok && (f.owner[l] < 0 || f.owner[l] == row) {
			f.take(row, l, profile.ByTensor)
		}
	}
}

func (f *finder) byStem(row int) {
	for _, name := range f.candidateNames(row) {
		for _, s := range stems(name) {
			if l, ok := f.named(row, s); ok {
				f.take(row, l, profile.ByName)
				break
			}
		}
	}
}

// Suffixes and prefixes that engines add to the names of nodes.
var (
	endings = []string{
		"_nchwc", "_nhwc", "_fused", "_quant", "_quantized", "_dequantized", "_converted", "_cast", "_transpose",
		"_QuantizeLinear", "_DequantizeLinear", "_matmul", "_add", "_output_0", ":0",
		"_pre_q", "_post_dq", "_q_to_dq", "_dq", "_q",
	}
	beginnings = []string{
		"InsertedPrecisionFreeCast_", "InsertedCast_", "fused ", "Fused_", "fused_", "graph_transform_", "Transpose_token_", "Reformatting CopyNode for ",
	}
)

// stems returns a name without the engine's affixes, the least stripped first.
func stems(name string) (out []string) {
	seen := map[string]bool{name: true}
	add := func(s string) {
		if s != "" && !seen[s] && len(out) < 32 {
			seen[s] = true
			out = append(out, s)
		}
	}
	for at := -1; at < len(out); at++ {
		s := name
		if at >= 0 {
			s = out[at]
		}
		for _, e := range endings {
			if t, ok := strings.CutSuffix(s, e); ok {
				add(t)
			}
		}
		for _, b := range beginnings {
			if t, ok := strings.CutPrefix(s, b); ok {
				add(t)
			}
		}
		// "/MatMulAddFusion" and similar; "/duplicated", "_0" of duplicates.
		if i := strings.LastIndexByte(s, '/'); i > 0 {
			last := s[i+1:]
			if strings.HasSuffix(last, "Fusion") || strings.HasPrefix(last, "duplicated") || strings.HasPrefix(last, "fused") {
				add(s[:i])
			}
		}
		if i := strings.LastIndexByte(s, '_'); i > 0 && digits(s[i+1:]) && (at >= 0 || strings.HasSuffix(s[:i], "_token")) {
			add(strings.TrimSuffix(s[:i], "_token"))
		}
	}
	return out
}

func digits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// alike reports whether an executed operator can be one of the model's: the same, or one that
// engines derive from it.
func alike(model, executed string) bool {
	a, b := plain(model), plain(executed)
	return a == b || strings.HasPrefix(b, a) || strings.HasSuffix(b, a) || strings.Contains(b, a) && len(a) > 3
}

// plain returns an operator's kind without differences of spelling.
func plain(op string) string {
	if i := strings.LastIndexByte(op, '/'); i >= 0 {
		op = op[i+1:]
	}
	if i := strings.LastIndexByte(op, '.'); i >= 0 {
		op = op[i+1:]
	}
	s := strings.ToLower(strings.NewReplacer("_", "", " ", "", "-", "").Replace(op))
	for _, p := range []string{"fused", "qlinear", "dynamicquantize", "quantized"} {
		s = strings.TrimPrefix(s, p)
	}
	switch s {
	case "convolution", "conv2d":
		return "conv"
	case "depthwiseconv2d", "groupconvolution":
		return "depthwiseconv"
	case "averagepool2d", "avgpool":
		return "averagepool"
	case "maxpool2d":
		return "maxpool"
	case "concatenation":
		return "concat"
	case "logistic":
		return "sigmoid"
	case "resizebilinear", "resizenearestneighbor", "interpolate", "upsample":
		return "resize"
	case "transposeconv", "convolutionbackpropdata", "deconvolution":
		return "convtranspose"
	case "stridedslice":
		return "slice"
	case "splitv", "variadicsplit":
		return "split"
	case "subtract":
		return "sub"
	case "multiply":
		return "mul"
	case "hswish":
		return "hardswish"
	case "fullyconnected", "innerproduct", "gemm":
		return "matmul"
	}
	return s
}
