package weights

import (
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/study"
)

// All lists the weights of a model's main graph and of all subgraphs that its operators run, in
// the order of their first operators; those of a subgraph follow the operator around it. shapes
// is as in [Find], for values of the main graph. Values of subgraphs have their declared shapes.
func All(m *graph.Model, shapes func(id int) []int) []*Layer {
	a := &collector{m: m, finders: map[int]*finder{}, by: map[*tensor.Tensor]*Layer{}}
	a.addGraph(0, "", false, shapes)
	finish(m, a.finders, a.list)
	hosts, first := CallersInMain(m), make([]int, len(m.Graphs))
	for i := 1; i < len(m.Graphs); i++ {
		first[i] = first[i-1] + len(m.Graphs[i-1].Nodes)
	}
	for _, l := range a.list {
		for _, x := range l.Readings() {
			if x.MainNodes = hosts[x.Graph]; x.Graph == 0 {
				x.MainNodes = x.Nodes
			}
			x.GlobalNodes = nil
			for _, n := range x.Nodes {
				x.GlobalNodes = append(x.GlobalNodes, first[x.Graph]+n)
			}
			x.Fixed, x.Zeros = l.Fixed, l.Zeros
		}
		for _, x := range l.Twins {
			l.addTwin(x)
		}
	}
	return a.list
}

// addTwin adds the operators of a twin to a layer.
func (l *Layer) addTwin(x *Layer) {
	l.MainNodes = append(slices.Clone(l.MainNodes), x.MainNodes...)
	slices.Sort(l.MainNodes)
	l.MainNodes = slices.Compact(l.MainNodes)
	l.GlobalNodes = append(slices.Clone(l.GlobalNodes), x.GlobalNodes...)
	switch {
	case l.MACs == nil || x.MACs == nil:
		l.MACs = nil
	case l.Graph == 0: // the subgraph runs in addition
		l.MACs = new(*l.MACs + *x.MACs)
	case *l.MACs != *x.MACs: // unknown which of them runs
		l.MACs = nil
	}
	if !slices.Equal(l.Row, x.Row) || !slices.Equal(l.Col, x.Col) || l.Taps != x.Taps || l.Groups != x.Groups {
		l.MixedLayouts, x.MixedLayouts = true, true
		if l.Rows*l.Cols != x.Rows*x.Cols || (l.Quant == nil) != (x.Quant == nil) {
			l.Fixed, x.Fixed = study.Shared, study.Shared
		}
	}
}

type collector struct {
	m       *graph.Model
	finders map[int]*finder
	by      map[*tensor.Tensor]*Layer
	list    []*Layer
}

// addGraph adds a graph at a path of operators. turns says that it may run more than once in an
// inference.
func (a *collector) addGraph(at int, path string, turns bool, shapes func(id int) []int) {
	g := a.m.Graphs[at]
	f := newFinder(g, shapes)
	a.finders[at] = f
	for _, n := range g.Nodes {
		before := len(f.list)
		f.node(n)
		for _, l := range f.list[before:] {
			if have := a.by[l.Const]; have != nil {
				have.Twins = append(have.Twins, l)
				continue
			}
			a.by[l.Const] = l
			a.list = append(a.list, l)
		}
		for _, b := range bodiesOf(n) {
			if b.graph > 0 && b.graph < len(a.m.Graphs) && a.finders[b.graph] == nil {
				again := turns || n.Op != "If" && n.Op != "IF" && n.Op != "CALL_ONCE" && n.Op != "CALL"
				a.addGraph(b.graph, path+nameOf(g, n)+"/"+b.name+"/", again, nil)
			}
		}
	}
	for _, l := range f.list {
		l.Graph, l.Name = at, path+l.Name
		if turns && l.MACs != nil && *l.MACs > 0 {
			l.MACs = nil // the number of iterations is unknown
		}
	}
}

// nameOf returns a node's name, or that of its first output if it has none.
func nameOf(g *graph.Graph, n *graph.Node) string {
	if n.Name == "" && len(n.Outputs) > 0 && n.Outputs[0] >= 0 {
		return g.Values[n.Outputs[0]].Name
	}
	return n.Name
}

// body is a subgraph that a node runs, with the name of its role.
type body struct {
	name  string
	graph int
}

// bodiesOf returns the subgraphs that a node runs, in order of their attributes' names.
func bodiesOf(n *graph.Node) (out []body) {
	for _, name := range slices.Sorted(maps.Keys(n.Attrs)) {
		role := strings.TrimSuffix(name, "_subgraph_index")
		switch a := n.Attrs[name].(type) {
		case graph.GraphRef:
			out = append(out, body{role, int(a)})
		case []graph.GraphRef:
			for _, g := range a {
				out = append(out, body{role, int(g)})
			}
		}
	}
	return out
}

// Subgraphs returns the subgraphs that a node runs, in order of their attributes' names.
func Subgraphs(n *graph.Node) (out []int) {
	for _, b := range bodiesOf(n) {
		out = append(out, b.graph)
	}
	return out
}

// CallersInMain returns for each graph the positions of the main graph's operators that run it,
// directly or through other subgraphs.
func CallersInMain(m *graph.Model) [][]int {
	out := make([][]int, len(m.Graphs))
	var mark func(n *graph.Node, host int)
	mark = func(n *graph.Node, host int) {
		for _, b := range bodiesOf(n) {
			if b.graph <= 0 || b.graph >= len(out) || slices.Contains(out[b.graph], host) {
				continue
			}
			out[b.graph] = append(out[b.graph], host)
			for _, inner := range m.Graphs[b.graph].Nodes {
				mark(inner, host)
			}
		}
	}
	for i, n := range m.Main().Nodes {
		mark(n, i)
	}
	return out
}

// Local returns the layer as a layer of the main graph of [Body].
func (l *Layer) Local() *Layer {
	c := *l
	c.Graph, c.MainNodes, c.GlobalNodes, c.Twins = 0, c.Nodes, c.Nodes, nil
	return &c
}

// Body returns a model whose main graph is the given subgraph; captured values become additional
// inputs after its own. Values keep their ids. [WithBody] puts the subgraph back.
func Body(m *graph.Model, at int) *graph.Model {
	out := *m
	out.Content, out.Close, out.Signatures = nil, nil, nil
	out.Graphs = slices.Clone(m.Graphs)
	was := m.Graphs[at]
	g := *was
	g.Index, g.Parent, g.Captures = 0, nil, nil
	g.Inputs = slices.Clone(g.Inputs)
	for _, c := range was.Captures {
		g.Inputs = append(g.Inputs, c.Inner)
	}
	run := map[int]bool{at: true}
	reach(m, was, run)
	for i := range m.Graphs { // drop graphs that others run
		if !run[i] {
			out.Graphs[i] = &graph.Graph{Index: i}
		}
	}
	out.Graphs[0], out.Graphs[at] = &g, &graph.Graph{Index: at}
	Reparent(out.Graphs, was, &g)
	return &out
}

// WithBody returns the model with a subgraph replaced by the changed model from [Body].
func WithBody(m *graph.Model, at int, part *graph.Model) *graph.Model {
	out := *m
	out.Content, out.Close = nil, nil
	out.Opsets, out.IRVersion = part.Opsets, part.IRVersion
	out.Graphs = slices.Clone(m.Graphs)
	was := m.Graphs[at]
	g := *part.Main()
	g.Index, g.Parent, g.Captures, g.Inputs = at, was.Parent, was.Captures, was.Inputs
	out.Graphs[at] = &g
	run := map[int]bool{at: true}
	reach(m, was, run)
	for i := range m.Graphs {
		if run[i] && i != at && i > 0 {
			out.Graphs[i] = part.Graphs[i]
		}
	}
	Reparent(out.Graphs, part.Main(), &g)
	Reparent(out.Graphs, was, &g) // subgraphs that nothing runs
	return &out
}

// reach adds the graphs that a graph runs, directly or through others.
func reach(m *graph.Model, g *graph.Graph, run map[int]bool) {
	for _, n := range g.Nodes {
		for _, b := range bodiesOf(n) {
			if b.graph > 0 && b.graph < len(m.Graphs) && !run[b.graph] {
				run[b.graph] = true
				reach(m, m.Graphs[b.graph], run)
			}
		}
	}
}

// Reparent replaces the parent graph of subgraphs in a list.
func Reparent(graphs []*graph.Graph, from, to *graph.Graph) {
	for i, b := range graphs {
		if i > 0 && b.Parent == from {
			c := *b
			c.Parent = to
			graphs[i] = &c
			Reparent(graphs, b, &c)
		}
	}
}
