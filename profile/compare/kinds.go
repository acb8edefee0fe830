package compare

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/opmeter/opmeter/profile/align"
)

// aligned is a pair of layers of two profiles.
type aligned struct {
	layer   int // its first layer, as [builder.start] counts
	kind    align.Kind
	certain bool
	first   bool // of the first run
}

// note keeps a pair of layers of the runs i and k.
func (b *builder) note(i, k int, p *align.Pair) {
	a := aligned{kind: p.Kind, certain: p.Certain, first: i == 0}
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

// kinds says how the layers of the groups, which are given by root, differ from those of the first
// run.
func (b *builder) kinds(at map[int]int) {
	for i := range b.t.Groups {
		b.t.Groups[i].Certain = true
	}
	for _, p := range b.pairs {
		if p.kind == align.Inserted || p.kind == align.Removed {
			continue // of a group that other runs have, the empty figure says so
		}
		g := &b.t.Groups[at[b.root(p.layer)]]
		g.Certain = g.Certain && p.certain
		if p.first && (g.Kind == "" || slices.Index(kindOrder, p.kind) < slices.Index(kindOrder, g.Kind)) {
			g.Kind = p.kind
		}
	}
	for i := range b.t.Groups {
		g := &b.t.Groups[i]
		switch {
		case len(g.Layers[0]) == 0:
			g.Kind, g.Certain = align.Inserted, false
		case !slices.ContainsFunc(g.Layers[1:], func(ls []int64) bool { return len(ls) > 0 }):
			g.Kind, g.Certain = align.Removed, false
		case g.Kind == align.Same || g.Kind == "":
			g.Kind = counted(g)
		}
	}
}

// counted is the kind of a group whose layers do not differ by themselves: one of the runs may have
// more of them, such as the bodies of control flow.
func counted(g *Group) align.Kind {
	for _, ls := range g.Layers[1:] {
		switch n := len(g.Layers[0]); {
		case len(ls) == 0:
		case len(ls) < n:
			return align.Fused
		case len(ls) > n:
			return align.Split
		}
	}
	return align.Same
}

// generated are names that programs make: numbers, constants and results of a converter.
var generated = regexp.MustCompile(`^((t|x|v|n|val|value|node|tensor|tmp|input)?[._:]?[0-9]+|(onnx::|arith\.|tfl\.|tensor_|val_|node_).*|((Stateful)?PartitionedCall|Identity)([:_]?[0-9]+)?)$`)

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
