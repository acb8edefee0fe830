package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// maxCalls bounds the depth of function calls.
const maxCalls = 100

// call is a call of a function whose body is being built.
type call struct {
	attrs map[string]bound
	outs  map[string]int // values that the caller uses, by the function's output names
	path  []string       // functions, outermost first
	names string         // prefix of names inside
	// module is the path of the module that the call comes from.
	module string
}

// bound is an attribute with the scope that resolves names of its graphs.
type bound struct {
	attr  *rawAttr
	scope *scope
}

func (c *call) output(name string) (int, bool) {
	if c == nil {
		return 0, false
	}
	id, ok := c.outs[name]
	return id, ok
}

// name names a node inside the call, or the call itself outside of any.
func (c *call) name(n *rawNode) string {
	own := n.name
	if own == "" {
		own = n.op
	}
	if c == nil {
		return own
	}
	return c.names + "/" + own
}

// moduleOf returns the path of the module that a node comes from: its own, or that of the call.
func (c *call) moduleOf(n *rawNode) string {
	if n.module != "" || c == nil {
		return n.module
	}
	return c.module
}

// inBody returns the call for a nested subgraph of the function: attributes are the same, but
// names produced there are not the function's outputs.
func (c *call) inBody() *call {
	if c == nil {
		return nil
	}
	return &call{attrs: c.attrs, path: c.path, names: c.names, module: c.module}
}

// cost estimates the budget units of a copy of nodes.
func cost(nodes []rawNode) int {
	n := 0
	for i := range nodes {
		n += 1 + len(nodes[i].in) + len(nodes[i].out) + len(nodes[i].attrs)
	}
	return n
}

// inline builds a function's body in place of a call.
func (s *scope) inline(f *rawFunc, n *rawNode, ins, outs []int) error {
	b := s.b
	if slices.Contains(b.active, f) {
		return errorf(n.off, "function %q calls itself", f.name)
	}
	if len(b.active) >= maxCalls {
		return errorf(n.off, "functions call each other deeper than %d", maxCalls)
	}
	if len(ins) > len(f.in) || len(outs) > len(f.out) {
		return errorf(n.off, "function %q has %d inputs and %d outputs, the call has %d and %d",
			f.name, len(f.in), len(f.out), len(ins), len(outs))
	}
	if err := b.spend(1+len(f.in)+len(f.out)+len(f.defaults)+cost(f.nodes), n.off); err != nil {
		return err
	}
	c := &call{attrs: map[string]bound{}, outs: map[string]int{}, names: s.call.name(n), module: s.call.moduleOf(n)}
	if s.call != nil {
		c.path = slices.Clone(s.call.path)
	}
	c.path = append(c.path, f.name)
	child := &scope{b: b, g: s.g, names: map[string]int{}, path: fmt.Sprintf("functions[%d]", f.index), opsets: f.opsets, call: c}
	for i := range f.defaults {
		c.attrs[f.defaults[i].name] = bound{&f.defaults[i], child}
	}
	for i := range n.attrs {
		if v, ok := s.bind(&n.attrs[i]); ok {
			c.attrs[n.attrs[i].name] = v
		}
	}
	for i, name := range f.in {
		child.names[name] = -1
		if i < len(ins) {
			child.names[name] = ins[i]
		}
	}
	for i, id := range outs {
		if id >= 0 {
			c.outs[f.out[i]] = id
		}
	}
	infos := make(map[string]*valueInfo, len(f.infos))
	for i := range f.infos {
		infos[f.infos[i].name] = &f.infos[i]
	}
	b.active = append(b.active, f)
	err := child.nodes(f.nodes, infos)
	b.active = b.active[:len(b.active)-1]
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.whole = true // the function is a separate message, not part of the call
		}
		return err
	}
	return s.passThrough(f, n, child, outs)
}

// passThrough assigns values to outputs that a function passes through from its inputs, or lists
// twice.
func (s *scope) passThrough(f *rawFunc, n *rawNode, child *scope, outs []int) error {
	for k, id := range outs {
		from, made := child.names[f.out[k]]
		switch {
		case id < 0 || made && from == id:
		case !made || from < 0:
			return errorf(n.off, "function %q does not make its output %q", f.name, f.out[k])
		default:
			s.g.Nodes = append(s.g.Nodes, &graph.Node{
				Index: len(s.g.Nodes), Name: child.call.names, Op: "Identity",
				Version: max(s.b.raw.opsets[""], 1),
				Inputs:  []int{from}, Outputs: []int{id}, Function: child.call.path, Scope: child.call.module,
			})
		}
	}
	return nil
}

// attributes resolves a node's attributes: references to attributes of the
// called function, and graphs.
func (s *scope) attributes(n *rawNode) (graph.Attrs, error) {
	if len(n.attrs) == 0 {
		return nil, nil
	}
	out := make(graph.Attrs, len(n.attrs))
	for i := range n.attrs {
		a := &n.attrs[i]
		if _, ok := out[a.name]; ok {
			return nil, errorf(a.off, "attribute %q is given twice", a.name)
		}
		v, ok := s.bind(a)
		if !ok {
			continue // the caller omitted it: the operator's default applies
		}
		var err error
		if out[a.name], err = s.b.attrValue(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bind resolves a reference to the calling node's attribute.
func (s *scope) bind(a *rawAttr) (bound, bool) {
	if a.ref == "" {
		return bound{a, s}, true
	}
	if s.call == nil {
		return bound{}, false
	}
	v, ok := s.call.attrs[a.ref]
	return v, ok
}

func (b *builder) attrValue(a bound) (any, error) {
	body := func(raw *rawGraph, field string) (graph.GraphRef, error) {
		if len(b.active) > 0 {
			// A copy for each call of the function.
			if err := b.spend(1+cost(raw.nodes)+len(raw.inits)+len(raw.inputs), raw.off); err != nil {
				return 0, err
			}
		}
		s := &scope{b: b, path: fmt.Sprintf("attribute[%q].%s", a.attr.name, field), opsets: a.scope.opsets, call: a.scope.call.inBody()}
		g, err := b.graph(raw, a.scope, s)
		if err != nil {
			return 0, err
		}
		return graph.GraphRef(g.Index), nil
	}
	switch v := a.attr.val.(type) {
	case *rawGraph:
		return body(v, "g")
	case []*rawGraph:
		refs := make([]graph.GraphRef, len(v))
		for i, raw := range v {
			var err error
			if refs[i], err = body(raw, "graphs["+strconv.Itoa(i)+"]"); err != nil {
				return nil, err
			}
		}
		return refs, nil
	}
	return a.attr.val, nil
}

// constantNode returns the value of a Constant operator whose attribute supplies one, nil for
// other nodes. As a constant of the graph it can be inspected and repacked before a run.
func (s *scope) constantNode(n *rawNode) (*tensor.Tensor, error) {
	if n.op != "Constant" || n.domain != "" || len(n.in) != 0 || len(n.attrs) != 1 {
		return nil, nil
	}
	a := &n.attrs[0]
	v, ok := s.bind(a)
	if !ok {
		return nil, nil
	}
	var t *tensor.Tensor
	want := "value"
	switch v := v.attr.val.(type) {
	case *tensor.Tensor:
		if t = v; a.name == "sparse_value" {
			want = a.name
		}
	case float32:
		t, want = tensor.From(tensor.Float32, nil, []float32{v}), "value_float"
	case []float32:
		t, want = tensor.From(tensor.Float32, []int{len(v)}, v), "value_floats"
	case int64:
		t, want = tensor.From(tensor.Int64, nil, []int64{v}), "value_int"
	case []int64:
		t, want = tensor.From(tensor.Int64, []int{len(v)}, v), "value_ints"
	case string:
		t, want = &tensor.Tensor{Type: tensor.String, Data: []byte{}, Strings: []string{v}}, "value_string"
	case []string:
		t, want = &tensor.Tensor{Type: tensor.String, Shape: []int{len(v)}, Data: []byte{}, Strings: v}, "value_strings"
	}
	if a.name != want {
		return nil, nil
	}
	if s.call != nil && a.name != "value" {
		if err := s.b.spend(t.Bytes()/64, n.off); err != nil {
			return nil, err
		}
	}
	return t, nil
}
