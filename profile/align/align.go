// Package align pairs the layers of two profiles that do the same work. It compares the graphs of
// the models, so that renamed, quantised, pruned and otherwise exported models can be compared.
package align

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// Kind says how the layers of a pair differ. Where several apply, the first of the list counts.
type Kind string

// Kinds of pairs.
const (
	Inserted  Kind = "inserted"  // only in the second profile
	Removed   Kind = "removed"   // only in the first profile
	Replaced  Kind = "replaced"  // other operators at the same place
	Quantised Kind = "quantised" // another element type, of the operands or the weights
	Pruned    Kind = "pruned"    // fewer channels, or more zeros among the weights
	Fused     Kind = "fused"     // fewer layers in the second profile do the same work
	Split     Kind = "split"     // more layers in the second profile do the same work
	Resized   Kind = "resized"   // the same operator on another batch or shape
	Same      Kind = "same"      // operators, options, element types and shapes are equal
)

// ByStructure is the confidence of pairs that were found by their place in the graph. It is above
// [profile.ByName].
const ByStructure profile.Confidence = "by structure"

// Pair is layers of two profiles that do the same work.
type Pair struct {
	// A and B are the indices of the layers, ascending; one of them is empty for inserted and
	// removed layers.
	A, B []int64
	Kind Kind
	// Confidence says how the layers were found, [profile.Unknown] for inserted and removed ones.
	Confidence profile.Confidence
	// Certain says that nothing speaks for another pair: the model's own nodes are the same, or
	// the layers and their neighbours on both sides agree in operator and structure.
	Certain bool
	// Region says that nothing but their place between the same layers makes them a pair.
	Region bool
}

// Layers pairs the layers of two profiles. Every layer is in one pair. Pairs come in the order of
// a; layers that only b has follow the pair of the layer before them. With a and b exchanged the
// pairs are the same ones the other way round.
//
// Layers that lead back to the same nodes of a model file belong together, however engines fuse
// and split them; a layer that one engine fuses and the other runs takes the layer along that does
// its work. Nodes say nothing where the models are known to differ in structure, or the files are
// known to differ and one has no hash of its structure. Layers of such models are paired by their
// graphs: by equal structure, then by names as exporters and optimisers change them, then so that
// the sum of the similarities is the largest. Operators that one of the models has as others
// between the same neighbours are one pair. Profiles without tensors, such as those of other
// tools, are paired by names, then by order where both have as many layers of an operator.
func Layers(a, b *profile.Profile) []Pair {
	exchanged := precedes(b, a) // ties must not depend on which profile comes first
	if exchanged {
		a, b = b, a
	}
	j := newJoiner(a, b)
	switch {
	case sameNodes(&a.Model, &b.Model) && j.byNodes():
		j.nodes = known(a.Model.StructureSHA256, b.Model.StructureSHA256) || known(a.Model.SHA256, b.Model.SHA256)
		j.byName(operatorAndName)
		j.byOrder(operator)
		j.swallowed()
	case !j.byGraph():
		j.byName(operatorAndName)
		j.byName(classAndName)
		j.byOrder(operator)
		j.byOrder(coreClass)
		j.swallowed()
	}
	j.fused()
	ps := j.pairs()
	if exchanged {
		for i := range ps {
			ps[i] = ps[i].mirrored()
		}
		a, b = b, a
	}
	return inOrder(ps, len(a.Layers), len(b.Layers))
}

// known reports whether two hashes are there and equal.
func known(a, b string) bool { return a != "" && a == b }

// mirrored is the pair with the profiles exchanged.
func (p Pair) mirrored() Pair {
	p.A, p.B = p.B, p.A
	switch p.Kind {
	case Inserted:
		p.Kind = Removed
	case Removed:
		p.Kind = Inserted
	case Fused:
		p.Kind = Split
	case Split:
		p.Kind = Fused
	}
	return p
}

// precedes orders profiles by their layers.
func precedes(a, b *profile.Profile) bool {
	sum := func(p *profile.Profile) uint64 {
		h := uint64(0)
		for i := range p.Layers {
			h += mix(exactly(&p.Layers[i]), []uint64{text(p.Layers[i].Name)}) // in any order
		}
		return h
	}
	if c := cmp.Compare(len(a.Layers), len(b.Layers)); c != 0 {
		return c < 0
	}
	return sum(a) < sum(b)
}

// inOrder puts pairs in the order of the first profile, and those without layers of it behind the
// pair of the layer of the second profile that is before theirs.
func inOrder(ps []Pair, n, m int) []Pair {
	byA, byB := make([]int, n), make([]int, m)
	for k := range ps {
		for _, i := range ps[k].A {
			byA[i] = k
		}
		for _, i := range ps[k].B {
			byB[i] = k
		}
	}
	behind := make([][]int, len(ps)+1) // by pair, the last for the beginning
	at := len(ps)
	for j, k := range byB {
		if len(ps[k].A) > 0 {
			at = k
		} else if ps[k].B[0] == int64(j) {
			behind[at] = append(behind[at], k)
		}
	}
	out := make([]Pair, 0, len(ps))
	list := func(ks []int) {
		for _, k := range ks {
			out = append(out, ps[k])
		}
	}
	list(behind[len(ps)])
	for i, k := range byA {
		if ps[k].A[0] == int64(i) {
			list([]int{k})
			list(behind[k])
		}
	}
	return slices.Clip(out)
}
