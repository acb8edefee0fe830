package profile

import (
	"cmp"
	"slices"
)

// Layers is some layers of a profile, for sums over them.
type Layers []*Layer

// Select returns the layers for which keep says so, in their order.
func (p *Profile) Select(keep func(*Layer) bool) Layers {
	var out Layers
	for i := range p.Layers {
		if keep(&p.Layers[i]) {
			out = append(out, &p.Layers[i])
		}
	}
	return out
}

// Group is layers that have something in common.
type Group struct {
	// Name is what they have in common.
	Name string
	Layers
}

// Group gathers the layers by a name, in the order in which names first appear.
func (ls Layers) Group(name func(*Layer) string) []Group {
	var out []Group
	at := map[string]int{}
	for _, l := range ls {
		n := name(l)
		i, ok := at[n]
		if !ok {
			i = len(out)
			at[n] = i
			out = append(out, Group{Name: n})
		}
		out[i].Layers = append(out[i].Layers, l)
	}
	return out
}

// Sum adds up the layers' figures with a key; ok is false when none is known, or
// when figures of that quantity do not add up. A quotient is that of the sums over
// the layers in which all of its parts are known, so that work without a time is
// no part of a rate.
func (ls Layers) Sum(key string) (sum float64, ok bool) {
	q, known := Lookup(key)
	if known && q.Derived() {
		return ls.quotient(&q)
	}
	if known && !q.Adds {
		return 0, false
	}
	for _, l := range ls {
		if v, has := l.Value(key); has {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}

func (ls Layers) quotient(q *Quantity) (float64, bool) {
	var of, per float64
	for _, l := range ls {
		a, b, whole := 0.0, 0.0, true
		for _, k := range q.Of {
			v, ok := l.Value(k)
			a, whole = a+v, whole && ok
		}
		for _, k := range q.Per {
			v, ok := l.Value(k)
			b, whole = b+v, whole && ok
		}
		if whole {
			of, per = of+a, per+b
		}
	}
	return of / per, per > 0
}

// Pair is layers of two profiles that do the same work of the model.
type Pair struct {
	// A and B are the indices in the two profiles; one of them is empty for work
	// that the other profile does not have.
	A, B []int64
	// Confidence says how they were matched, [Unknown] where they were not.
	Confidence Confidence
}

// Join matches the layers of two profiles of a model. Layers that lead back to the
// same nodes of the file belong together, however engines fuse and split them.
// Layers without nodes go by graph, operator and name where these stand for one
// layer alone, then by their order among layers of the same operator. Pairs come in
// the order of a, then what only b has.
func Join(a, b *Profile) []Pair {
	j := &joiner{a: a, b: b, group: make([]int, len(a.Layers)+len(b.Layers)), how: map[int]Confidence{}}
	for i := range j.group {
		j.group[i] = i
	}
	if a.Model.StructureSHA256 == "" || b.Model.StructureSHA256 == "" || a.Model.StructureSHA256 == b.Model.StructureSHA256 {
		j.byNodes()
	}
	j.byName()
	j.byOrder()
	return j.pairs()
}

// joiner gathers layers of both profiles in groups; those of b come after those
// of a.
type joiner struct {
	a, b  *Profile
	group []int              // a member of the same group nearer to its root
	how   map[int]Confidence // by root
}

func (j *joiner) root(i int) int {
	for j.group[i] != i {
		j.group[i] = j.group[j.group[i]]
		i = j.group[i]
	}
	return i
}

func (j *joiner) join(x, y int, how Confidence) {
	x, y = j.root(x), j.root(y)
	c := weaker(j.how[x], weaker(j.how[y], how))
	if x > y {
		x, y = y, x
	}
	j.group[y] = x
	j.how[x] = c
}

// weaker is the less sure of two, an empty one standing for nothing said.
func weaker(a, b Confidence) Confidence {
	order := []Confidence{"", Exact, ByTensor, ByName, ByOrder, Unknown}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

// side is 0 for layers of a, 1 for those of b.
func (j *joiner) side(i int) int {
	if i < len(j.a.Layers) {
		return 0
	}
	return 1
}

func (j *joiner) layer(i int) *Layer {
	if i < len(j.a.Layers) {
		return &j.a.Layers[i]
	}
	return &j.b.Layers[i-len(j.a.Layers)]
}

// byNodes joins layers that lead back to the same node.
func (j *joiner) byNodes() {
	first := map[[2]int64]int{}
	for i := range j.group {
		p := j.layer(i).Provenance
		if p == nil {
			continue
		}
		for _, s := range p.SourceNodes {
			k := [2]int64{s.Graph, s.Node}
			if other, ok := first[k]; ok {
				j.join(i, other, cmp.Or(s.Confidence, p.Confidence))
			} else {
				first[k] = i
			}
		}
	}
}

// alone reports whether a layer has no partner in the other profile yet.
func (j *joiner) alone() func(i int) bool {
	sides := map[int]int{}
	for i := range j.group {
		sides[j.root(i)] |= 1 + j.side(i)
	}
	return func(i int) bool { return sides[j.root(i)] != 3 }
}

// byName joins what is left by graph, operator and name.
func (j *joiner) byName() {
	type key struct{ graph, op, name string }
	alone := j.alone()
	found := map[key][2][]int{}
	for i := range j.group {
		l := j.layer(i)
		if l.Name == "" || !alone(i) {
			continue
		}
		k := key{l.Graph, l.Op, l.Name}
		f := found[k]
		f[j.side(i)] = append(f[j.side(i)], i)
		found[k] = f
	}
	for _, f := range found {
		if len(f[0]) == 1 && len(f[1]) == 1 {
			j.join(f[0][0], f[1][0], ByName)
		}
	}
}

// byOrder joins what is left where both profiles have as many layers of a kind
// left.
func (j *joiner) byOrder() {
	type key struct{ graph, op string }
	alone := j.alone()
	found := map[key][2][]int{}
	for i := range j.group {
		l := j.layer(i)
		if !alone(i) {
			continue
		}
		k := key{l.Graph, l.Op}
		f := found[k]
		f[j.side(i)] = append(f[j.side(i)], i)
		found[k] = f
	}
	for _, f := range found {
		if len(f[0]) != len(f[1]) {
			continue
		}
		for n := range f[0] {
			j.join(f[0][n], f[1][n], ByOrder)
		}
	}
}

func (j *joiner) pairs() []Pair {
	var out []Pair
	at := map[int]int{}
	for i := range j.group {
		r := j.root(i)
		k, ok := at[r]
		if !ok {
			k = len(out)
			at[r] = k
			out = append(out, Pair{Confidence: j.how[r]})
		}
		if i < len(j.a.Layers) {
			out[k].A = append(out[k].A, int64(i))
		} else {
			out[k].B = append(out[k].B, int64(i-len(j.a.Layers)))
		}
	}
	for i := range out {
		if len(out[i].A) == 0 || len(out[i].B) == 0 {
			out[i].Confidence = Unknown
		}
	}
	return out
}
