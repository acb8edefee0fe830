package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// source is a model with its profile.
type source struct {
	m *graph.Model
	p *profile.Profile
	// at is the layer of each node.
	at map[*graph.Node]int
	// shape is the shape of each value that is known, by graph and name.
	shape map[string][]int
}

// twin is a model that was made of another one.
type twin struct {
	m *graph.Model
	// from lists the nodes of the source that a node came from. Nodes without an entry are new:
	// they have no partner. Helpers may be with any of their nodes, or alone.
	from   map[*graph.Node][]*graph.Node
	helper map[*graph.Node]bool
	// gone are nodes of the source that the twin has as part of others at most.
	gone map[*graph.Node]bool
	in   opmeter.Inputs
}

func count(m *graph.Model, in opmeter.Inputs) (*profile.Profile, error) {
	b, err := rewrite.Encode(m)
	if err != nil {
		return nil, err
	}
	o, err := opmeter.OpenBytes("model."+m.Format, b)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return opmeter.Count(o, in)
}

// layersOf finds the layers of nodes by the positions that they have in the file.
func layersOf(m *graph.Model, p *profile.Profile) (map[*graph.Node]int, error) {
	at := map[*graph.Node]int{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Provenance == nil || len(l.Provenance.SourceNodes) == 0 {
			continue
		}
		s := l.Provenance.SourceNodes[0]
		if int(s.Graph) >= len(m.Graphs) || int(s.Node) >= len(m.Graphs[s.Graph].Nodes) {
			return nil, fmt.Errorf("layer %d is of node %d of graph %d, which the model lacks", i, s.Node, s.Graph)
		}
		g := m.Graphs[s.Graph]
		n := g.Nodes[s.Node]
		if n.Op != l.Op {
			return nil, fmt.Errorf("layer %d is %s, its node %s", i, l.Op, n.Op)
		}
		if k := slices.IndexFunc(n.Outputs, func(id int) bool { return id >= 0 }); k >= 0 && k < len(l.Outputs) && l.Outputs[k].Name != g.Values[n.Outputs[k]].Name && g.Values[n.Outputs[k]].Name != "" {
			return nil, fmt.Errorf("layer %d makes %q, its node %q", i, l.Outputs[k].Name, g.Values[n.Outputs[k]].Name)
		}
		if _, ok := at[n]; !ok {
			at[n] = i
		}
	}
	return at, nil
}

func original(m *graph.Model) (*source, error) {
	t := &twin{m: clone(m, nil)}
	uniqueNames(t.m)
	a := &source{m: t.m}
	var err error
	if a.p, err = count(a.m, opmeter.Inputs{}); err != nil {
		return nil, err
	}
	if a.at, err = layersOf(a.m, a.p); err != nil {
		return nil, err
	}
	a.shape = map[string][]int{}
	for i := range a.p.Layers {
		l := &a.p.Layers[i]
		for _, ts := range [][]profile.Tensor{l.Inputs, l.Outputs} {
			for k := range ts {
				if ts[k].Name == "" || ts[k].Shape == nil || l.Graph != "" {
					continue
				}
				s := make([]int, len(ts[k].Shape))
				for d, v := range ts[k].Shape {
					s[d] = int(v)
				}
				a.shape[ts[k].Name] = s
			}
		}
	}
	return a, nil
}

// shapes returns the shape of a value of the main graph, nil if it is not known.
func (a *source) shapes(id int) []int { return a.shape[a.m.Main().Values[id].Name] }

// uniqueNames names all values of a graph, each otherwise: files may lack names.
func uniqueNames(m *graph.Model) {
	for _, g := range m.Graphs {
		seen := map[string]bool{}
		for _, v := range g.Values {
			if v.Name == "" || seen[v.Name] {
				v.Name = fmt.Sprintf("%s~%d", v.Name, v.ID)
			}
			seen[v.Name] = true
		}
	}
}

// clone copies a model but for its constants. was receives the node that each new node is a copy
// of, if it is not nil.
func clone(m *graph.Model, was map[*graph.Node][]*graph.Node) *graph.Model {
	c := *m
	c.Content, c.Close, c.Check, c.Beside = nil, nil, nil, nil
	c.Graphs = make([]*graph.Graph, len(m.Graphs))
	of := map[*graph.Graph]*graph.Graph{}
	for i, g := range m.Graphs {
		h := *g
		h.Values = make([]*graph.Value, len(g.Values))
		for k, v := range g.Values {
			u := *v
			h.Values[k] = &u
		}
		h.Inputs, h.Outputs = slices.Clone(g.Inputs), slices.Clone(g.Outputs)
		h.Nodes = make([]*graph.Node, len(g.Nodes))
		for k, n := range g.Nodes {
			o := *n
			o.Inputs, o.Outputs = slices.Clone(n.Inputs), slices.Clone(n.Outputs)
			h.Nodes[k] = &o
			if was != nil {
				was[&o] = []*graph.Node{n}
			}
		}
		h.Captures = slices.Clone(g.Captures)
		c.Graphs[i] = &h
		of[g] = &h
	}
	for _, h := range c.Graphs {
		h.Parent = of[h.Parent]
	}
	return &c
}

// newTwin is a twin that is equal to its source.
func newTwin(a *source) *twin {
	t := &twin{from: map[*graph.Node][]*graph.Node{}, helper: map[*graph.Node]bool{}, gone: map[*graph.Node]bool{}}
	t.m = clone(a.m, t.from)
	return t
}

// renamed is the twin with other names for all but the inputs, and with its nodes in another order.
func (t *twin) renamed(seed uint64) *twin {
	back := map[*graph.Node][]*graph.Node{}
	u := &twin{m: clone(t.m, back), from: map[*graph.Node][]*graph.Node{}, helper: map[*graph.Node]bool{}, gone: t.gone, in: t.in}
	for n, was := range back {
		if f, ok := t.from[was[0]]; ok {
			u.from[n] = f
		}
		u.helper[n] = t.helper[was[0]]
	}
	r := rand.New(rand.NewPCG(seed, 7))
	outer := map[string]string{}
	for k, g := range u.m.Graphs {
		kept := map[int]bool{}
		for _, i := range g.Inputs {
			kept[i] = k == 0
		}
		for _, c := range g.Captures {
			kept[c.Inner] = true
		}
		for _, v := range g.Values {
			if !kept[v.ID] {
				outer[fmt.Sprint(g.Index, v.Name)] = v.Name
				v.Name = fmt.Sprintf("x%d_%d", k, r.IntN(1<<30)*2+v.ID%2)
			}
		}
		for _, n := range g.Nodes {
			n.Name, n.Scope, n.Function = "", "", nil
		}
		if len(u.m.Graphs) == 1 {
			shuffle(g, r)
		}
	}
	for _, g := range u.m.Graphs { // captures go by name
		for _, c := range g.Captures {
			if g.Parent != nil && c.Outer >= 0 && c.Outer < len(g.Parent.Values) {
				g.Values[c.Inner].Name = g.Parent.Values[c.Outer].Name
			}
		}
	}
	if u.m.Format == "tflite" {
		u.m.Signatures = nil
	}
	return u
}

// shuffle brings the nodes of a graph into another order that is one of execution.
func shuffle(g *graph.Graph, r *rand.Rand) {
	maker := map[int]int{}
	for i, n := range g.Nodes {
		for _, o := range n.Outputs {
			maker[o] = i
		}
	}
	waits, readers := make([]int, len(g.Nodes)), make([][]int, len(g.Nodes))
	var ready []int
	for i, n := range g.Nodes {
		seen := map[int]bool{}
		for _, in := range n.Inputs {
			if m, ok := maker[in]; ok && in >= 0 && m != i && !seen[m] {
				seen[m] = true
				waits[i]++
				readers[m] = append(readers[m], i)
			}
		}
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	var out []*graph.Node
	for len(ready) > 0 {
		k := r.IntN(len(ready))
		i := ready[k]
		ready[k] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		out = append(out, g.Nodes[i])
		for _, c := range readers[i] {
			if waits[c]--; waits[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	if len(out) == len(g.Nodes) {
		g.Nodes = out
	}
	number(g)
}

func number(g *graph.Graph) {
	for i, n := range g.Nodes {
		n.Index = i
	}
}

func (t *twin) profile() (*profile.Profile, error) {
	for _, g := range t.m.Graphs {
		number(g)
	}
	if err := t.m.Validate(); err != nil {
		return nil, err
	}
	return count(t.m, t.in)
}

// relation is the truth about two profiles.
type relation struct {
	ps [2]*profile.Profile
	// may are the partners that a layer may have, must says that it has one.
	may    [2][]map[int]bool
	must   [2][]bool
	helper [2][]bool
	// unknown layers are not judged.
	unknown [2][]bool
}

// truth relates the layers of a source and its twin.
func (t *twin) truth(a *source, p *profile.Profile) (*relation, error) {
	at, err := layersOf(t.m, p)
	if err != nil {
		return nil, err
	}
	r := newRelation(a.p, p)
	for n, i := range at {
		r.helper[1][i] = t.helper[n]
		for _, o := range t.from[n] {
			k, ok := a.at[o]
			if !ok {
				continue
			}
			r.relate(k, i, !t.gone[o], !t.helper[n])
		}
	}
	for n := range t.gone {
		if k, ok := a.at[n]; ok {
			r.helper[0][k] = true
		}
	}
	return r, nil
}

func newRelation(a, b *profile.Profile) *relation {
	r := &relation{ps: [2]*profile.Profile{a, b}}
	for side, p := range r.ps {
		n := len(p.Layers)
		r.may[side], r.must[side], r.helper[side] = make([]map[int]bool, n), make([]bool, n), make([]bool, n)
		for i := range n {
			r.may[side][i] = map[int]bool{}
		}
	}
	return r
}

func (r *relation) relate(i, j int, mustA, mustB bool) {
	r.may[0][i][j], r.may[1][j][i] = true, true
	r.must[0][i] = r.must[0][i] || mustA && mustB
	r.must[1][j] = r.must[1][j] || mustA && mustB
}

// weighty are the operators of which a pair must have none but those of the truth.
func weighty(l *profile.Layer) bool {
	op := strings.ToLower(l.Op)
	return strings.Contains(op, "conv") && l.Op != "Convert" || strings.Contains(op, "matmul") || strings.Contains(op, "gemm") || strings.Contains(op, "fully")
}

// count aligns the profiles and judges each layer.
func (r *relation) count(name string, back bool) (u tally) {
	one, two := 0, 1
	if back {
		one, two = 1, 0
	}
	x, y := r.ps[one], r.ps[two]
	for _, p := range align.Layers(x, y) {
		sides := map[int][]int64{one: p.A, two: p.B}
		for side, ls := range sides {
			for _, l := range ls {
				i := int(l)
				if r.unknown[side] != nil && r.unknown[side][i] {
					continue
				}
				if r.helper[side][i] && len(sides[1-side]) == 0 {
					continue // part of another layer, and listed by itself
				}
				switch r.judge(side, i, sides[1-side]) {
				case right:
					u.right++
				case missed:
					u.missed++
					r.say(name, "missed", side, i, &p, back)
				case wrong:
					u.wrong++
					if p.Kind == align.Same {
						u.same++
					}
					if p.Certain {
						u.certain++
					}
					r.say(name, "wrong", side, i, &p, back)
				}
			}
		}
	}
	return u
}

const (
	right = iota
	wrong
	missed
)

func (r *relation) judge(side, i int, partners []int64) int {
	may := r.may[side][i]
	if len(partners) == 0 {
		if r.must[side][i] {
			return missed
		}
		return right
	}
	found, foreign := false, false
	for _, k := range partners {
		if may[int(k)] {
			found = true
		} else if weighty(&r.ps[1-side].Layers[k]) && weighty(&r.ps[side].Layers[i]) {
			foreign = true
		}
	}
	switch {
	case foreign:
		return wrong
	case found || r.helper[side][i]:
		return right
	case len(may) == 0 && !r.must[side][i] && slices.ContainsFunc(partners, func(k int64) bool { return r.helper[1-side][k] }):
		return right
	}
	return wrong
}

func (r *relation) say(name, what string, side, i int, p *align.Pair, back bool) {
	if !*verbose {
		return
	}
	one := func(side int, ls []int64) (s string) {
		for _, k := range ls {
			l := &r.ps[side].Layers[k]
			s += fmt.Sprintf(" %d:%s(%s)", k, l.Op, l.Name)
		}
		return s
	}
	a, b := p.A[:min(len(p.A), 8)], p.B[:min(len(p.B), 8)]
	if back {
		a, b = b, a
	}
	var may []int
	for k := range r.may[side][i] {
		may = append(may, k)
	}
	slices.Sort(may)
	fmt.Fprintf(os.Stderr, "%s: %s %s %v: side %d layer %d, may be %v: %s |%s\n", name, what, p.Kind, p.Certain, side, i, may, one(0, a), one(1, b))
}
