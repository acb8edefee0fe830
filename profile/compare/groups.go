package compare

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// builder makes a table.
type builder struct {
	t     *Table
	named []Named
	// ps are the profiles of the runs, repeats all of each run, ps first.
	ps      []*profile.Profile
	repeats [][]*profile.Profile
	// q is what is compared; cost says that it is a cost of an inference.
	q    profile.Quantity
	cost bool
	// counts says that counts are compared only because the profiles have no cost in common.
	counts bool
	// errors are the parts that times of the first run and of each run may be off by when the two
	// are compared.
	errors [][2]float64
	// found are the runs that notes are about, whyNot is by run why figures of a topic do not compare.
	found  map[NoteCode][]int
	whyNot []map[Topic]NoteCode
	// blocks has by run the names of the blocks of layers, where they gather rows.
	blocks []map[int64]string
	// classes says that rows are classes of operators: the models have no layers in common.
	classes bool
	// start is the number of the first layer of each profile among all layers; set is a member of
	// the same group nearer to its root, how the confidence by root.
	start []int
	set   []int
	how   map[int]profile.Confidence
	// pairs are the pairs of the alignments that the groups are made of.
	pairs []aligned
	// types tell the element type in which a layer of a run computes.
	types []func(*profile.Layer) string
	// inserted are the layers of each run that do no operator of the model.
	inserted [][]int64
	// estimator says by run that figures are estimates by the same means as those of the first run,
	// same that all of its layers are the same, too.
	estimator, same []bool
}

func (b *builder) root(i int) int {
	for b.set[i] != i {
		b.set[i] = b.set[b.set[i]]
		i = b.set[i]
	}
	return i
}

func (b *builder) unite(x, y int, how profile.Confidence) {
	x, y = b.root(x), b.root(y)
	worst := how
	for _, c := range []profile.Confidence{b.how[x], b.how[y]} {
		worst = align.Weaker(worst, c)
	}
	if x > y {
		x, y = y, x
	}
	b.set[y] = x
	b.how[x] = worst
}

// join finds what belongs together: all pairs of profiles are joined, and what is connected is a
// group.
func (b *builder) join() {
	n := 0
	for _, p := range b.ps {
		b.start = append(b.start, n)
		n += len(p.Layers)
	}
	b.set, b.how = make([]int, n), map[int]profile.Confidence{}
	for i := range b.set {
		b.set[i] = i
	}
	for i := range b.ps {
		for k := i + 1; k < len(b.ps); k++ {
			pairs := align.Layers(b.ps[i], b.ps[k])
			b.add(Unrelated, k, i == 0 && unrelated(b.ps[0], b.ps[k], pairs))
			for _, pair := range pairs {
				b.connect(b.start[i], pair.A, b.start[k], pair.B, pair.Confidence)
				b.note(i, k, &pair)
			}
		}
	}
	if len(b.found[Unrelated]) == len(b.ps)-1 {
		b.dissolve()
	}
	b.bodies()
}

// related is the part of the heavy operators of the smaller model that related models have in
// common at least.
const related = 0.25

// unrelated reports whether two models have no layers in common: none of their heavy operators is
// certain to be the same, and few may be.
func unrelated(a, b *profile.Profile, pairs []align.Pair) bool {
	x, y := &a.Model, &b.Model
	if x.StructureSHA256 == "" || y.StructureSHA256 == "" || x.StructureSHA256 == y.StructureSHA256 {
		return false
	}
	count := func(p *profile.Profile, layers []int64) (n int) {
		for _, l := range p.At(layers) {
			if align.Heavy(l.Op) {
				n++
			}
		}
		return n
	}
	shared, of := 0, [2]int{}
	for i := range pairs {
		p := &pairs[i]
		n := [2]int{count(a, p.A), count(b, p.B)}
		of[0], of[1] = of[0]+n[0], of[1]+n[1]
		if least := min(n[0], n[1]); least > 0 && !p.Region {
			if p.Certain {
				return false
			}
			shared += least
		}
	}
	least := min(of[0], of[1])
	return least > 0 && float64(shared) < related*float64(least)
}

// dissolve takes layers of models without common ones apart: rows are operators.
func (b *builder) dissolve() {
	if b.t.By != ByLayer && b.t.By != ByOp {
		return
	}
	b.t.By, b.classes = ByOp, true
	for i := range b.set {
		b.set[i] = i
	}
	b.how, b.pairs = map[int]profile.Confidence{}, nil
}

func (b *builder) connect(at int, as []int64, bt int, bs []int64, how profile.Confidence) {
	if len(as) == 0 || len(bs) == 0 {
		return
	}
	first := at + int(as[0])
	for _, i := range as[1:] {
		b.unite(first, at+int(i), how)
	}
	for _, i := range bs {
		b.unite(first, bt+int(i), how)
	}
}

// bodies takes the layers of control flow's bodies along where another profile has the owner as
// one layer: its time is with them.
func (b *builder) bodies() {
	whole := map[int]bool{} // roots of groups in which a profile has layers without bodies
	owner := make([]bool, len(b.set))
	for k, p := range b.ps {
		for i := range p.Layers {
			if o := p.Layers[i].Parent; o != nil && *o >= 0 && int(*o) < i {
				owner[b.start[k]+int(*o)] = true
			}
		}
	}
	has := map[[2]int]bool{} // root and profile: some member owns bodies
	for k, p := range b.ps {
		for i := range p.Layers {
			if owner[b.start[k]+i] {
				has[[2]int{b.root(b.start[k] + i), k}] = true
			}
		}
	}
	for k, p := range b.ps {
		for i := range p.Layers {
			r := b.root(b.start[k] + i)
			if p.Layers[i].State.Elsewhere() || has[[2]int{r, k}] {
				continue
			}
			whole[r] = true
		}
	}
	// Owners stand before their bodies, so that what is deeper follows.
	for k, p := range b.ps {
		for i := range p.Layers {
			o := p.Layers[i].Parent
			if o == nil || *o < 0 || int(*o) >= i {
				continue
			}
			from := b.start[k] + int(*o)
			if r := b.root(from); whole[r] {
				b.unite(from, b.start[k]+i, "")
				whole[b.root(from)] = true
			}
		}
	}
}

// groups makes the rows, without figures: in the order of the first profile that has them.
func (b *builder) groups() {
	at := map[int]int{}
	for k, p := range b.ps {
		for i := range p.Layers {
			l := &p.Layers[i]
			r := b.root(b.start[k] + i)
			g, ok := at[r]
			if !ok {
				g = len(b.t.Groups)
				at[r] = g
				b.t.Groups = append(b.t.Groups, Group{
					Op: l.Op, Name: l.Name, Layers: make([][]int64, len(b.ps)), Figures: make([]Figure, len(b.ps)), Ratios: make([]Ratio, len(b.ps)),
					Confidence: cmp.Or(b.how[r], profile.Unknown),
				})
			}
			row := &b.t.Groups[g]
			row.Layers[k] = append(row.Layers[k], int64(i))
		}
	}
	for i := range b.t.Groups {
		b.name(&b.t.Groups[i])
	}
	b.kinds(at)
	for k := range b.ps {
		b.same = append(b.same, !slices.ContainsFunc(b.t.Groups, func(g Group) bool { return !g.same[k] }))
	}
}

// name names a row by the layer that the others serve: weights that are dequantised come before it.
func (b *builder) name(g *Group) {
	if l, _ := b.leading(g); l != nil {
		g.Op, g.Name = l.Op, l.Name
	}
}

// leading is the layer of the first run with layers of a row that the others of this run serve.
func (b *builder) leading(g *Group) (lead *profile.Layer, run int) {
	for k, layers := range g.Layers {
		if l := align.Leading(b.ps[k].At(layers)); l != nil {
			return l, k
		}
	}
	return nil, 0
}

// insertions takes layers that do no operator of the model out of the groups.
func (b *builder) insertions() {
	b.inserted = make([][]int64, len(b.ps))
	b.t.Groups = slices.DeleteFunc(b.t.Groups, func(g Group) bool {
		k, yes := b.insertion(&g)
		if yes {
			b.inserted[k] = append(b.inserted[k], g.Layers[k]...)
		}
		return yes
	})
}

// figures fills in the rows. Those without a figure are left out.
func (b *builder) figures() {
	b.t.Groups = slices.DeleteFunc(b.t.Groups, func(g Group) bool {
		any := false
		for k := range b.ps {
			g.Figures[k] = b.sum(k, g.Layers[k])
			any = any || g.Figures[k].Value != nil
		}
		return !any
	})
	for i := range b.t.Groups {
		g := &b.t.Groups[i]
		for k := range b.ps {
			g.Operators = max(g.Operators, int64(len(g.Layers[k])))
			g.Ratios[k] = Ratio{Verdict: Open}
			if k > 0 {
				g.Ratios[k] = b.ratio(b.t.Topic, k, g.Figures[k], g.Figures[0], g.same[k])
			}
		}
	}
	b.discover()
}

// sum is the figure of some layers of run k.
func (b *builder) sum(k int, layers []int64) Figure {
	fs := make([]Figure, len(b.repeats[k]))
	for i, p := range b.repeats[k] {
		if b.q.Derived() {
			if v, ok := p.At(layers).SumOf(&b.q); ok {
				fs[i] = Figure{Value: &v}
			}
			continue
		}
		fs[i] = sum(p, layers, b.q.Key)
	}
	return mean(fs)
}

// sum adds up the figures of layers. Their errors have causes in common, such as the machine's
// speed, so that the intervals are added, too.
func sum(p *profile.Profile, layers []int64, key string) Figure {
	var v, low, high float64
	kind := Exact
	known, bounded, partial := false, true, false
	for _, i := range layers {
		l := &p.Layers[i]
		f := of(l.Figure(key))
		if f.Value == nil {
			partial = partial || !l.State.Elsewhere() && l.State != profile.NotReached && !l.Constant
			continue
		}
		known = true
		v += *f.Value
		if f.Low == nil || f.High == nil {
			bounded = false
			continue
		}
		kind = widest(kind, f.Interval)
		low += *f.Value - *f.Low
		high += *f.High - *f.Value
	}
	if !known {
		return Figure{}
	}
	out := Figure{Value: &v, Partial: partial}
	if bounded {
		out.Low, out.High, out.Interval = new(max(0, v-low)), new(v+high), kind
	}
	return out
}

// insertion reports whether a group is layers of one profile that do no operator of the model.
func (b *builder) insertion(g *Group) (run int, yes bool) {
	run = -1
	for k, layers := range g.Layers {
		if len(layers) == 0 {
			continue
		}
		if run >= 0 {
			return 0, false
		}
		run = k
		for _, i := range layers {
			pv := b.ps[k].Layers[i].Provenance
			if pv == nil || len(pv.SourceNodes) > 0 {
				return 0, false
			}
		}
	}
	return run, run >= 0
}
