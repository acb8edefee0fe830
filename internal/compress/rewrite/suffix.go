package rewrite

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// Suffix returns the part of a model that depends on nodes of its main graph, the nodes included.
// It has all outputs of the model, in order; its inputs are the values it reads from outside: ids
// of m, in the order of the inputs of s. An output that does not depend on the nodes becomes an
// input that is passed through. Values keep their ids.
//
// Nodes that only compute shapes, and DequantizeLinear nodes before dependent nodes, are
// included, so that the engine plans the part as it plans the complete model. Operators that
// share a variable with it are included too. With the engine's options Exact and KeepAll, a run
// on values kept from such a run of the complete model is bit-exact.
func Suffix(m *graph.Model, nodes []int) (s *graph.Model, inputs []int, err error) {
	g := m.Main()
	x := &suffix{m: m, g: g, in: make([]bool, len(g.Nodes)), made: make([]int, len(g.Values)), reads: make([][]int, len(g.Nodes))}
	for i := range x.made {
		x.made[i] = -1
	}
	for i, n := range g.Nodes {
		x.reads[i] = x.readsOf(n)
		for _, id := range n.Outputs {
			if id >= 0 {
				x.made[id] = i
			}
		}
	}
	for _, i := range nodes {
		if i < 0 || i >= len(g.Nodes) {
			return nil, nil, fmt.Errorf("node %d of %d", i, len(g.Nodes))
		}
		x.in[i] = true
	}
	x.addDependents()
	x.addPredecessors()
	inputs = x.inputs()
	part := *g
	part.Inputs = inputs
	part.Nodes = nil
	for i, n := range g.Nodes {
		if x.in[i] {
			c := *n
			c.Index = len(part.Nodes)
			part.Nodes = append(part.Nodes, &c)
		}
	}
	out := weights.WithMain(m, &part)
	out.Signatures = nil
	return out, slices.Clone(inputs), nil
}

type suffix struct {
	m     *graph.Model
	g     *graph.Graph
	in    []bool  // nodes of the suffix
	made  []int   // producing node by value, -1 for others
	reads [][]int // values that a node reads, including those captured by its subgraphs
}

// readsOf lists the inputs of a node and the captures of its subgraphs.
func (x *suffix) readsOf(n *graph.Node) []int {
	out := slices.DeleteFunc(slices.Clone(n.Inputs), func(id int) bool { return id < 0 })
	for _, r := range weights.Subgraphs(n) {
		if b := x.m.Graphs[r]; b.Parent == x.g {
			for _, c := range b.Captures {
				out = append(out, c.Outer)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addDependents adds dependent nodes until nothing changes. A variable makes all its users depend
// on each other.
func (x *suffix) addDependents() {
	hot := make([]bool, len(x.g.Values))
	for changed := true; changed; {
		changed = false
		for i, n := range x.g.Nodes {
			if !x.in[i] && !slices.ContainsFunc(x.reads[i], func(id int) bool { return hot[id] }) {
				continue
			}
			if !x.in[i] {
				x.in[i], changed = true, true
			}
			for _, id := range n.Outputs {
				if id >= 0 && !hot[id] {
					hot[id], changed = true, true
				}
			}
			for _, id := range x.reads[i] {
				v := x.g.Values[id]
				if !v.Variable && v.Type != tensor.Resource || hot[id] {
					continue
				}
				hot[id], changed = true, true
				if at := x.made[id]; at >= 0 {
					x.in[at] = true
				}
				for k, n := range x.g.Nodes { // initialises variables
					x.in[k] = x.in[k] || n.Op == "CALL_ONCE"
				}
			}
		}
	}
}

// addPredecessors adds the shape computations and DequantizeLinear nodes before the suffix.
func (x *suffix) addPredecessors() {
	known := map[int]bool{} // nodes that compute with shapes only
	var shapes func(id int) bool
	shapes = func(id int) bool {
		at := x.made[id]
		if at < 0 {
			return x.g.Values[id].Const != nil
		}
		if ok, seen := known[at]; seen {
			return ok
		}
		n := x.g.Nodes[at]
		ok := shapeOps[n.Op] && !x.in[at]
		if ok && !weights.ReadsShapeOnly(n) {
			ok = !slices.ContainsFunc(x.reads[at], func(id int) bool { return !shapes(id) })
		}
		known[at] = ok
		return ok
	}
	var add func(id int)
	add = func(id int) {
		at := x.made[id]
		if at < 0 || x.in[at] {
			return
		}
		n := x.g.Nodes[at]
		switch {
		case n.Op == "DequantizeLinear" && len(n.Inputs) > 0:
			x.in[at] = true
			for _, id := range n.Inputs[1:] {
				if id >= 0 {
					add(id)
				}
			}
		case shapes(id):
			x.in[at] = true
			if !weights.ReadsShapeOnly(n) {
				for _, id := range x.reads[at] {
					add(id)
				}
			}
		}
	}
	for i := len(x.g.Nodes) - 1; i >= 0; i-- {
		if x.in[i] {
			for _, id := range x.reads[i] {
				add(id)
			}
		}
	}
}

// shapeOps lists operators that models use to compute shapes.
var shapeOps = map[string]bool{
	"Shape": true, "Size": true, "Gather": true, "Slice": true, "Concat": true, "Unsqueeze": true, "Squeeze": true, "Cast": true, "Identity": true,
	"Add": true, "Sub": true, "Mul": true, "Div": true, "Mod": true, "Floor": true, "Ceil": true, "Neg": true, "Min": true, "Max": true, "ReduceProd": true, "ReduceMax": true,
	"ConstantOfShape": true, "Range": true, "Equal": true, "Less": true, "Greater": true, "Where": true, "Expand": true, "Reshape": true, "Transpose": true, "Tile": true, "Constant": true, "Split": true,
	"SHAPE": true, "RANK": true, "GATHER": true, "SLICE": true, "STRIDED_SLICE": true, "CONCATENATION": true, "PACK": true, "UNPACK": true, "CAST": true,
	"ADD": true, "SUB": true, "MUL": true, "DIV": true, "FLOOR_DIV": true, "REDUCE_PROD": true, "FILL": true, "RANGE": true, "RESHAPE": true, "EXPAND_DIMS": true, "SQUEEZE": true, "TILE": true,
}

// inputs returns the values that the suffix reads and does not produce, the model's inputs first.
func (x *suffix) inputs() []int {
	need := make([]bool, len(x.g.Values))
	for i := range x.g.Nodes {
		if x.in[i] {
			for _, id := range x.reads[i] {
				need[id] = true
			}
		}
	}
	for _, id := range x.g.Outputs {
		if id >= 0 {
			need[id] = true
		}
	}
	var out []int
	for id, v := range x.g.Values {
		made := x.made[id] >= 0 && x.in[x.made[id]]
		if need[id] && !made && v.Const == nil && !v.Variable && !v.Scratch {
			out = append(out, id)
		}
	}
	return out
}
