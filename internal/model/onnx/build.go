package onnx

import (
	"fmt"
	"strconv"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// builder resolves names and builds the graphs of the model.
type builder struct {
	m     *graph.Model
	raw   *rawModel
	funcs map[funcKey]*rawFunc
	// budget bounds the memory beyond the file's own messages: copies of function bodies and
	// captured names, in values and nodes.
	budget int
	active []*rawFunc // functions being inlined
	warned map[string]bool
	// taken has the names in a graph, created when a function is inlined there, with the last
	// number tried to make a name unique.
	taken map[*graph.Graph]map[string]int
}

type funcKey struct{ domain, name, overload string }

// scope is a set of names: of a graph, or of one function call within it.
type scope struct {
	b      *builder
	g      *graph.Graph
	names  map[string]int // value id, -1 for an absent optional input of a function
	parent *scope         // lexically enclosing scope of a nested subgraph
	path   string         // message path below the enclosing message
	opsets map[string]int
	call   *call // nil outside functions
}

func (b *builder) build() error {
	b.funcs = map[funcKey]*rawFunc{}
	b.warned = map[string]bool{}
	b.taken = map[*graph.Graph]map[string]int{}
	for i, f := range b.raw.funcs {
		k := funcKey{f.domain, f.name, f.overload}
		if b.funcs[k] != nil {
			return underAt(errorf(f.off, "function %q is defined twice", f.name), "functions", i)
		}
		b.funcs[k] = f
	}
	_, err := b.graph(b.raw.graph, nil, &scope{b: b, path: "graph", opsets: b.raw.opsets})
	return err
}

func (b *builder) warn(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !b.warned[s] {
		b.warned[s] = true
		b.m.Warnings = append(b.m.Warnings, s)
	}
}

// spend charges the budget.
func (b *builder) spend(n int, off int64) error {
	if b.budget -= n; b.budget < 0 {
		return errorf(off, "functions and nested bodies expand to far more than the file")
	}
	return nil
}

// graph builds a graph in scope s, which it completes. The scope's parent is the enclosing scope
// of a subgraph.
func (b *builder) graph(raw *rawGraph, parent *scope, s *scope) (*graph.Graph, error) {
	g := &graph.Graph{Index: len(b.m.Graphs), Name: raw.name}
	if parent != nil {
		g.Parent = parent.g
	}
	b.m.Graphs = append(b.m.Graphs, g)
	s.g, s.parent, s.names = g, parent, make(map[string]int, len(raw.nodes)+len(raw.inits))
	infos := make(map[string]*valueInfo, len(raw.infos)+len(raw.outputs))
	for _, list := range [][]valueInfo{raw.infos, raw.outputs} {
		for i := range list {
			infos[list[i].name] = &list[i]
		}
	}
	if err := s.initializers(raw.inits); err != nil {
		return nil, s.at(err)
	}
	isInput := make(map[string]bool, len(raw.inputs))
	for i := range raw.inputs {
		in := &raw.inputs[i]
		if in.name == "" {
			return nil, s.at(underAt(errorf(in.off, "input has no name"), "input", i))
		}
		if isInput[in.name] {
			return nil, s.at(underAt(errorf(in.off, "input %q is listed twice", in.name), "input", i))
		}
		isInput[in.name] = true
		if _, ok := s.names[in.name]; ok {
			continue // an initialiser: its value, or a default that cannot be overridden
		}
		v := s.value(in.name)
		v.declare(&in.typeInfo)
		g.Inputs = append(g.Inputs, v.ID)
	}
	if err := s.nodes(raw.nodes, infos); err != nil {
		return nil, err
	}
	for i := range raw.outputs {
		out := &raw.outputs[i]
		id, err := s.resolve(out.name, out.off)
		if err == nil && id < 0 && out.name != "" {
			err = errorf(out.off, "output %q is never made", out.name)
		}
		if err != nil {
			return nil, s.at(underAt(err, "output", i))
		}
		if id >= 0 && g.Values[id].Type == tensor.Invalid {
			(*value)(g.Values[id]).declare(&out.typeInfo)
		}
		g.Outputs = append(g.Outputs, id)
	}
	if err := b.order(g); err != nil {
		return nil, s.at(errorf(raw.off, "%w", err))
	}
	return g, nil
}

// at prefixes an error's path with the scope's path.
func (s *scope) at(err error) error { return under(err, s.path) }

// value is a graph.Value under construction.
type value graph.Value

// value adds a named value to the scope's graph.
func (s *scope) value(name string) *value {
	v := &graph.Value{ID: len(s.g.Values), Name: name, Offset: -1}
	s.g.Values = append(s.g.Values, v)
	s.names[name] = v.ID
	return (*value)(v)
}

func (v *value) declare(t *typeInfo) {
	v.Type, v.Elem, v.Shape, v.HasShape, v.DimNames = t.typ, t.elem, t.shape, t.hasShape, t.dimNames
}

func (v *value) constant(t *tensor.Tensor, off int64) {
	v.Const, v.Type, v.Shape, v.HasShape, v.DimNames, v.Offset = t, t.Type, t.Shape, true, nil, off
}

func (s *scope) initializers(inits []rawInit) error {
	for _, in := range inits {
		field := "initializer"
		if in.sparse {
			field = "sparse_initializer"
		}
		if in.name == "" {
			return underAt(errorf(in.off, "initializer has no name"), field, in.index)
		}
		if _, ok := s.names[in.name]; ok {
			return underAt(errorf(in.off, "initializer %q is defined twice", in.name), field, in.index)
		}
		s.value(in.name).constant(in.t, in.data)
	}
	return nil
}

// resolve finds the value of a name, in this graph or captured from an enclosing one. The empty
// name and unknown names give -1; see [scope.need].
func (s *scope) resolve(name string, off int64) (int, error) {
	if name == "" {
		return -1, nil
	}
	if id, ok := s.names[name]; ok {
		return id, nil
	}
	if s.parent == nil {
		return -1, nil
	}
	outer, err := s.parent.resolve(name, off)
	if err != nil || outer < 0 {
		return -1, err
	}
	if err := s.b.spend(1, off); err != nil {
		return -1, err
	}
	o := s.parent.g.Values[outer]
	v := (*graph.Value)(s.value(name))
	id := v.ID
	*v = *o
	v.ID = id
	if v.Const == nil {
		s.g.Captures = append(s.g.Captures, graph.Capture{Inner: id, Outer: outer})
	}
	return id, nil
}

// nodes builds nodes: first all output names, so that subgraphs and badly ordered files can refer
// to them, then the nodes themselves.
func (s *scope) nodes(nodes []rawNode, infos map[string]*valueInfo) error {
	outs := make([][]int, len(nodes))
	skip := make([]bool, len(nodes)) // Constant nodes that became constants
	for i := range nodes {
		n := &nodes[i]
		var err error
		if outs[i], err = s.outputs(n, infos); err == nil && len(n.out) == 1 && n.out[0] != "" {
			var t *tensor.Tensor
			if t, err = s.constantNode(n); t != nil {
				skip[i] = true
				(*value)(s.g.Values[outs[i][0]]).constant(t, -1)
			}
		}
		if err != nil {
			return s.at(underAt(err, "node", i))
		}
	}
	for i := range nodes {
		if skip[i] {
			continue
		}
		if err := s.node(&nodes[i], outs[i]); err != nil {
			return s.at(underAt(err, "node", i))
		}
	}
	return nil
}

// outputs creates the values of a node's outputs. Outputs of a called function are values of the
// caller already.
func (s *scope) outputs(n *rawNode, infos map[string]*valueInfo) ([]int, error) {
	ids := make([]int, len(n.out))
	for k, name := range n.out {
		if ids[k] = -1; name == "" {
			continue
		}
		if _, exists := s.names[name]; exists {
			return nil, underAt(errorf(n.off, "%q is defined twice", name), "output", k)
		}
		var v *value
		if id, ok := s.call.output(name); ok {
			v, s.names[name] = (*value)(s.g.Values[id]), id
		} else if v = s.value(name); s.call != nil {
			v.Name = s.unique(s.call.names + "/" + name)
			if err := s.b.spend(1+len(v.Name)/64, n.off); err != nil {
				return nil, err
			}
		}
		if info := infos[name]; info != nil && v.Type == tensor.Invalid {
			v.declare(&info.typeInfo)
		}
		ids[k] = v.ID
	}
	return ids, nil
}

// unique returns a name that no value of the graph has.
func (s *scope) unique(name string) string {
	taken := s.b.taken[s.g]
	if taken == nil {
		taken = make(map[string]int, len(s.g.Values))
		for _, v := range s.g.Values {
			taken[v.Name] = 1
		}
		s.b.taken[s.g] = taken
	}
	u := name
	for taken[u] > 0 {
		// Continue where the last search for this name ended.
		taken[name]++
		u = name + "#" + strconv.Itoa(taken[name])
	}
	taken[u] = 1
	return u
}

// known reports whether a name is defined here, possibly as an absent input.
func (s *scope) known(name string) bool {
	for p := s; p != nil; p = p.parent {
		if _, ok := p.names[name]; ok {
			return true
		}
	}
	return false
}

// node builds one node, or inlines the function that it calls.
func (s *scope) node(n *rawNode, outs []int) error {
	ins := make([]int, len(n.in))
	for k, name := range n.in {
		id, err := s.resolve(name, n.off)
		if err == nil && id < 0 && name != "" && !s.known(name) {
			err = errorf(n.off, "%q is not made by any node, initializer or input", name)
		}
		if err != nil {
			return underAt(err, "input", k)
		}
		ins[k] = id
	}
	if f := s.b.funcs[funcKey{n.domain, n.op, n.overload}]; f != nil {
		return s.inline(f, n, ins, outs)
	}
	attrs, err := s.attributes(n)
	if err != nil {
		return err
	}
	gn := &graph.Node{
		Index: len(s.g.Nodes), Name: n.name, Domain: n.domain, Op: n.op, Version: s.version(n),
		Inputs: ins, Outputs: outs, Attrs: attrs, Scope: s.call.moduleOf(n),
	}
	if s.call != nil {
		gn.Name, gn.Function = s.call.name(n), s.call.path
		if err := s.b.spend(len(gn.Name)/64, n.off); err != nil {
			return err
		}
	}
	s.g.Nodes = append(s.g.Nodes, gn)
	return nil
}

// version is the operator-set version of the node's domain.
func (s *scope) version(n *rawNode) int {
	if v, ok := s.opsets[n.domain]; ok {
		return v
	}
	if v, ok := s.b.raw.opsets[n.domain]; ok {
		return v
	}
	if n.domain != "" || s.b.raw.ir >= 3 {
		s.b.warn("Operator domain %q is not imported; version 1 is assumed.", n.domain)
	}
	return 1
}
