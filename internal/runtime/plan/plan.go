package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/count"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Plan is the plan of a model for given inputs.
type Plan struct {
	Model *graph.Model
	Main  *Graph
	// graphs holds, by graph index, the plans of each graph for the shapes that it runs with.
	graphs [][]*Graph
}

// Make plans the main graph for inputs of the given types and shapes, in the order of its inputs,
// and the graphs that it runs, each once per combination of shapes. Elements of inputs are read
// only for shapes that depend on them, because they may differ between runs. A node that cannot
// run is not an error: see [Step.State]. A node that breaks a rule of the format is one, a
// [MalformedError].
func Make(m *graph.Model, in []*tensor.Tensor, o Options) (*Plan, error) {
	if o.Registry == nil {
		return nil, errors.New("plan: no operator registry")
	}
	if n := len(m.Main().Inputs); len(in) != n {
		return nil, fmt.Errorf("model has %d inputs, %d given", n, len(in))
	}
	p := &Plan{Model: m, graphs: make([][]*Graph, len(m.Graphs))}
	g, err := newGraph(m, m.Main(), in, nil, o, Host{})
	if err != nil {
		return nil, err
	}
	g.bodies = &bodies{done: map[string]*Graph{}, plans: make([]int, len(m.Graphs)), busy: make([]bool, len(m.Graphs))}
	g.bodies.busy[0] = true
	g.apply()
	if err := g.Malformed(); err != nil {
		return nil, err
	}
	g.decideShapes(in)
	p.Main = g
	p.collect(g, map[*Graph]bool{})
	return p, nil
}

// collect records a plan and the plans of the graphs that it runs.
func (p *Plan) collect(g *Graph, seen map[*Graph]bool) {
	if seen[g] {
		return
	}
	seen[g] = true
	p.graphs[g.File.Index] = append(p.graphs[g.File.Index], g)
	for _, b := range g.inner {
		p.collect(b, seen)
	}
}

// Planned returns the plan of a graph for the first shapes that it runs with, nil if it never runs.
func (p *Plan) Planned(graph int) *Graph {
	if graph < 0 || graph >= len(p.graphs) || len(p.graphs[graph]) == 0 {
		return nil
	}
	return p.graphs[graph][0]
}

// Steps describes a graph, one entry per node of the file; nil for a graph that never runs. If a
// graph runs with several combinations of shapes, the entries state what all of them have in
// common.
func (p *Plan) Steps(graph int) []Step {
	if graph < 0 || graph >= len(p.graphs) || len(p.graphs[graph]) == 0 {
		return nil
	}
	steps := p.graphs[graph][0].Steps()
	for _, g := range p.graphs[graph][1:] {
		for i, o := range g.Steps() {
			s := &steps[i]
			mergeKnown(s.In, o.In)
			mergeKnown(s.Out, o.Out)
			mergeCalls(s.Calls, o.Calls)
			if s.State != o.State {
				// It runs in at least one of the plans, which determines its cost.
				if o.State == Runs {
					s.State, s.Runs, s.Err, s.Into = o.State, o.Runs, nil, -1
				}
			}
		}
	}
	return steps
}

func mergeKnown(a, b []*tensor.Tensor) {
	for k := range a {
		if a[k] == nil || k >= len(b) || b[k] == nil {
			a[k] = nil
			continue
		}
		if a[k] = agree(a[k], b[k]); a[k].Type == tensor.Invalid {
			a[k] = nil
		}
	}
}

// mergeCalls keeps the numbers that two plans of a node have in common.
func mergeCalls(a, b []count.Calls) {
	for k := range min(len(a), len(b)) {
		if x, y := a[k].Times, b[k].Times; x == nil || y == nil || *x != *y {
			a[k].Times = nil
		}
	}
}

// Slots lists the steps of all graphs, see [List].
func (p *Plan) Slots() []Slot { return List(p.Model, p.Steps) }

// Shaped returns a copy of the model with the types and shapes that the plan knows, for all
// graphs. Values that it does not know keep the file's declaration.
func (p *Plan) Shaped() *graph.Model {
	m := *p.Model
	m.Graphs = make([]*graph.Graph, len(p.Model.Graphs))
	for i, g := range p.Model.Graphs {
		c := *g
		c.Values = slices.Clone(g.Values)
		m.Graphs[i] = &c
	}
	for i, g := range m.Graphs {
		if g.Parent != nil && g.Parent.Index < len(m.Graphs) {
			g.Parent = m.Graphs[g.Parent.Index]
		}
		if len(p.graphs[i]) == 0 {
			continue
		}
		for id, v := range g.Values {
			if v.Const != nil {
				continue
			}
			t := p.known(i, id)
			if t == nil {
				continue
			}
			w := *v
			w.Type = t.Type
			if known(t) {
				w.Shape, w.HasShape, w.Placeholder = t.Shape, true, nil
			}
			g.Values[id] = &w
		}
	}
	return &m
}

// known returns what all plans of a graph know about a value, nil if that is nothing.
func (p *Plan) known(graph, id int) *tensor.Tensor {
	var t *tensor.Tensor
	for k, g := range p.graphs[graph] {
		o := g.describeAll([]int{id})[0]
		if o == nil {
			return nil
		}
		if k == 0 {
			t = o
		} else if t = agree(t, o); t.Type == tensor.Invalid {
			return nil
		}
	}
	return t
}
