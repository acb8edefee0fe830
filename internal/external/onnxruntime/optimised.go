package onnxruntime

import (
	"os"
	"slices"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/profile"
)

// optimised is the graph that the library executes, as it wrote it. Tensor names lead from its
// nodes to the model's.
type optimised struct{ main []*executed }

// executed is a node of the optimised graph.
type executed struct {
	name, op  string
	ins, outs []string
	bodies    []*executed // nodes of all its bodies
}

// readOptimised reads the optimised model that the library wrote into a folder, nil if that
// fails. External weights beside the original model stay there.
func readOptimised(file, folder string) *optimised {
	m, err := onnx.Open(file)
	if err != nil {
		data, unread := os.ReadFile(file)
		if unread != nil {
			return nil
		}
		if m, err = onnx.Parse(data, file, folder); err != nil {
			return nil
		}
	}
	if m.Close != nil {
		defer func() { _ = m.Close() }()
	}
	return &optimised{nodes(m, m.Main(), 0)}
}

// maxNesting bounds the nesting of bodies.
const maxNesting = 64

func nodes(m *graph.Model, g *graph.Graph, depth int) (out []*executed) {
	if depth > maxNesting {
		return nil
	}
	list := func(ids []int) (names []string) {
		for _, id := range ids {
			if id >= 0 && id < len(g.Values) {
				names = append(names, clone(g.Values[id].Name))
			}
		}
		return names
	}
	for _, n := range g.Nodes {
		e := &executed{name: clone(n.Name), op: clone(n.Op)}
		e.ins, e.outs = list(n.Inputs), list(n.Outputs)
		var keys []string
		for k := range n.Attrs {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if at, ok := n.Attrs.Graph(k); ok && at > 0 && at < len(m.Graphs) {
				e.bodies = append(e.bodies, nodes(m, m.Graphs[at], depth+1)...)
			}
		}
		out = append(out, e)
	}
	return out
}

// clone copies a text whose file will be closed.
func clone(s string) string { return string([]byte(s)) }

// hint adds the input and output tensors to each row of a run.
func (o *optimised) hint(run *runlog.Run) {
	rows := run.Profile.Layers
	within := map[int64][]int{} // rows by the one that they are in, -1 for none
	for i := range rows {
		parent := int64(-1)
		if rows[i].Parent != nil {
			parent = *rows[i].Parent
		}
		within[parent] = append(within[parent], i)
	}
	var match func(parent int64, list []*executed)
	match = func(parent int64, list []*executed) {
		for i, n := range pair(rows, within[parent], list) {
			if n == nil {
				continue
			}
			at := within[parent][i]
			h := &run.Hints[at]
			h.Inputs, h.Outputs = n.ins, n.outs
			if n.name == "" {
				// The profiler generated the name, which may equal another node's name.
				rows[at].Name, h.Nodes = "", nil
			}
			match(int64(at), n.bodies)
		}
	}
	match(-1, o.main)
}

// pair finds the node of each row: by name if the name is unique; rows and nodes with equal
// names, or without names, in order. Both lists are in execution order.
func pair(rows []profile.Layer, which []int, list []*executed) []*executed {
	type key struct{ name, op string }
	byKey, named := map[key][]*executed{}, map[string]bool{}
	for _, n := range list {
		byKey[key{n.name, n.op}] = append(byKey[key{n.name, n.op}], n)
		named[n.name] = true
	}
	out := make([]*executed, len(which))
	for i, at := range which {
		k := key{rows[at].Name, rows[at].Op}
		if k.name == "" || !named[k.name] {
			k.name = "" // made up of operator and number
		}
		if l := byKey[k]; len(l) > 0 {
			out[i] = l[0]
			byKey[k] = l[1:]
		}
	}
	return out
}
