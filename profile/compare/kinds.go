package compare

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/profile/align"
)

// aligned is a pair of layers of two profiles.
type aligned struct {
	layer   int // its first layer, as [builder.start] counts
	kind    align.Kind
	certain bool
	run     int // the run that is paired with the first one, 0 for pairs of others
}

// note keeps a pair of layers of the runs i and k.
func (b *builder) note(i, k int, p *align.Pair) {
	a := aligned{kind: p.Kind, certain: p.Certain}
	if i == 0 {
		a.run = k
	}
	switch {
	case len(p.A) > 0:
		a.layer = b.start[i] + int(p.A[0])
	case len(p.B) > 0:
		a.layer = b.start[k] + int(p.B[0])
	}
	b.pairs = append(b.pairs, a)
}

// kindOrder is the order of kinds: of several pairs of a group the first counts.
var kindOrder = []align.Kind{
	align.Replaced, align.Quantised, align.Pruned, align.Fused, align.Split, align.Resized, align.Same,
}

// stronger returns that of two kinds, either of which may be absent, that comes first in kindOrder.
func stronger(a, b align.Kind) align.Kind {
	if i, k := slices.Index(kindOrder, a), slices.Index(kindOrder, b); k < 0 || i >= 0 && i <= k {
		return a
	}
	return b
}

// kinds says how the layers of the groups, which are given by root, differ from those of the first
// run: of each run, and of all.
func (b *builder) kinds(at map[int]int) {
	for i := range b.t.Groups {
		g := &b.t.Groups[i]
		g.Certain, g.Matches, g.same = true, slices.Repeat([]Match{{Certain: true}}, len(b.ps)), make([]bool, len(b.ps))
	}
	for _, p := range b.pairs {
		if p.kind == align.Inserted || p.kind == align.Removed {
			continue // of a group that other runs have, the empty figure says so
		}
		g := &b.t.Groups[at[b.root(p.layer)]]
		g.Certain = g.Certain && p.certain
		if p.run > 0 {
			m := &g.Matches[p.run]
			m.Kind, m.Certain = stronger(m.Kind, p.kind), m.Certain && p.certain
		}
	}
	for i := range b.t.Groups {
		g := &b.t.Groups[i]
		for k := range g.Matches[1:] {
			m := &g.Matches[k+1]
			if alone := g.alone(k + 1); alone != "" || len(g.Layers[0]) == 0 {
				*m = Match{Kind: alone}
				continue
			}
			if m.Kind == align.Same || m.Kind == "" {
				m.Kind = counted(len(g.Layers[0]), len(g.Layers[k+1]))
			}
			g.Kind = stronger(g.Kind, m.Kind)
			g.same[k+1] = m.Kind == align.Same
		}
		if g.oneSided() {
			g.Kind, g.Certain = kindOf(g), false
		}
	}
}

// alone is the kind of a group for a run where only this run or only the first has layers, else "".
func (g *Group) alone(k int) align.Kind {
	switch first, this := len(g.Layers[0]), len(g.Layers[k]); {
	case first == 0 && this > 0:
		return align.Inserted
	case first > 0 && this == 0:
		return align.Removed
	}
	return ""
}

// counted is the kind of layers that do not differ by themselves: one of the runs may have more of
// them, such as the bodies of control flow.
func counted(first, this int) align.Kind {
	switch {
	case this < first:
		return align.Fused
	case this > first:
		return align.Split
	}
	return align.Same
}

// generated are names that programs make: numbers, constants and results of a converter.
var generated = lazyregexp.New(`^((t|x|v|n|val|value|node|tensor|tmp|input)?[._:]?[0-9]+|(onnx::|arith\.|tfl\.|tensor_|val_|node_).*|((Stateful)?PartitionedCall|Identity)([:_]?[0-9]+)?)$`)

// Label names a group for people: by its name, or by operator and number of its first layer where
// a program made the name, and by its operator where it has no name.
func (g *Group) Label() string {
	switch {
	case g.Name != "" && !generated.MatchString(g.Name):
		return g.Name
	case g.Op == "":
		return g.Name
	case g.Name == "":
		return g.Op
	}
	for _, layers := range g.Layers {
		if len(layers) > 0 {
			return fmt.Sprintf("%s #%d", g.Op, layers[0])
		}
	}
	return g.Op
}
