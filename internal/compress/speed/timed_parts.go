package speed

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
)

// timedPart is a unit that the engine computes together: its layers share a time.
type timedPart struct {
	step  int   // the step that runs, by position in the unchanged model
	nodes []int // nodes computed by it, step included
	// layers are positions in the list of layers, shares their shares of the time.
	layers []int
	shares []float64
}

// parts groups layers by the steps that compute them. rest are layers that do not run.
func parts(layers []*weights.Layer, steps []engine.Step) (out []timedPart, rest []int) {
	at := map[int]int{}
	for i, l := range layers {
		own := -1
		var nodes []int
		for _, n := range readers(l) {
			if n < 0 || n >= len(steps) {
				continue
			}
			s := stepOf(steps, n)
			if s < 0 {
				continue
			}
			if own < 0 {
				own = s
			}
			nodes = append(append(nodes, s), steps[s].Fused...)
		}
		if own < 0 {
			rest = append(rest, i)
			continue
		}
		k, ok := at[own]
		if !ok {
			k = len(out)
			at[own] = k
			out = append(out, timedPart{step: own})
		}
		p := &out[k]
		p.nodes = append(p.nodes, nodes...)
		p.layers = append(p.layers, i)
	}
	for i := range out {
		slices.Sort(out[i].nodes)
		out[i].nodes = slices.Compact(out[i].nodes)
		out[i].share(layers)
	}
	return out, rest
}

// readers returns the operators of a layer, by their positions in the node lists of all graphs.
func readers(l *weights.Layer) []int {
	if len(l.GlobalNodes) > 0 {
		return l.GlobalNodes
	}
	if len(l.Nodes) == 0 {
		return []int{l.Node}
	}
	return l.Nodes
}

// stepOf returns the step that computes a node, -1 if none does in a run.
func stepOf(steps []engine.Step, n int) int {
	if steps[n].State == engine.Fused {
		n = steps[n].Into
	}
	if steps[n].State != engine.Runs {
		return -1
	}
	return n
}

// share divides the time of a part among its layers, by multiply-accumulates if all are known,
// else by weights.
func (p *timedPart) share(layers []*weights.Layer) {
	known := !slices.ContainsFunc(p.layers, func(i int) bool { return layers[i].MACs == nil || *layers[i].MACs <= 0 })
	sum := 0.0
	p.shares = make([]float64, len(p.layers))
	for k, i := range p.layers {
		if p.shares[k] = float64(layers[i].Weights()); known {
			p.shares[k] = float64(*layers[i].MACs)
		}
		sum += p.shares[k]
	}
	for k := range p.shares {
		if sum > 0 {
			p.shares[k] /= sum
		} else {
			p.shares[k] = 1 / float64(len(p.shares))
		}
	}
}

// originalNodes maps the nodes of a changed model to those of the unchanged one. A node
// corresponds to the one with an output of the same name, or for computing nodes of a prefix of
// its name. Inserted nodes correspond to the first such node that reads their output. -1 for
// none.
func originalNodes(from, to *graph.Graph) []int {
	made := map[string]int{}
	for i, n := range from.Nodes {
		for _, id := range n.Outputs {
			if id >= 0 && from.Values[id].Name != "" {
				made[from.Values[id].Name] = i
			}
		}
	}
	out := make([]int, len(to.Nodes))
	reader := map[int]int{} // by value: the original node of its reader
	for i := len(to.Nodes) - 1; i >= 0; i-- {
		n := to.Nodes[i]
		out[i] = originalNode(made, to, n)
		for _, id := range n.Outputs {
			if k, ok := reader[id]; ok && out[i] < 0 {
				out[i] = k
			}
		}
		for _, id := range n.Inputs {
			if id >= 0 && out[i] >= 0 {
				reader[id] = out[i]
			}
		}
	}
	return out
}

// originalNode returns the original node by the names of a node's outputs, -1 for none.
func originalNode(made map[string]int, g *graph.Graph, n *graph.Node) int {
	for _, id := range n.Outputs {
		if id < 0 {
			continue
		}
		name := g.Values[id].Name
		if k, ok := made[name]; ok {
			return k
		}
		if onlyConverts(n) {
			continue
		}
		// Changed models name a quantised value like the original with a suffix.
		for k := strings.LastIndexByte(name, '_'); k > 0; k = strings.LastIndexByte(name[:k], '_') {
			if at, ok := made[name[:k]]; ok {
				return at
			}
		}
	}
	return -1
}

// allOriginalNodes does the same as [originalNodes] for the nodes of all graphs.
func allOriginalNodes(from, to *graph.Model) []int {
	var out []int
	first := 0
	for i, g := range from.Graphs {
		for _, n := range originalNodes(g, to.Graphs[i]) {
			if n >= 0 {
				n += first
			}
			out = append(out, n)
		}
		first += len(g.Nodes)
	}
	return out
}

// allSteps returns the steps of all graphs, main graph first. Steps of subgraphs that never ran
// are skipped.
func allSteps(s *engine.Session) []engine.Step {
	var out []engine.Step
	for i, g := range s.Model.Graphs {
		first, list := len(out), s.GraphSteps(i)
		if list == nil {
			for _, n := range g.Nodes {
				out = append(out, engine.Step{Node: n, State: engine.Skipped})
			}
			continue
		}
		for _, st := range list {
			st.Into += first
			st.Fused = slices.Clone(st.Fused)
			for k := range st.Fused {
				st.Fused[k] += first
			}
			out = append(out, st)
		}
	}
	return out
}

// stepTime is the time of a step of any graph in a run, in nanoseconds.
func (x *model) stepTime(step int) int64 {
	if b := x.t.Bounds; step+1 < len(b) {
		return b[step+1] - b[step]
	}
	step -= len(x.t.Bounds) - 1
	for _, g := range x.t.Bodies[1:] {
		if step < len(g) {
			return g[step].Nanoseconds
		}
		step -= len(g)
	}
	return 0
}

// steps lists the steps of a changed model that do the work of the part.
func (p *timedPart) steps(stands []int) []int { return correspondingNodes(stands, p.nodes) }
