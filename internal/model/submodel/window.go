package submodel

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Window is a part of a model that runs on its own: values that it reads from the rest become
// inputs.
type Window struct {
	// Needs is the model that computes the values read from the rest, nil if the window reads
	// only inputs of the model.
	Needs *Model

	s *Source
	// nodes of the file; without is nil where nothing of the window would remain
	with, without []bool
}

// Given is a value that becomes an input, as recorded in a run of the model.
type Given struct {
	Name  string
	Type  tensor.Type
	Shape []int
}

// Predecessors lists the nodes of the main graph that produce inputs of some nodes, except nodes
// with only constant inputs.
func (s *Source) Predecessors(nodes []int) []int {
	moving := s.variesByRun()
	mine := map[int]bool{}
	for _, n := range nodes {
		if n >= 0 && n < len(s.file) && s.file[n] >= 0 {
			mine[s.file[n]] = true
		}
	}
	from := map[int]bool{}
	for f := range mine {
		for _, v := range s.nodes[f].reads {
			if at, ok := s.made[v]; ok && moving[at] && !mine[at] {
				from[at] = true
			}
		}
	}
	var out []int
	for n, f := range s.file {
		if f >= 0 && from[f] {
			out = append(out, n)
		}
	}
	return out
}

// Window extracts some nodes of the main graph, with a context of nodes that they may depend on.
// Nodes that depend on no input, such as those that unpack weights, are included with their
// readers, so that engines precompute the same as in the complete model.
func (s *Source) Window(nodes, context []int) (*Window, error) {
	inner, err := s.fileNodes(nodes)
	if err != nil {
		return nil, err
	}
	around, err := s.fileNodes(context)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, errorf(NoNode, "no nodes")
	}
	moving := s.variesByRun()
	w := &Window{s: s}
	both := make([]bool, len(s.nodes))
	for i := range both {
		if around[i] && inner[i] {
			return nil, errorf(Between, "a node is both of the stretch and of its context")
		}
		if both[i] = inner[i] || around[i]; both[i] && s.nodes[i].effect {
			return nil, errorf(Between, "what comes before a node that does more than to make its outputs belongs to it")
		}
	}
	before := slices.Clone(both)
	s.addDependencies(before)
	for i := range before {
		before[i] = before[i] && !both[i]
	}
	deep := slices.Clone(before)
	s.addDependencies(deep)
	near := slices.Clone(around)
	s.addDependencies(near)
	for i := range both {
		if deep[i] && both[i] || near[i] && inner[i] {
			return nil, errorf(Between, "other nodes lie between those that are to be cut out")
		}
	}
	w.with = s.withConstants(both, moving)
	if slices.Contains(around, true) {
		w.without = s.withConstants(around, moving)
	}
	for i, k := range w.with {
		if k && slices.ContainsFunc(s.nodes[i].reads, func(v int) bool { from, ok := s.made[v]; return ok && !w.with[from] }) {
			w.Needs, err = s.extract(before)
			break
		}
	}
	return w, err
}

// Models extracts the window with and without its nodes. given are the recorded outputs of
// [Window].Needs. without is nil where the nodes have no context.
func (w *Window) Models(given []Given) (with, without *Model, err error) {
	by := map[string]*graph.Value{}
	for _, g := range given {
		if g.Name == "" || by[g.Name] != nil {
			return nil, nil, errorf(Malformed, "%s: values without a name of their own cannot be inputs", w.s.m.Path)
		}
		by[g.Name] = &graph.Value{Name: g.Name, Type: g.Type, Shape: g.Shape, HasShape: true}
	}
	if with, err = w.s.writeWindow(w.with, by); err != nil || w.without == nil {
		return with, nil, err
	}
	without, err = w.s.writeWindow(w.without, by)
	return with, without, err
}

// writeWindow writes a window.
func (s *Source) writeWindow(keep []bool, given map[string]*graph.Value) (*Model, error) {
	in := &windowInputs{used: map[int]bool{}}
	seen := map[int]bool{}
	for i, k := range keep {
		if !k {
			continue
		}
		for _, v := range s.nodes[i].reads {
			in.used[v] = true
			if from, ok := s.made[v]; ok && !keep[from] && !seen[v] {
				seen[v] = true
				x := given[s.name(v)]
				if x == nil {
					return nil, errorf(NoConstant, "%s: %q was not computed", s.m.Path, s.name(v))
				}
				in.more = append(in.more, v)
				in.values = append(in.values, x)
			}
		}
	}
	return s.write(keep, in)
}

// windowInputs are the inputs of a window: those of the model that are used, and additional ones.
type windowInputs struct {
	used   map[int]bool
	more   []int
	values []*graph.Value
}

// fileNodes marks the nodes of the file that correspond to nodes of the model.
func (s *Source) fileNodes(nodes []int) ([]bool, error) {
	out := make([]bool, len(s.nodes))
	for _, n := range nodes {
		if n < 0 || n >= len(s.file) {
			return nil, errorf(NoNode, "node %d of %d", n, len(s.file))
		}
		if s.file[n] < 0 {
			return nil, errorf(InFunction, "node %d is in no call that could be told", n)
		}
		out[s.file[n]] = true
	}
	for n, f := range s.file {
		if f >= 0 && out[f] && !slices.Contains(nodes, n) {
			return nil, errorf(InFunction, "node %d is part of a call with others", n)
		}
	}
	return out, nil
}

// variesByRun marks the nodes whose outputs may differ between runs: they depend on an input, a
// variable or random numbers.
func (s *Source) variesByRun() []bool {
	readers := map[int][]int{}
	out := make([]bool, len(s.nodes))
	var stack []int
	mark := func(i int) {
		if !out[i] {
			out[i] = true
			stack = append(stack, i)
		}
	}
	for i := range s.nodes {
		if s.nodes[i].effect {
			mark(i)
		}
		for _, v := range s.nodes[i].reads {
			readers[v] = append(readers[v], i)
			if s.inputs[v] {
				mark(i)
			}
		}
	}
	for n, f := range s.file {
		if op := s.m.Main().Nodes[n].Op; f >= 0 && strings.HasPrefix(op, "Random") {
			mark(f)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, v := range s.nodes[i].writes {
			for _, r := range readers[v] {
				mark(r)
			}
		}
	}
	return out
}

// withConstants adds to some nodes the constant computations that they read.
func (s *Source) withConstants(nodes, moving []bool) []bool {
	keep := slices.Clone(nodes)
	var stack []int
	for i, k := range keep {
		if k {
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, v := range s.nodes[i].reads {
			if from, ok := s.made[v]; ok && !keep[from] && !moving[from] {
				keep[from] = true
				stack = append(stack, from)
			}
		}
	}
	return keep
}
