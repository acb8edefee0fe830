package align

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// pairs lists the result: partners, with the nodes of their own that exporters and optimisers fuse
// or add, and what has no partner.
func (x *aligner) pairs() []Pair {
	into := [2]map[int][]int64{absorbed(x.a), absorbed(x.b)}
	taken := [2]map[int64]bool{{}, {}}
	for side := range 2 {
		for _, ls := range into[side] {
			for _, l := range ls {
				taken[side][l] = true
			}
		}
	}
	var out []Pair
	listed := make([]bool, len(x.b.nodes))
	// Layers that only b has follow the layer before them.
	insert := func(from int) {
		for j := from; j < len(x.b.nodes) && x.b.partner[j] < 0; j++ {
			if !listed[j] && !taken[1][int64(j)] {
				listed[j] = true
				out = append(out, Pair{B: []int64{int64(j)}, Kind: Inserted})
			}
		}
	}
	insert(0)
	for i := range x.a.nodes {
		if taken[0][int64(i)] {
			continue
		}
		j := x.a.partner[i]
		if j < 0 {
			out = append(out, Pair{A: []int64{int64(i)}, Kind: Removed})
			continue
		}
		p := Pair{A: append([]int64{int64(i)}, into[0][i]...), B: append([]int64{int64(j)}, into[1][j]...)}
		slices.Sort(p.A)
		slices.Sort(p.B)
		p.Kind, p.Certain = x.kind(i, j, &p), x.certain(i, j)
		listed[j] = true
		out = append(out, p)
		insert(j + 1)
	}
	for j := range x.b.nodes {
		if !listed[j] && !taken[1][int64(j)] {
			if q := x.b.partner[j]; q < 0 || taken[0][int64(q)] {
				out = append(out, Pair{B: []int64{int64(j)}, Kind: Inserted})
			}
		}
	}
	return out
}

// absorbed lists by core node the layers of its own that have no partner and are part of its work
// elsewhere: conversions, and operators that are fused.
func absorbed(g *network) map[int][]int64 {
	out := map[int][]int64{}
	for i := range g.nodes {
		n := &g.nodes[i]
		if g.partner[i] >= 0 || n.owner < 0 || g.partner[n.owner] < 0 || n.role != satellite && n.role != conversion {
			continue
		}
		out[n.owner] = append(out[n.owner], int64(i))
	}
	return out
}

// kind says how partners differ.
func (x *aligner) kind(i, j int, p *Pair) Kind {
	a, b := &x.a.p.Layers[i], &x.b.p.Layers[j]
	switch {
	case x.a.nodes[i].class != x.b.nodes[j].class:
		return Replaced
	case elemType(a) != elemType(b) && elemType(a) != "" && elemType(b) != "":
		return Quantised
	case weightCount(b) > 0 && weightCount(b) < weightCount(a), zeros(b) > zeros(a)+prunedZeros:
		return Pruned
	case len(p.A) > len(p.B):
		return Fused
	case len(p.A) < len(p.B):
		return Split
	}
	return Same
}

// prunedZeros is how much larger the part of zeros in pruned weights is.
const prunedZeros = 0.05

// elemType is the element type of what a layer multiplies, or of its first operand.
func elemType(l *profile.Layer) string {
	if l.Computes != "" {
		return l.Computes
	}
	for _, constant := range []bool{true, false} {
		for k := range l.Inputs {
			t := &l.Inputs[k]
			if t.Constant == constant && !t.Absent && t.DType != "" && (!constant || len(t.Shape) > 1) {
				return strings.TrimPrefix(t.DType, "u") // uint8 and int8 differ by a zero point
			}
		}
	}
	return ""
}

func weightCount(l *profile.Layer) int64 {
	for k := range l.Inputs {
		if t := &l.Inputs[k]; t.Constant && len(t.Shape) > 1 {
			n := int64(1)
			for _, d := range t.Shape {
				n *= max(d, 0)
			}
			return n
		}
	}
	return 0
}

func zeros(l *profile.Layer) float64 {
	if l.Sparsity != nil && l.Sparsity.Weights != nil {
		return *l.Sparsity.Weights
	}
	return 0
}

// certain reports whether partners agree in what they compute, and their neighbours are partners.
func (x *aligner) certain(i, j int) bool {
	p, q := &x.a.nodes[i], &x.b.nodes[j]
	if p.class != q.class || p.window != q.window {
		return false
	}
	if p.role != core {
		return p.owner >= 0 && q.owner >= 0 && x.a.partner[p.owner] == q.owner && x.certain(p.owner, q.owner)
	}
	if len(p.before)+len(p.after) == 0 {
		return p.name != "" && p.name == q.name
	}
	return x.partners(p.before, q.before) && x.partners(p.after, q.after)
}

// partners reports whether two sets of nodes are partners of each other.
func (x *aligner) partners(as, bs []int) bool {
	if len(as) != len(bs) {
		return false
	}
	for _, i := range as {
		if j := x.a.partner[i]; j < 0 || !slices.Contains(bs, j) {
			return false
		}
	}
	return true
}
