package litert

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// known is what opmeter's own reader knows of the model: the library's profiler reports indices
// and names, never tensors.
type known struct {
	graphs []knownGraph
	// customs lists custom operators.
	customs    []string
	composites bool
	variables  bool // tensors that keep their value between runs
}

// why names properties of the model that LiteRT may reject.
func (k *known) why() string {
	switch {
	case k == nil:
		return " It takes .tflite files that are whole and not packed."
	case k.variables:
		return " It has variable tensors, which this interface of LiteRT did not take up to 2.3. Measure it with opmeter's own engine, or as a graph with its state among inputs and outputs."
	case len(k.customs) > 0:
		return " It has operators that are not TensorFlow Lite's own: " + strings.Join(k.customs, ", ") + "."
	}
	return ""
}

type knownGraph struct {
	name  string
	nodes []knownNode
	made  []bool // tensors that a node makes
	owner int    // graph whose node runs this one, -1 for none; the first of several
	by    int    // that node
}

type knownNode struct {
	op              string
	inputs, outputs []int
	// names are the names of its output tensors, if unique.
	names []string
	// effects: the node has side effects beyond its outputs, and keeps its order among such
	// nodes.
	effects bool
	graphs  []int // that it runs
}

// study reads the structure of a model, nil if that is not possible.
func study(path string) *known {
	m, err := tflite.Open(path)
	if err != nil {
		return nil
	}
	k := learn(m)
	if m.Close != nil {
		_ = m.Close() // nothing of the file is held
	}
	return k
}

func learn(m *graph.Model) *known {
	k := &known{graphs: make([]knownGraph, len(m.Graphs))}
	uses := map[string]int{}
	for _, g := range m.Graphs {
		for _, v := range g.Values {
			uses[v.Name]++
			k.variables = k.variables || v.Variable
		}
	}
	for i := range k.graphs {
		k.graphs[i].owner = -1
	}
	for i, g := range m.Graphs {
		y := &k.graphs[i]
		y.name, y.made, y.nodes = g.Name, make([]bool, len(g.Values)), make([]knownNode, len(g.Nodes))
		for j, n := range g.Nodes {
			x := knownNode{op: n.Op, inputs: n.Inputs, outputs: n.Outputs, effects: n.Domain == graph.TFLiteCustom}
			for _, o := range n.Outputs {
				if o >= 0 && o < len(y.made) {
					y.made[o] = true
					if name := g.Values[o].Name; name != "" && uses[name] == 1 {
						x.names = append(x.names, name)
					}
				}
			}
			for _, in := range n.Inputs {
				if in >= 0 && in < len(g.Values) && g.Values[in].Type == tensor.Resource {
					x.effects = true
				}
			}
			for _, a := range n.Attrs {
				x.graphs = append(x.graphs, references(a)...)
			}
			slices.Sort(x.graphs)
			for _, r := range x.graphs {
				x.effects = true
				if r > 0 && r < len(k.graphs) && k.graphs[r].owner < 0 {
					k.graphs[r].owner, k.graphs[r].by = i, j
				}
			}
			if n.Domain == graph.TFLiteCustom && !slices.Contains(k.customs, n.Op) {
				k.customs = append(k.customs, n.Op)
			}
			k.composites = k.composites || n.Op == "STABLEHLO_COMPOSITE"
			y.nodes[j] = x
		}
	}
	return k
}

func references(attr any) []int {
	switch v := attr.(type) {
	case graph.GraphRef:
		return []int{int(v)}
	case []graph.GraphRef:
		out := make([]int, len(v))
		for i, r := range v {
			out[i] = int(r)
		}
		return out
	}
	return nil
}

// order returns the order in which the interpreter runs the nodes of a graph of which delegates
// took some. It collects as many runnable nodes of one sort as possible (delegated or not), then
// as many of the other sort, until none is left (TensorFlow Lite, graph_info.cc). With scattered
// it ends a collection at the first node that does not fit.
func (g *knownGraph) order(taken func(node int) bool, scattered bool) []int {
	ready := make([]bool, len(g.made))
	for i, made := range g.made {
		ready[i] = !made
	}
	done := make([]bool, len(g.nodes))
	before := make([]int, len(g.nodes)) // the last node with effects before one that has them
	last := -1
	for i := range g.nodes {
		before[i] = -1
		if g.nodes[i].effects {
			before[i], last = last, i
		}
	}
	can := func(i int) bool {
		if b := before[i]; b >= 0 && !done[b] {
			return false
		}
		for _, t := range g.nodes[i].inputs {
			if t >= 0 && t < len(ready) && !ready[t] {
				return false
			}
		}
		return true
	}
	var out []int
	for len(out) < len(g.nodes) {
		first := len(out)
		g.collect(taken, scattered, can, func(i int) {
			done[i] = true
			for _, t := range g.nodes[i].outputs {
				if t >= 0 && t < len(ready) {
					ready[t] = true
				}
			}
			out = append(out, i)
		}, done)
		if len(out) == first {
			break // the rest is a dependency cycle
		}
	}
	return out
}

// collect finds the next collection of nodes of one sort.
func (g *knownGraph) collect(taken func(int) bool, scattered bool, can func(int) bool, add func(int), done []bool) {
	open, sort := false, false
	for again := true; again; {
		again = false
		for i := range g.nodes {
			switch {
			case done[i]:
			case can(i) && (!open || taken(i) == sort):
				open, sort, again = true, taken(i), true
				add(i)
			case again && scattered:
				return
			}
		}
	}
}
