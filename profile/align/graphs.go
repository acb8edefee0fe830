package align

import (
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// scope is one graph of a model: the main one, or a body of the layer parent.
type scope struct {
	parent int64
	graph  string
}

// scopes gathers layers by the graphs that they are in, which come in the order of the profile.
func scopes(p *profile.Profile) (layers map[scope][]int64, order []scope) {
	layers = map[scope][]int64{}
	for i := range p.Layers {
		s := scope{-1, p.Layers[i].Graph}
		if o := p.Layers[i].Parent; o != nil && *o >= 0 && *o < int64(i) {
			s.parent = *o
		}
		if _, ok := layers[s]; !ok {
			order = append(order, s)
		}
		layers[s] = append(layers[s], int64(i))
	}
	return layers, order
}

// byGraph joins layers by the graphs of the models, and reports whether the profiles have graphs.
// Bodies of control flow are compared with the bodies of the partner of their layer alone.
func (j *joiner) byGraph() bool {
	as, orderA := scopes(j.a)
	bs, orderB := scopes(j.b)
	bodies := [2]map[int64][]scope{{}, {}}
	for side, order := range [][]scope{orderA, orderB} {
		for _, s := range order {
			bodies[side][s.parent] = append(bodies[side][s.parent], s)
		}
	}
	connected := false
	type both struct{ a, b scope }
	open := []both{}
	// Graphs without a parent are compared with those of the same name.
	for _, s := range bodies[0][-1] {
		if _, ok := bs[s]; ok {
			open = append(open, both{s, s})
		}
	}
	for len(open) > 0 {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		x := newAligner(newNetwork(j.a, as[s.a]), newNetwork(j.b, bs[s.b]), j.types)
		if x.a.edges > 0 && x.b.edges > 0 {
			connected = true
		} else if s.a.parent < 0 {
			continue
		}
		x.run()
		j.take(x)
		for i, k := range x.a.partner {
			if k < 0 {
				continue
			}
			mine, theirs := bodies[0][x.a.nodes[i].layer], bodies[1][x.b.nodes[k].layer]
			for n := range min(len(mine), len(theirs)) {
				open = append(open, both{mine[n], theirs[n]})
			}
		}
	}
	return connected
}

// take joins the layers of partners, what belongs to them and has no partner, and what one of the
// models has as other operators.
func (j *joiner) take(x *aligner) {
	counts := [2]map[owned]int{x.a.countOwned(), x.b.countOwned()}
	certain := x.certain(x.counts(), counts)
	a := func(i int) int { return int(x.a.nodes[i].layer) }
	b := func(i int) int { return len(j.a.Layers) + int(x.b.nodes[i].layer) }
	for i, k := range x.a.partner {
		if k < 0 {
			continue
		}
		how := ByStructure
		if x.a.how[i] == named {
			how = profile.ByName
		}
		j.join(a(i), b(k), found{how: how, guessed: !certain(i) || x.exchanged(i, k), exchanged: x.exchanged(i, k)})
	}
	for side, g := range []*network{x.a, x.b} {
		at := []func(int) int{a, b}[side]
		for i := range g.nodes {
			if !x.absorbed(side, i) {
				continue
			}
			// What an engine fuses is with the layer that does it.
			if into := g.p.Layers[g.nodes[i].layer].FusedInto; into != nil && *into >= 0 && *into < int64(len(g.p.Layers)) {
				j.join(at(i), at(0)-int(g.nodes[0].layer)+int(*into), found{})
				continue
			}
			// Of two such operators either may be the one that the other network lacks.
			n := &g.nodes[i]
			j.join(at(i), at(n.owner), found{guessed: n.role == satellite && counts[1-side][owned{g.partner[n.owner], n.class, n.role}] > 0})
		}
	}
	for _, r := range x.regions() {
		for _, i := range r[0][1:] {
			j.join(a(r[0][0]), a(i), found{})
		}
		for _, i := range r[1] {
			j.join(a(r[0][0]), b(i), found{how: ByStructure, guessed: true, region: true})
		}
	}
}

// exchanged reports whether partners read what others of their operands come from, such as the
// difference of b and a instead of a and b.
func (x *aligner) exchanged(i, j int) bool {
	if x.a.nodes[i].role != core || x.b.nodes[j].role != core || commutative[x.a.nodes[i].class] {
		return false
	}
	ins, with := x.cores[0].ins[i], x.cores[1].ins[j]
	if len(ins) != len(with) || len(ins) > maxNear {
		return false
	}
	for k, m := range ins {
		if m < 0 || x.a.partner[m] < 0 || with[k] == x.a.partner[m] {
			continue
		}
		if slices.Contains(with, x.a.partner[m]) {
			return true
		}
	}
	return false
}

// absorbed reports whether a node without a partner is part of the work of its owner's partner.
func (x *aligner) absorbed(side, i int) bool {
	g, other := x.a, x.b
	if side == 1 {
		g, other = x.b, x.a
	}
	n := &g.nodes[i]
	if g.partner[i] >= 0 || n.owner < 0 || g.partner[n.owner] < 0 {
		return false
	}
	switch n.role {
	case conversion:
		return true
	case satellite:
		if n.class == "pad" && !g.leads(i) {
			return false // only the operator behind it computes padding along
		}
		l := &other.p.Layers[other.nodes[g.partner[n.owner]].layer]
		return mayHold(l, n.class, integer(x.types[1-side].operand(l)) || integer(x.types[1-side].multiplied(l)))
	}
	return false
}

// activations are operators that a layer computes with its result, if its kind has options for it.
var activations = map[string]bool{
	"relu": true, "sigmoid": true, "leakyrelu": true, "gelu": true, "hardswish": true, "silu": true, "prelu": true, "tanh": true, "elu": true, "selu": true,
	"hardsigmoid": true, "erf": true,
}

// mayHold reports whether a layer may do the work of an operator of a class beside its own.
// Quantised numbers saturate as an activation does.
func mayHold(l *profile.Layer, class string, quantised bool) bool {
	if !activations[class] {
		return true // constants take up the scale and the bias, and options the padding
	}
	if lite(l) && l.Domain != "custom" {
		if act := l.Option("activation"); act != "" {
			return act != "none" || quantised
		}
		return quantised
	}
	// Operators of the ONNX standard compute nothing beside.
	return l.Domain != "" || !standard[l.Op] || quantised || l.Computes != ""
}

// standard are operators of ONNX that activations follow.
var standard = map[string]bool{
	"Conv": true, "ConvTranspose": true, "MatMul": true, "Gemm": true, "Add": true, "Sub": true, "Mul": true, "Div": true, "Concat": true, "AveragePool": true,
	"MaxPool": true, "GlobalAveragePool": true, "LayerNormalization": true, "Softmax": true, "InstanceNormalization": true, "ReduceMean": true, "Gather": true,
	"Slice": true, "Split": true, "Resize": true,
}

// regions finds what the networks have as different operators at one place: connected nodes
// without partners that lie between the same partners, each the only ones there.
func (x *aligner) regions() (out [][2][]int) {
	type place struct{ before, after int }
	at := map[place]*[2][]int{} // numbers of components
	var found [2][][]int
	for side, g := range []*network{x.a, x.b} {
		found[side] = x.components(side)
		for k, ns := range found[side] {
			seen := map[place]bool{}
			before, after := x.boundary(side, g, ns)
			for _, p := range before {
				for _, q := range after {
					pl := place{p, q}
					if seen[pl] {
						continue
					}
					seen[pl] = true
					if at[pl] == nil {
						at[pl] = new([2][]int)
					}
					at[pl][side] = append(at[pl][side], k)
				}
			}
		}
	}
	// Components that share places with one component of the other side alone are one region.
	with := [2][]int{make([]int, len(found[0])), make([]int, len(found[1]))}
	const nothing, several = -1, -2
	for side := range with {
		for k := range with[side] {
			with[side][k] = nothing
		}
	}
	for _, s := range at {
		for side := range s {
			for _, k := range s[side] {
				switch others := s[1-side]; {
				case len(others) == 0:
				case len(others) > 1 || with[side][k] != nothing && with[side][k] != others[0]:
					with[side][k] = several
				default:
					with[side][k] = others[0]
				}
			}
		}
	}
	for k, l := range with[0] {
		if l >= 0 && with[1][l] == k {
			out = append(out, [2][]int{found[0][k], found[1][l]})
		}
	}
	return out
}

// components gathers the nodes of a network that have no partner and are not part of the work of
// others.
func (x *aligner) components(side int) (out [][]int) {
	g := []*network{x.a, x.b}[side]
	alone := make([]bool, len(g.nodes))
	for i := range g.nodes {
		alone[i] = g.partner[i] < 0 && !x.absorbed(side, i)
	}
	for _, i := range g.order {
		if !alone[i] {
			continue
		}
		var ns []int
		open := []int{i}
		alone[i] = false
		for len(open) > 0 {
			k := open[len(open)-1]
			open = open[:len(open)-1]
			ns = append(ns, k)
			next := func(m int) {
				if m >= 0 && alone[m] {
					alone[m] = false
					open = append(open, m)
				}
			}
			for _, e := range g.nodes[k].ins {
				next(e.from)
			}
			for _, u := range g.nodes[k].outs {
				next(u.by)
			}
		}
		slices.Sort(ns)
		out = append(out, ns)
	}
	return out
}

// Ends of a graph in the boundary of a component.
const (
	graphInput  = -1
	graphOutput = -2
)

// maxBoundary bounds the boundary of a component: with more neighbours it is at no place.
const maxBoundary = 16

// boundary lists the partners before and after a component, as nodes of the first network.
func (x *aligner) boundary(side int, g *network, ns []int) (before, after []int) {
	inside := map[int]bool{}
	for _, i := range ns {
		inside[i] = true
	}
	name := func(i int) int {
		if g.partner[i] < 0 {
			i = g.nodes[i].owner // absorbed
		}
		if side == 1 {
			return g.partner[i]
		}
		return i
	}
	add := func(to []int, i int) []int {
		if !slices.Contains(to, i) && len(to) <= maxBoundary {
			return append(to, i)
		}
		return to
	}
	for _, i := range ns {
		n := &g.nodes[i]
		for _, e := range n.ins {
			if e.from < 0 {
				before = add(before, graphInput)
			} else if !inside[e.from] && !e.helper {
				before = add(before, name(e.from))
			}
		}
		if len(n.outs) == 0 {
			after = add(after, graphOutput)
		}
		for _, u := range n.outs {
			if !inside[u.by] {
				after = add(after, name(u.by))
			}
		}
	}
	if len(before) > maxBoundary || len(after) > maxBoundary {
		return nil, nil
	}
	return before, after
}
