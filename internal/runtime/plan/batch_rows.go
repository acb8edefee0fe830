package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// batchRows finds TFLite layers that multiply the rows of one value by the same weights, one by
// one, as in recurrent networks whose time steps a converter has unrolled. One matrix
// multiplication of all rows reads the weights once.
func batchRows(g *Graph) {
	if g.model.Format != "tflite" {
		return
	}
	t := &rowBatcher{g: g, uses: g.readers(), earliest: g.earliest()}
	for i := range g.Tasks {
		if n := g.Tasks[i].Node; g.asInFileShaped(i) && n.Op == "UNPACK" && len(n.Inputs) == 1 && n.Inputs[0] >= 0 {
			t.batchUnpacked(i)
		}
	}
	g.InferAll()
}

// rowBatcher batches the matrix multiplications of rows.
type rowBatcher struct {
	g        *Graph
	uses     []int
	earliest []int
}

// asInFile reports whether task i runs a TFLite node as it is in the file.
func (g *Graph) asInFile(i int) bool {
	t := &g.Tasks[i]
	return t.State == Runs && !t.final && !t.Lowered && !t.act.On && t.Node.Domain == graph.TFLite
}

// asInFileShaped is asInFile for tasks of known shape.
func (g *Graph) asInFileShaped(i int) bool { return g.asInFile(i) && !g.Tasks[i].Dynamic }

// earliest returns the first task that reads each value; the number of tasks for values without
// readers.
func (g *Graph) earliest() []int {
	first := make([]int, len(g.Values))
	for id := range first {
		first[id] = len(g.Tasks)
	}
	for i := len(g.Tasks) - 1; i >= 0; i-- {
		if g.Tasks[i].State == Fused {
			continue
		}
		for _, id := range slices.Concat(g.Tasks[i].Node.Inputs, g.Captured(g.Tasks[i].Node)) {
			if id >= 0 {
				first[id] = i
			}
		}
	}
	return first
}

// minBatchRows is the minimum number of rows that are multiplied together.
const minBatchRows = 4

// batchUnpacked batches multiplications of the rows that task u unpacks, grouped by weights and
// biases.
func (t *rowBatcher) batchUnpacked(u int) {
	g := t.g
	n := g.Tasks[u].Node
	x := g.Values[n.Inputs[0]]
	if x == nil || x.Type != tensor.Float32 || x.Rank() < 2 || n.Attrs.Int("axis", 0) != 0 || len(n.Outputs) != x.Shape[0] || x.Shape[0] < minBatchRows {
		return
	}
	row := make(map[int]int, len(n.Outputs))
	for r, id := range n.Outputs {
		if id >= 0 {
			row[id] = r
		}
	}
	kinds := map[[2]int][]int{} // tasks by weights and bias, in order
	var order [][2]int
	for i := u + 1; i < len(g.Tasks); i++ {
		if !t.product(i) {
			continue
		}
		if _, ok := row[g.Tasks[i].Node.Inputs[0]]; !ok {
			continue
		}
		k := [2]int{g.Tasks[i].Node.Inputs[1], g.Tasks[i].Node.Inputs[2]}
		if kinds[k] == nil {
			order = append(order, k)
		}
		kinds[k] = append(kinds[k], i)
	}
	for _, k := range order {
		if len(kinds[k])*2 > x.Shape[0] && len(kinds[k]) >= minBatchRows {
			t.join(u, kinds[k], row)
		}
	}
}

// product reports whether task i multiplies one row of float32 values by constant weights.
func (t *rowBatcher) product(i int) bool {
	g := t.g
	n := g.Tasks[i].Node
	if !g.asInFileShaped(i) || n.Op != "FULLY_CONNECTED" || len(n.Inputs) != 3 || len(n.Outputs) != 1 || n.Inputs[0] < 0 || n.Inputs[1] < 0 || n.Outputs[0] < 0 || n.Attrs.Bool("keep_num_dims", false) {
		return false
	}
	x, w, y := g.Values[n.Inputs[0]], g.Values[n.Inputs[1]], g.Values[n.Outputs[0]]
	return x != nil && y != nil && w != nil && x.Type == tensor.Float32 && y.Type == tensor.Float32 && g.Fixed[n.Inputs[1]] && (n.Inputs[2] < 0 || g.Fixed[n.Inputs[2]]) &&
		w.Rank() == 2 && x.Len() == w.Shape[1] && slices.Equal(y.Shape, []int{1, w.Shape[0]})
}

// join lets one task multiply all rows and another one split the results. Both reuse tasks that
// are no longer needed and that come before every reader of a result.
func (t *rowBatcher) join(u int, products []int, row map[int]int) {
	g := t.g
	n := g.Tasks[u].Node
	all, apart := products[0], products[1]
	whole := len(products) == len(n.Outputs) && !slices.ContainsFunc(n.Outputs, func(id int) bool { return id < 0 || t.uses[id] != 1 })
	if whole {
		all, apart = u, products[0]
	}
	first := g.Tasks[products[0]].Node
	outputs := slices.Repeat([]int{-1}, len(n.Outputs))
	for _, i := range products {
		m := g.Tasks[i].Node
		r := row[m.Inputs[0]]
		if t.earliest[m.Outputs[0]] <= apart || outputs[r] >= 0 || !sameAttrs(m.Attrs, first.Attrs) {
			return
		}
		outputs[r] = m.Outputs[0]
	}
	zero := tensor.New(tensor.Int32)
	axis := g.add(&graph.Value{Type: zero.Type, Shape: []int{}, HasShape: true, Const: zero, Offset: -1}, zero)
	rows := g.temporary(g.Graph.Values[first.Outputs[0]].Name, tensor.Float32)
	for r, id := range outputs {
		if id < 0 { // a row with other readers
			outputs[r] = g.temporary(g.Graph.Values[rows].Name, tensor.Float32)
		}
	}
	at := func(i int) graph.Node {
		return graph.Node{Index: g.Tasks[i].Node.Index, Name: g.Tasks[i].Node.Name, Domain: graph.TFLite, Version: first.Version}
	}
	product, split := at(all), at(apart)
	product.Op, product.Inputs, product.Outputs, product.Attrs = first.Op, []int{n.Inputs[0], first.Inputs[1], first.Inputs[2]}, []int{rows}, first.Attrs
	split.Op, split.Version, split.Inputs, split.Outputs, split.Attrs = "SPLIT", 1, []int{axis, rows}, outputs, graph.Attrs{"num_splits": int64(len(outputs))}
	var rest []int
	for _, i := range products {
		if i != all && i != apart {
			rest = append(rest, i)
		}
	}
	g.replace(all, &product, rest...)
	g.replace(apart, &split)
	g.Tasks[all].Lowered, g.Tasks[apart].Lowered = true, true
	g.Tasks[all].pair, g.Tasks[apart].pair = apart+1, all+1
}

// sameAttrs reports whether the attributes of two nodes of one operator are equal; list
// attributes never compare equal.
func sameAttrs(a, b graph.Attrs) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		switch v.(type) {
		case int64, float32, bool, string:
			if b[name] != v {
				return false
			}
		default:
			return false
		}
	}
	return true
}
