package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// maxExpansion bounds the ratio of unpacked to stored bytes: readers reject files that would
// expand more.
const maxExpansion = 32

// restoreSparse stores constants that were sparse in a TFLite file in that layout again, where it
// is smaller and readers support the element type.
func restoreSparse(before, m *graph.Model) *graph.Model {
	out := *m
	out.Graphs = slices.Clone(m.Graphs)
	stored, whole, changed := 0, 0, false
	for i, g := range m.Graphs {
		var values []*graph.Value
		for id, v := range g.Values {
			if v.Const == nil {
				continue
			}
			stored += len(v.Const.Data)
			if i >= len(before.Graphs) || id >= len(before.Graphs[i].Values) {
				continue
			}
			was := before.Graphs[i].Values[id]
			if was.Sparse == nil || v.Sparse != nil || was.Const == nil || was.Const == v.Const || !unpacks(g, id, was.Const.Type, v.Const.Type) {
				continue
			}
			s := tflite.EncodeSparse(v.Const, was.Sparse)
			if s == nil {
				continue
			}
			if values == nil {
				values = slices.Clone(g.Values)
			}
			c := *v
			c.Sparse = s
			values[id] = &c
			stored += s.StoredBytes - len(v.Const.Data)
			whole += len(v.Const.Data)
		}
		if values == nil {
			continue
		}
		changed = true
		next := *g
		next.Values = values
		out.Graphs[i] = &next
	}
	if !changed || whole > maxExpansion*stored {
		return m
	}
	return &out
}

// unpacks reports whether all readers of a sparse constant accept another element type: DENSIFY
// accepts a few, operators with sparse kernels only the original one.
func unpacks(g *graph.Graph, id int, was, now tensor.Type) bool {
	if was == now {
		return true
	}
	return slices.Contains([]tensor.Type{tensor.Float32, tensor.Float16, tensor.Int8}, now) && !slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool {
		return slices.Contains(n.Inputs, id) && n.Op != "DENSIFY"
	})
}

// withoutDensify removes the DENSIFY nodes of constants that are stored dense; the others get the
// type of their constants.
func withoutDensify(m *graph.Model) *graph.Model {
	g := m.Main()
	of := func(n *graph.Node) *graph.Value {
		if n.Domain == graph.TFLite && n.Op == "DENSIFY" && len(n.Inputs) == 1 && n.Inputs[0] >= 0 && g.Values[n.Inputs[0]].Const != nil {
			return g.Values[n.Inputs[0]]
		}
		return nil
	}
	if !slices.ContainsFunc(g.Nodes, func(n *graph.Node) bool {
		v := of(n)
		return v != nil && (v.Sparse == nil || v.Type != g.Values[n.Outputs[0]].Type)
	}) {
		return m
	}
	e := newEdit(m)
	for _, n := range g.Nodes {
		from := of(n)
		switch {
		case from == nil:
		case from.Sparse != nil:
			v := e.mutableValue(n.Outputs[0])
			v.Type, v.Quant = from.Type, from.Quant
		case !e.visibleOutside(n.Outputs[0]):
			e.redirect(n.Outputs[0], n.Inputs[0])
		}
	}
	return e.finish() // drops unused nodes
}
