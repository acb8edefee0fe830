package rewrite

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// compact returns a model without values that nothing uses: weights that a change replaced, and
// activations whose operators are gone. TensorFlow Lite Micro reserves arena for each of them.
func compact(m *graph.Model) *graph.Model {
	ids := make([][]int, len(m.Graphs)) // new ids by graph and old id, -1 for dropped values
	dropped := false
	for at, g := range m.Graphs {
		used := usedValues(m, g)
		ids[at] = make([]int, len(g.Values))
		n := 0
		for id := range g.Values {
			if ids[at][id] = -1; used[id] {
				ids[at][id] = n
				n++
			}
		}
		dropped = dropped || n < len(g.Values)
	}
	out := *m
	out.Metadata = renumberOfflinePlan(m, ids[0])
	if !dropped {
		return &out
	}
	out.Content, out.Close = nil, nil
	out.Graphs = make([]*graph.Graph, len(m.Graphs))
	next := map[*graph.Graph]*graph.Graph{}
	for at, g := range m.Graphs {
		out.Graphs[at] = renumber(g, ids[at])
		next[g] = out.Graphs[at]
	}
	for at, g := range m.Graphs {
		if out.Graphs[at].Parent = next[g.Parent]; g.Parent == nil {
			continue
		}
		outer := ids[slices.Index(m.Graphs, g.Parent)]
		for i := range out.Graphs[at].Captures {
			out.Graphs[at].Captures[i].Outer = outer[g.Captures[i].Outer]
		}
	}
	out.Signatures = slices.Clone(m.Signatures)
	for i, s := range m.Signatures {
		if s.Graph >= 0 && s.Graph < len(ids) {
			out.Signatures[i].Inputs = renumberSignature(s.Inputs, ids[s.Graph])
			out.Signatures[i].Outputs = renumberSignature(s.Outputs, ids[s.Graph])
		}
	}
	return &out
}

// usedValues marks the values of a graph that a node, a subgraph, a signature or the graph's own
// inputs and outputs name.
func usedValues(m *graph.Model, g *graph.Graph) []bool {
	used := make([]bool, len(g.Values))
	mark := func(list ...int) {
		for _, id := range list {
			if id >= 0 && id < len(used) {
				used[id] = true
			}
		}
	}
	mark(g.Inputs...)
	mark(g.Outputs...)
	for _, n := range g.Nodes {
		mark(n.Inputs...)
		mark(n.Outputs...)
		for _, id := range n.Attrs.Ints("intermediates") {
			mark(id)
		}
	}
	for _, c := range g.Captures {
		mark(c.Inner)
	}
	inside := map[*tensor.Tensor]bool{} // constants that subgraphs share with this graph
	for _, b := range m.Graphs {
		if b.Parent != g {
			continue
		}
		for _, c := range b.Captures {
			mark(c.Outer)
		}
		for _, v := range b.Values {
			inside[v.Const] = v.Const != nil
		}
	}
	for id, v := range g.Values {
		used[id] = used[id] || inside[v.Const]
	}
	for _, s := range m.Signatures {
		if s.Graph == slices.Index(m.Graphs, g) {
			for _, x := range slices.Concat(s.Inputs, s.Outputs) {
				mark(x.Value)
			}
		}
	}
	return used
}

// renumber returns a graph with the values that have a new id, in order.
func renumber(g *graph.Graph, ids []int) *graph.Graph {
	out := *g
	list := func(old []int) []int {
		if old == nil {
			return nil
		}
		next := make([]int, len(old))
		for i, id := range old {
			if next[i] = id; id >= 0 && id < len(ids) {
				next[i] = ids[id]
			}
		}
		return next
	}
	out.Values = nil
	for id, v := range g.Values {
		if ids[id] >= 0 {
			c := *v
			c.ID = ids[id]
			out.Values = append(out.Values, &c)
		}
	}
	out.Inputs, out.Outputs = list(g.Inputs), list(g.Outputs)
	out.Nodes = make([]*graph.Node, len(g.Nodes))
	for i, n := range g.Nodes {
		c := *n
		c.Inputs, c.Outputs = list(n.Inputs), list(n.Outputs)
		if between := n.Attrs.Ints("intermediates"); between != nil {
			c.Attrs = maps.Clone(n.Attrs)
			next := make([]int64, len(between))
			for k, id := range between {
				if next[k] = int64(id); id >= 0 && id < len(ids) {
					next[k] = int64(ids[id])
				}
			}
			c.Attrs["intermediates"] = next
		}
		out.Nodes[i] = &c
	}
	out.Captures = slices.Clone(g.Captures)
	for i := range out.Captures {
		out.Captures[i].Inner = ids[g.Captures[i].Inner]
	}
	return &out
}

func renumberSignature(list []graph.SignatureTensor, ids []int) []graph.SignatureTensor {
	out := slices.Clone(list)
	for i, x := range list {
		if x.Value >= 0 && x.Value < len(ids) {
			out[i].Value = ids[x.Value]
		}
	}
	return out
}

// offlineHeader is the size of an offline plan's header: version, graph and number of offsets.
const offlineHeader = 12

// renumberOfflinePlan returns the metadata with an offset for each of the remaining tensors in the
// offline memory plan, which lists them by position. New tensors get -1: the runtime places them.
func renumberOfflinePlan(m *graph.Model, ids []int) []graph.Metadata {
	at := slices.IndexFunc(m.Metadata, func(x graph.Metadata) bool { return x.Name == memplan.OfflineKey })
	if m.Format != "tflite" || at < 0 {
		return m.Metadata
	}
	data := m.Metadata[at].Data
	if len(data) < offlineHeader || int(binary.LittleEndian.Uint32(data[8:])) != len(data)/4-offlineHeader/4 {
		return m.Metadata // not understood
	}
	next := slices.Clone(data[:offlineHeader])
	n := uint32(0)
	for id, to := range ids {
		if to < 0 {
			continue
		}
		n++
		if from := offlineHeader + 4*id; from+4 <= len(data) {
			next = append(next, data[from:from+4]...)
		} else {
			next = binary.LittleEndian.AppendUint32(next, ^uint32(0))
		}
	}
	binary.LittleEndian.PutUint32(next[8:], n)
	out := slices.Clone(m.Metadata)
	out[at].Data = next
	return out
}
