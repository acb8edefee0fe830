package join

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// absorb assigns unmatched nodes to the only row that can compute them. Either all their inputs
// come from one row and constants, and that row's operator says that it was fused; or their
// outputs go to one row only.
func (f *finder) absorb() {
	for again := true; again; {
		again = false
		for i := range f.model {
			if f.owner[i] >= 0 || f.model[i].Constant || f.model[i].State.Elsewhere() {
				continue
			}
			if row, ok := f.fusedRow(i); ok {
				f.take(row, i, profile.ByOrder)
				again = true
			}
		}
	}
}

// mayFuse reports whether a node can be part of a row in addition to its matched nodes, before or
// after them.
func (f *finder) mayFuse(row, layer int, before bool) bool {
	if h := f.hint(row); len(h.Nodes) > 1 && len(h.Inputs) == 0 {
		return false // the record lists them
	}
	op := f.model[layer].Op
	heavy := multiplies(&f.model[layer])
	// A row with the operator of one of its nodes computes that node and cheap ones around it.
	// Another row stands for a pattern, or its node is not found yet.
	for _, m := range f.out[row].Layers {
		if alike(f.model[m].Op, f.rows[row].Op) {
			return !heavy && (!before || foldable[plain(op)])
		}
	}
	return before || !heavy
}

// multiplies reports whether a node multiplies, by its count or, if that is unknown, by its
// operator.
func multiplies(l *profile.Layer) bool {
	if l.MACs != nil {
		return *l.MACs > 0
	}
	op := plain(l.Op)
	return strings.Contains(op, "conv") && op != "convert" || strings.Contains(op, "matmul") || op == "lstm" || op == "gru" || op == "rnn" || op == "einsum"
}

// missesLeading reports whether a row has not been matched with a node of its own operator yet,
// and the layer can be it.
func (f *finder) missesLeading(row, layer int) bool {
	return alike(f.model[layer].Op, f.rows[row].Op) && !slices.ContainsFunc(f.out[row].Layers, func(l int) bool { return alike(f.model[l].Op, f.rows[row].Op) })
}

// foldable lists operators that engines fold into their consumer: they only change shape, order
// or type.
var foldable = map[string]bool{
	"transpose": true, "reshape": true, "flatten": true, "squeeze": true, "unsqueeze": true, "expanddims": true, "identity": true, "cast": true,
	"pad": true, "padv2": true, "quantizelinear": true, "dequantizelinear": true, "quantize": true, "dequantize": true, "slice": true, "concat": true,
	"concatenation": true, "split": true, "shape": true, "gather": true, "expand": true, "dropout": true, "constantofshape": true, "tile": true,
}

// fusedRow finds the row that a node must be part of.
func (f *finder) fusedRow(layer int) (int, bool) {
	before, known := -1, true
	for _, t := range f.model[layer].Inputs {
		if t.Absent || t.Constant || t.Name == "" {
			continue
		}
		from, made := f.tensors[t.Name]
		if !made || f.model[from].Constant {
			continue
		}
		row := f.owner[from]
		if row < 0 || before >= 0 && row != before {
			known = false
			continue
		}
		before = row
	}
	after := f.consumerRow(layer)
	if known && before >= 0 && !(after >= 0 && f.missesLeading(after, layer)) && f.isLastOf(before, layer) && f.mayFuse(before, layer, false) {
		return before, true
	}
	if after >= 0 && f.model[layer].Parent == nil && f.mayFuse(after, layer, true) {
		return after, true
	}
	return 0, false
}

// consumerRow returns the only row whose nodes read the node's outputs, -1 if there are several
// or none.
func (f *finder) consumerRow(layer int) int {
	after := -1
	for _, t := range f.model[layer].Outputs {
		for _, to := range f.readers[t.Name] {
			row := f.owner[to]
			if row < 0 || after >= 0 && row != after {
				return -1
			}
			after = row
		}
	}
	return after
}

// isLastOf reports whether a node may be fused at the end of a row: the row writes nothing else
// that others read.
func (f *finder) isLastOf(row, layer int) bool {
	for _, m := range f.out[row].Layers {
		for _, t := range f.model[m].Outputs {
			for _, to := range f.readers[t.Name] {
				if to != layer && f.owner[to] != row {
					return false
				}
			}
		}
	}
	return !f.hasUnmatchedRow(layer)
}

// hasUnmatchedRow reports whether a row without a match may be this node.
func (f *finder) hasUnmatchedRow(layer int) bool {
	for i := range f.rows {
		if len(f.out[i].Layers) == 0 && len(f.out[i].Serves) == 0 && plain(f.rows[i].Op) == plain(f.model[layer].Op) {
			return true
		}
	}
	return false
}

// byOrder matches rows and nodes of one kind between the same matched ones. Both lists are in
// execution order, except for engines that reorder, which a longest common subsequence of kinds
// tolerates.
func (f *finder) byOrder() {
	var rows, layers []int
	match := func() {
		for _, p := range longestCommon(len(rows), len(layers), func(a, b int) bool {
			return plain(f.rows[rows[a]].Op) == plain(f.model[layers[b]].Op)
		}) {
			f.take(rows[p[0]], layers[p[1]], profile.ByOrder)
		}
		rows, layers = rows[:0], layers[:0]
	}
	next := 0
	for r := range f.rows {
		if len(f.out[r].Layers) == 0 {
			if len(f.out[r].Serves) == 0 {
				rows = append(rows, r)
			}
			continue
		}
		at := slices.Min(f.out[r].Layers)
		if at < next {
			continue
		}
		for ; next < at; next++ {
			if f.owner[next] < 0 && !f.model[next].Constant {
				layers = append(layers, next)
			}
		}
		match()
	}
	for ; next < len(f.model); next++ {
		if f.owner[next] < 0 && !f.model[next].Constant {
			layers = append(layers, next)
		}
	}
	match()
}

// maxCells bounds the table of [longestCommon]: 16 MiB.
const maxCells = 4 << 20

// longestCommon returns a longest common subsequence of two lists as pairs of indices. Lists too
// long for the table are compared greedily in parallel.
func longestCommon(n, m int, same func(a, b int) bool) (pairs [][2]int) {
	if n == 0 || m == 0 {
		return nil
	}
	if n > maxCells/m {
		for a, b := 0, 0; a < n && b < m; {
			switch {
			case same(a, b):
				pairs = append(pairs, [2]int{a, b})
				a, b = a+1, b+1
			case n-a > m-b:
				a++
			default:
				b++
			}
		}
		return pairs
	}
	w := m + 1
	t := make([]int32, (n+1)*w)
	for a := n - 1; a >= 0; a-- {
		for b := m - 1; b >= 0; b-- {
			v := max(t[(a+1)*w+b], t[a*w+b+1])
			if same(a, b) {
				v = max(v, t[(a+1)*w+b+1]+1)
			}
			t[a*w+b] = v
		}
	}
	for a, b := 0, 0; a < n && b < m; {
		switch {
		case same(a, b) && t[a*w+b] == t[(a+1)*w+b+1]+1:
			pairs = append(pairs, [2]int{a, b})
			a, b = a+1, b+1
		case t[(a+1)*w+b] >= t[a*w+b+1]:
			a++
		default:
			b++
		}
	}
	return pairs
}
