package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Entry is a graph that a signature of a TFLite file names.
type Entry struct {
	// Keys are the signatures of the graph, in file order.
	Keys  []string
	Graph int
}

// Entries lists the graphs that signatures name, in file order.
func (m *Model) Entries() []Entry {
	var out []Entry
	for _, s := range m.Signatures {
		i := slices.IndexFunc(out, func(e Entry) bool { return e.Graph == s.Graph })
		if i < 0 {
			i = len(out)
			out = append(out, Entry{Graph: s.Graph})
		}
		out[i].Keys = append(out[i].Keys, s.Key)
	}
	return out
}

// Select returns the model with the graph of a signature as main graph. It shares everything else
// with m. The error lists the signatures.
func (m *Model) Select(key string) (*Model, error) {
	i := slices.IndexFunc(m.Signatures, func(s Signature) bool { return s.Key == key })
	if i < 0 {
		var keys []string
		for _, s := range m.Signatures {
			keys = append(keys, fmt.Sprintf("%q", s.Key))
		}
		if keys == nil {
			return nil, fmt.Errorf("no signature %q: the file has no signatures", key)
		}
		return nil, fmt.Errorf("no signature %q: the file has %s", key, strings.Join(keys, ", "))
	}
	first := m.Signatures[i].Graph
	out := *m
	out.Selected = key
	if first == 0 {
		return &out, nil
	}
	swap := func(g int) int {
		switch g {
		case 0:
			return first
		case first:
			return 0
		}
		return g
	}
	out.Graphs = make([]*Graph, len(m.Graphs))
	for at, g := range m.Graphs {
		c := *g
		c.Index, c.Nodes = swap(at), slices.Clone(g.Nodes)
		for k, n := range c.Nodes {
			c.Nodes[k] = n.withGraphs(swap)
		}
		out.Graphs[c.Index] = &c
	}
	out.Signatures = slices.Clone(m.Signatures)
	for k := range out.Signatures {
		out.Signatures[k].Graph = swap(out.Signatures[k].Graph)
	}
	out.Name = out.Main().Name
	return &out, nil
}

// InputOf returns the name of the main graph's input that a signature calls name: the selected
// signature, or the first one of the graph. It is name itself if the signature has no such input.
func (m *Model) InputOf(name string) string {
	g := m.Main()
	for _, s := range m.Signatures {
		if s.Graph != 0 || m.Selected != "" && s.Key != m.Selected {
			continue
		}
		for _, x := range s.Inputs {
			if x.Name == name && x.Value >= 0 && x.Value < len(g.Values) {
				return g.Values[x.Value].Name
			}
		}
		break
	}
	return name
}

// withGraphs returns the node with other indices of graphs.
func (n *Node) withGraphs(index func(int) int) *Node {
	c := *n
	c.Attrs = nil
	set := func(name string, v any) {
		if c.Attrs == nil {
			c.Attrs = Attrs{}
			for k, v := range n.Attrs {
				c.Attrs[k] = v
			}
		}
		c.Attrs[name] = v
	}
	for name, a := range n.Attrs {
		switch v := a.(type) {
		case GraphRef:
			set(name, GraphRef(index(int(v))))
		case []GraphRef:
			w := make([]GraphRef, len(v))
			for i, g := range v {
				w[i] = GraphRef(index(int(g)))
			}
			set(name, w)
		case []int64:
			if name != "branch_subgraph_indices" {
				continue
			}
			w := make([]int64, len(v))
			for i, g := range v {
				w[i] = int64(index(int(g)))
			}
			set(name, w)
		}
	}
	if c.Attrs == nil {
		return n
	}
	return &c
}
