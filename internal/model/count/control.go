package count

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Calls says how often one execution of a control flow operator runs a graph.
type Calls struct {
	Graph int    // index in Model.Graphs
	Times *int64 // nil if data-dependent
}

// Bodies lists the graphs that one execution of node n runs, in order of the attributes' names,
// nil for operators without subgraphs. Elements of the inputs are used where known.
func Bodies(m *graph.Model, n *graph.Node, in, out []*tensor.Tensor) []Calls {
	c := &call{m: m, n: n, ins: in, outs: out}
	names := make([]string, 0, len(n.Attrs))
	for name := range n.Attrs {
		names = append(names, name)
	}
	slices.Sort(names)
	var calls []Calls
	for _, name := range names {
		switch v := n.Attrs[name].(type) {
		case graph.GraphRef:
			calls = append(calls, Calls{Graph: int(v), Times: c.iterations(name)})
		case []graph.GraphRef:
			for _, g := range v {
				calls = append(calls, Calls{Graph: int(g)})
			}
		}
	}
	return calls
}

// iterations returns how often the subgraph of an attribute runs, nil if unknown.
func (c *call) iterations(attr string) *int64 {
	switch c.n.Op {
	case "If", "IF":
		cond, ok := c.truth(0)
		if !ok {
			return nil
		}
		then := attr == "then_branch" || attr == "then_subgraph_index"
		if then == cond {
			return times1(1)
		}
		return times1(0)
	case "Loop":
		return c.loopTrips()
	case "Scan":
		return c.scanLength()
	case "CALL", "CALL_ONCE", "STABLEHLO_COMPOSITE":
		// CALL_ONCE runs in the first inference only; it counts for that one.
		return times1(1)
	}
	return nil
}

func times1(n int64) *int64 { return &n }

// scanLength is the length of the first scan input along its axis.
func (c *call) scanLength() *int64 {
	scans := c.n.Attrs.Int("num_scan_inputs", 0)
	if scans < 1 || scans > len(c.ins) {
		return nil
	}
	x := shape(c.tensor(c.ins, len(c.ins)-scans))
	axis := 0
	if v := c.n.Attrs.Ints("scan_input_axes"); len(v) > 0 {
		axis = v[0]
	}
	if axis < 0 {
		axis += len(x)
	}
	if axis < 0 || axis >= len(x) {
		return nil
	}
	return times1(int64(x[axis]))
}

// loopTrips returns the number of iterations of a Loop with a known trip count and without early
// exit: its condition output is its condition input or a true constant.
func (c *call) loopTrips() *int64 {
	trips := c.ints(0)
	gi, ok := c.n.Attrs.Graph("body")
	if len(trips) != 1 || !ok || gi < 0 || gi >= len(c.m.Graphs) {
		return nil
	}
	if cond, ok := c.truth(1); c.has(1) && (!ok || !cond) {
		if ok {
			return times1(0)
		}
		return nil
	}
	g := c.m.Graphs[gi]
	if len(g.Outputs) == 0 || len(g.Inputs) < 2 {
		return nil
	}
	id := g.Outputs[0]
	for range len(g.Nodes) + 1 { // trace Identity nodes back to their source
		if id < 0 || id >= len(g.Values) {
			return nil
		}
		if id == g.Inputs[1] {
			return times1(max(0, trips[0]))
		}
		if k := g.Values[id].Const; k.Known() && k.Type == tensor.Bool && len(k.Data) == 1 {
			if k.Data[0] != 0 {
				return times1(max(0, trips[0]))
			}
			return nil
		}
		i := slices.IndexFunc(g.Nodes, func(p *graph.Node) bool { return slices.Contains(p.Outputs, id) })
		if i < 0 {
			return nil
		}
		p := g.Nodes[i]
		if p.Op == "Constant" {
			if k := p.Attrs.Tensor("value"); k.Known() && k.Type == tensor.Bool && len(k.Data) == 1 && k.Data[0] != 0 {
				return times1(max(0, trips[0]))
			}
			return nil
		}
		if p.Op != "Identity" || len(p.Inputs) != 1 {
			return nil
		}
		id = p.Inputs[0]
	}
	return nil
}
