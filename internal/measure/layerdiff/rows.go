package layerdiff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/divergence"
)

// row is a row of the report with what it takes to compute it.
type row struct {
	divergence.Row
	// nodes are those of the main graph of each side.
	nodes [2][]int
	outs  []output
	// alone are the nodes of the reference side that compute the row's outputs from known values,
	// from says which. alone is nil if that is not possible.
	alone []int
	from  map[int]place
	// inNoise is the largest relative noise of the inputs, inKnown whether that of all is known.
	inNoise float64
	inKnown bool
	place   int // in the order of execution
}

// output is a value of both sides that is compared.
type output struct {
	ids [2]int
	// typ and shape are those of the reference side, order how the second side is read. known says
	// that both sides could be compared.
	typ   tensor.Type
	shape []int
	order order
	known bool
	state profile.DifferenceState
	noise float64
}

// needs lists the values of a side that the row is computed from.
func (r *row) needs(side int) (ids []int) {
	for i := range r.outs {
		ids = append(ids, r.outs[i].ids[side])
	}
	for _, p := range r.from {
		ids = append(ids, p.row.outs[p.out].ids[side])
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// view is the main graph of a side.
type view struct {
	m *graph.Model
	g *graph.Graph
	// maker is one plus the node that computes a value, readers are the nodes that read it.
	maker   []int
	readers [][]int
	output  []bool
	// fixed values depend on no input.
	fixed  []bool
	inputs map[int]int // place of an input
}

func newView(m *graph.Model) *view {
	g := m.Main()
	n := len(g.Values)
	v := &view{m: m, g: g, maker: make([]int, n), readers: make([][]int, n), output: make([]bool, n), fixed: make([]bool, n), inputs: map[int]int{}}
	for id, x := range g.Values {
		v.fixed[id] = x.Const != nil && !x.Variable
	}
	for i, id := range g.Inputs {
		v.inputs[id], v.fixed[id] = i, false
	}
	for _, id := range g.Outputs {
		if id >= 0 {
			v.output[id] = true
		}
	}
	for i, node := range g.Nodes {
		ids := v.operands(node)
		fixed := len(ids) > 0 && len(weights.Subgraphs(node)) == 0
		for _, id := range ids {
			v.readers[id] = append(v.readers[id], i)
			fixed = fixed && v.fixed[id]
		}
		for _, id := range node.Outputs {
			if id >= 0 {
				v.maker[id], v.fixed[id] = i+1, fixed
			}
		}
	}
	return v
}

// operands lists what a node reads, with what its nested graphs capture.
func (v *view) operands(n *graph.Node) (ids []int) {
	for _, id := range n.Inputs {
		if id >= 0 {
			ids = append(ids, id)
		}
	}
	for _, b := range weights.Subgraphs(n) {
		if b <= 0 || b >= len(v.m.Graphs) {
			continue
		}
		for _, c := range v.m.Graphs[b].Captures {
			if c.Outer >= 0 && c.Outer < len(v.g.Values) {
				ids = append(ids, c.Outer)
			}
		}
	}
	return ids
}

// reads lists the values that nodes read from others, without constants.
func (v *view) reads(nodes []int) (ids []int) {
	seen := map[int]bool{}
	for _, i := range nodes {
		for _, id := range v.operands(v.g.Nodes[i]) {
			if x := v.g.Values[id]; seen[id] || v.fixed[id] || x.Variable || x.Scratch || slices.Contains(nodes, v.maker[id]-1) {
				continue
			}
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// results lists the values that nodes compute for others.
func (v *view) results(nodes []int) (ids []int) {
	for _, i := range nodes {
		for _, id := range v.g.Nodes[i].Outputs {
			if id < 0 || v.fixed[id] || v.g.Values[id].Variable || v.g.Values[id].Type.IsContainer() {
				continue
			}
			if v.output[id] || slices.ContainsFunc(v.readers[id], func(r int) bool { return !slices.Contains(nodes, r) }) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (v *view) names(ids []int) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		if id >= 0 {
			out[i] = v.g.Values[id].Name
		}
	}
	return out
}

// pair makes the rows.
func (c *comparison) pair() {
	ps := [2]*profile.Profile{c.sides[0].Profile, c.sides[1].Profile}
	pairs := align.Layers(ps[0], ps[1])
	sets := newSets(len(pairs))
	for side, p := range ps {
		at := make([]int, len(p.Layers)) // one plus the pair of a layer
		for k := range pairs {
			for _, i := range of(&pairs[k], side) {
				at[i] = k + 1
			}
		}
		nested := 0
		for i := range p.Layers {
			l := &p.Layers[i]
			if l.Parent != nil {
				nested++
			}
			if to := l.FusedInto; to != nil && *to >= 0 && *to < int64(len(at)) && at[i] > 0 && at[*to] > 0 {
				sets.join(at[i]-1, at[*to]-1)
			}
		}
		if nested > 0 {
			c.note("%d layers of %s are in bodies of control flow: only the outputs of the operators that run them are compared.", nested, c.sideName(side))
		}
	}
	by := map[int][]align.Pair{}
	var order []int
	for k := range pairs {
		r := sets.root(k)
		if by[r] == nil {
			order = append(order, r)
		}
		by[r] = append(by[r], pairs[k])
	}
	last := 0
	for _, k := range order {
		if r := c.newRow(by[k], ps); r != nil {
			r.place = c.placeOf(r, last)
			last = r.place
			c.rows = append(c.rows, r)
		}
	}
	// A row that is fused of several comes where its output is computed, after those it reads.
	sorting.Stable(c.rows, func(a, b *row) int { return cmp.Compare(a.place, b.place) })
	c.made = [2]map[int]place{{}, {}}
	for _, r := range c.rows {
		for n := range r.outs {
			for side, id := range r.outs[n].ids {
				if _, ok := c.made[side][id]; !ok {
					c.made[side][id] = place{r, n}
				}
			}
		}
	}
	for _, r := range c.rows {
		c.planAlone(r)
	}
}

// placeOf returns the last node of the first side that computes an output of a row. A row that only
// the second side has comes after the row before it.
func (c *comparison) placeOf(r *row, last int) int {
	at := -1
	for i := range r.outs {
		at = max(at, c.views[0].maker[r.outs[i].ids[0]]-1)
	}
	switch {
	case at >= 0:
		return at
	case len(r.nodes[0]) > 0:
		return slices.Max(r.nodes[0])
	}
	return last
}

func of(p *align.Pair, side int) []int64 {
	if side == 0 {
		return p.A
	}
	return p.B
}

// kinds in the order in which they count.
var kinds = []align.Kind{align.Replaced, align.Quantised, align.Pruned, align.Fused, align.Split, align.Resized, align.Same}

// newRow makes the row of pairs that are fused with each other, nil where they are of nested graphs
// or of constants.
func (c *comparison) newRow(ps []align.Pair, profiles [2]*profile.Profile) *row {
	r := &row{}
	r.Certain = true
	for i := range ps {
		p := &ps[i]
		if len(ps) > 1 && (p.Kind == align.Inserted || p.Kind == align.Removed) && r.Kind != "" {
			continue
		}
		if r.Kind == "" || r.Kind == align.Inserted || r.Kind == align.Removed || rank(p.Kind) < rank(r.Kind) {
			r.Kind, r.Confidence = p.Kind, p.Confidence
		}
		r.Certain = r.Certain && p.Certain
	}
	for side, prof := range profiles {
		var ls []divergence.Layer
		for i := range ps {
			for _, k := range of(&ps[i], side) {
				l := &prof.Layers[k]
				node := mainNode(l, len(c.views[side].g.Nodes))
				if node < 0 || l.Constant {
					continue
				}
				r.nodes[side] = append(r.nodes[side], node)
				ls = append(ls, divergence.Layer{Index: l.Index, Op: l.Op, Name: l.Name})
			}
		}
		slices.Sort(r.nodes[side])
		sorting.Func(ls, func(a, b divergence.Layer) int { return int(a.Index - b.Index) })
		if side == 0 {
			r.A = ls
		} else {
			r.B = ls
		}
	}
	switch {
	case len(r.A) == 0 && len(r.B) == 0:
		return nil
	case len(r.A) == 0:
		r.Kind, r.Confidence, r.Certain = align.Inserted, "", false
	case len(r.B) == 0:
		r.Kind, r.Confidence, r.Certain = align.Removed, "", false
	default:
		r.Cause = c.matchOutputs(r)
	}
	return r
}

func rank(k align.Kind) int {
	if i := slices.Index(kinds, k); i >= 0 {
		return i
	}
	return len(kinds)
}

// mainNode returns the node of the main graph that a layer is, -1 for none.
func mainNode(l *profile.Layer, nodes int) int {
	if l.Parent != nil || l.Provenance == nil || len(l.Provenance.SourceNodes) == 0 {
		return -1
	}
	s := &l.Provenance.SourceNodes[0]
	if s.Graph != 0 || s.Node < 0 || s.Node >= int64(nodes) {
		return -1
	}
	return int(s.Node)
}

// matchOutputs finds the values that are compared. The cause says why outputs are missing.
func (c *comparison) matchOutputs(r *row) *profile.Cause {
	a, b := c.views[0].results(r.nodes[0]), c.views[1].results(r.nodes[1])
	if len(a) != len(b) {
		a, b = c.views[0].withoutConversions(a, r.nodes[0]), c.views[1].withoutConversions(b, r.nodes[1])
	}
	switch {
	case len(a) == 0 || len(b) == 0:
		return &profile.Cause{Code: profile.ByData, Text: "nothing reads an output of these layers"}
	case len(a) != len(b):
		return &profile.Cause{Code: profile.ByData, Text: fmt.Sprintf("the layers have %d and %d outputs", len(a), len(b))}
	}
	for i, k := range matchNames(c.views[0].names(a), c.views[1].names(b)) {
		if k >= 0 {
			r.outs = append(r.outs, output{ids: [2]int{a[i], b[k]}})
		}
	}
	return nil
}

// conversions are operators that change the type of a value.
var conversions = []string{"QuantizeLinear", "DequantizeLinear", "Cast", "QUANTIZE", "DEQUANTIZE", "CAST"}

// withoutConversions leaves out results of nodes that are another result in another type, or a
// value from outside the nodes: operators share such conversions. One result stays in any case.
func (v *view) withoutConversions(ids, nodes []int) []int {
	out := slices.DeleteFunc(slices.Clone(ids), func(id int) bool {
		n := v.g.Nodes[v.maker[id]-1]
		if !slices.Contains(conversions, n.Op) || len(n.Inputs) == 0 || n.Inputs[0] < 0 {
			return false
		}
		from := n.Inputs[0]
		return slices.Contains(ids, from) || !slices.Contains(nodes, v.maker[from]-1)
	})
	if len(out) == 0 {
		return ids
	}
	return out
}

// maxAlone bounds the nodes that run alone for a row.
const maxAlone = 64

// planAlone finds the nodes of the reference side that compute the row's outputs from values that
// both sides have: its own, and those of layers before them that only the reference side has.
func (c *comparison) planAlone(r *row) {
	v := c.views[c.ref]
	nodes := slices.Clone(r.nodes[c.ref])
	if len(r.outs) == 0 {
		return
	}
	from := map[int]place{}
	for grown := true; grown; {
		grown = false
		clear(from)
		for _, id := range v.reads(nodes) {
			p, ok := c.made[c.ref][id]
			_, input := v.inputs[id]
			switch {
			case input:
			case ok && p.row != r:
				from[id] = p
			case v.maker[id] == 0 || len(nodes) >= maxAlone:
				return
			default:
				nodes = append(nodes, v.maker[id]-1)
				grown = true
			}
			if grown {
				break
			}
		}
	}
	for _, i := range nodes {
		n := v.g.Nodes[i]
		if len(weights.Subgraphs(n)) > 0 || slices.ContainsFunc(n.Inputs, func(id int) bool {
			return id >= 0 && (v.g.Values[id].Variable || v.g.Values[id].Type == tensor.Resource)
		}) || random(n) {
			return
		}
	}
	slices.Sort(nodes)
	r.alone, r.from = slices.Compact(nodes), from
}

// random reports whether an operator draws random numbers.
func random(n *graph.Node) bool {
	op := strings.ToLower(n.Op)
	return strings.Contains(op, "random") || strings.Contains(op, "bernoulli") || strings.Contains(op, "multinomial")
}

// decibels is the signal-to-noise ratio of a noise, nil if it is infinite either way.
func decibels(noise float64) *float64 {
	if !(noise > 0) || math.IsInf(noise, 0) {
		return nil
	}
	return new(-10 * math.Log10(noise))
}

// quantised reports whether a model computes in integers of eight bits or less.
func quantised(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Layers, func(l profile.Layer) bool {
		low := func(t string) bool { return strings.HasSuffix(t, "int8") || strings.HasSuffix(t, "int4") }
		return l.MACs != nil && *l.MACs > 0 && (low(l.Computes) || slices.ContainsFunc(l.Inputs, func(t profile.Tensor) bool { return low(t.DType) }))
	})
}

// half reports whether a side computes in 16-bit floating point.
func half(s *Side) bool {
	return slices.ContainsFunc(s.Profile.Layers, func(l profile.Layer) bool {
		return slices.ContainsFunc(l.Inputs, func(t profile.Tensor) bool { return t.DType == "float16" || t.DType == "bfloat16" })
	})
}

// sets is a partition of numbers.
type sets []int

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func (s sets) root(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

func (s sets) join(a, b int) {
	if a, b = s.root(a), s.root(b); a != b {
		s[max(a, b)] = min(a, b)
	}
}
