package cortexm

import "github.com/opmeter/opmeter/internal/graph"

// Quantised finds the nodes of an ONNX graph that stand in floating point between
// DequantizeLinear and QuantizeLinear, which is how such files write operators on
// 8-bit integers: converters compute them in integers and leave out the two. It
// returns those nodes, and the conversions that disappear.
func Quantised(g *graph.Graph) (integer, gone map[*graph.Node]bool) {
	integer, gone = map[*graph.Node]bool{}, map[*graph.Node]bool{}
	made := map[int]*graph.Node{}
	used := map[int][]*graph.Node{}
	any := false
	for _, n := range g.Nodes {
		for _, id := range n.Outputs {
			made[id] = n
		}
		for _, id := range n.Inputs {
			used[id] = append(used[id], n)
		}
		any = any || n.Op == "DequantizeLinear"
	}
	if !any {
		return integer, gone
	}
	is := func(n *graph.Node, op string) bool { return n != nil && n.Op == op }
	// clamped is true for values that reach only QuantizeLinear, through a clamp at most.
	var clamped func(id, depth int) bool
	clamped = func(id, depth int) bool {
		for _, n := range used[id] {
			clamp := (n.Op == "Relu" || n.Op == "Clip") && depth == 0 && len(n.Outputs) > 0
			if n.Op != "QuantizeLinear" && !(clamp && clamped(n.Outputs[0], 1)) {
				return false
			}
		}
		return len(used[id]) > 0
	}
	for _, n := range g.Nodes {
		if n.Op == "QuantizeLinear" || n.Op == "DequantizeLinear" || len(n.Outputs) == 0 || !clamped(n.Outputs[0], 0) {
			continue
		}
		from := 0
		for _, id := range n.Inputs {
			if id < 0 || g.Values[id].Const != nil {
				continue
			}
			p := made[id]
			clampOf := (n.Op == "Relu" || n.Op == "Clip") && p != nil && integer[p]
			if !is(p, "DequantizeLinear") && !clampOf {
				from = -1
				break
			}
			from++
		}
		if from > 0 {
			integer[n] = true
		}
	}
	for _, n := range g.Nodes {
		switch n.Op {
		case "QuantizeLinear":
			gone[n] = len(n.Inputs) > 0 && integer[made[n.Inputs[0]]]
		case "DequantizeLinear":
			all := len(n.Inputs) > 0 && len(n.Outputs) > 0 && len(used[n.Outputs[0]]) > 0
			for i := 0; all && i < len(used[n.Outputs[0]]); i++ {
				all = integer[used[n.Outputs[0]][i]]
			}
			gone[n] = all
		}
	}
	return integer, gone
}
