package profile

import (
	"cmp"
	"math"
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

// At returns the layers with some indices, such as those of a [Pair]; an index that
// no layer has gives none.
func (p *Profile) At(indices []int64) Layers {
	var out Layers
	for _, i := range indices {
		if i >= 0 && i < int64(len(p.Layers)) {
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

// Sum adds up the layers' figures with the key of a known quantity: [Layers.SumOf].
// ok is false for a key that is not known, as nothing says then that its figures add
// up.
func (ls Layers) Sum(key string) (sum float64, ok bool) {
	q, known := Lookup(key)
	if !known {
		return 0, false
	}
	return ls.SumOf(&q)
}

// SumOf adds up the layers' figures of a quantity, such as one of
// [Profile.Quantities]; ok is false when none is known, or when figures of that
// quantity do not add up. Weights that several layers read count once. A quotient is
// that of the sums over the layers in which all of its parts are known, so that work
// without a time is not a part of a rate.
func (ls Layers) SumOf(q *Quantity) (sum float64, ok bool) {
	if q.Derived() {
		return ls.quotient(q)
	}
	if !q.Adds {
		return 0, false
	}
	for _, l := range ls {
		if v, has := l.Value(q.Key); has {
			sum, ok = sum+v-float64(l.shared(q.Key)), true
		}
	}
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		return 0, false // beyond what a figure can be
	}
	return sum, ok
}

// shared returns the part of a layer's count that another layer counts too.
func (l *Layer) shared(key string) int64 {
	var n *int64
	switch key {
	case "params":
		n = l.SharedParams
	case "weights_bytes":
		n = l.SharedWeightsBytes
	}
	if n == nil {
		return 0
	}
	return *n
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
	if v := of / per; per > 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return v, true
	}
	return 0, false
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
// same nodes of the file belong together, however engines fuse and split them; a
// layer that one engine fuses and the other runs takes the layer along that does its
// work. Nodes say nothing where the models are known to differ in structure, or the
// files are known to differ and one has no hash of its structure. Layers without a
// partner go by graph, operator and name where these stand for one layer alone on
// either side, then by their order among those of the same graph and operator where
// both profiles have as many. Pairs come in the order of a, then what only b has.
func Join(a, b *Profile) []Pair {
	j := &joiner{a: a, b: b, group: make([]int, len(a.Layers)+len(b.Layers)), how: map[int]Confidence{}}
	for i := range j.group {
		j.group[i] = i
	}
	if sameNodes(&a.Model, &b.Model) {
		j.byNodes()
	}
	j.byName()
	j.byOrder()
	j.fused()
	return j.pairs()
}

// sameNodes reports whether positions of nodes mean the same in both models.
func sameNodes(a, b *Model) bool {
	if a.StructureSHA256 != "" && b.StructureSHA256 != "" {
		return a.StructureSHA256 == b.StructureSHA256
	}
	return a.SHA256 == "" || b.SHA256 == "" || a.SHA256 == b.SHA256
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
	type found struct {
		layer int
		how   Confidence
	}
	first := map[[2]int64]found{}
	for i := range j.group {
		p := j.layer(i).Provenance
		if p == nil {
			continue
		}
		for _, s := range p.SourceNodes {
			k, how := [2]int64{s.Graph, s.Node}, cmp.Or(s.Confidence, p.Confidence)
			if f, ok := first[k]; ok {
				j.join(i, f.layer, weaker(how, f.how))
			} else {
				first[k] = found{i, how}
			}
		}
	}
}

// fused joins a layer with the one that does its work where the other profile runs
// it by itself: that one's time is for both.
func (j *joiner) fused() {
	runs := map[int]int{} // by root: which sides run a layer of the group
	var open []int        // fused layers to look at
	for i := range j.group {
		if !j.layer(i).State.Elsewhere() {
			runs[j.root(i)] |= 1 + j.side(i)
		}
		if j.layer(i).FusedInto != nil {
			open = append(open, i)
		}
	}
	waiting := map[int][]int{} // by root: those whose other side does not run the layer yet
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		to := int(*j.layer(i).FusedInto)
		if j.side(i) == 1 {
			to += len(j.a.Layers)
		}
		from, other := j.root(i), 2-j.side(i)
		if runs[from]&other == 0 {
			waiting[from] = append(waiting[from], i)
			continue
		}
		if to < 0 || to >= len(j.group) || j.root(to) == from {
			continue
		}
		into := j.root(to)
		j.join(i, to, "")
		both := runs[from] | runs[into]
		for _, r := range []int{from, into} {
			if runs[r] != both { // a layer waits for two changes at most
				open = append(open, waiting[r]...)
				delete(waiting, r)
			}
		}
		r := j.root(i)
		runs[r] = both
		if x, y := waiting[from], waiting[into]; len(x) > len(y) {
			waiting[r] = append(x, y...)
		} else {
			waiting[r] = append(y, x...)
		}
		delete(waiting, from+into-r) // the root that is none any more
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
