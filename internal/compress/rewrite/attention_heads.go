package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// attentionHeads finds the Reshape nodes that split an axis into attention heads and join them
// again. It returns by node the head axis, of the output where it splits and of the input where
// it joins. The head axis precedes the last two axes of the matrix product that Softmax
// normalises. Q and K are traced back from there, V from the product with the attention weights,
// and that product forward to the join.
func attentionHeads(g *graph.Graph, shape func(id int) []int) map[*graph.Node]int {
	h := &headFinder{g: g, shape: shape, made: weights.Producers(g), readers: map[int][]*graph.Node{}, at: map[*graph.Node]int{}}
	for _, n := range g.Nodes {
		for _, id := range n.Inputs {
			if id >= 0 && !weights.ReadsShapeOnly(n) {
				h.readers[id] = append(h.readers[id], n)
			}
		}
	}
	for _, n := range g.Nodes {
		if (n.Op == "Softmax" || n.Op == "SOFTMAX") && len(n.Inputs) > 0 && len(n.Outputs) > 0 {
			h.attention(n)
		}
	}
	return h.at
}

type headFinder struct {
	g       *graph.Graph
	shape   func(id int) []int
	made    []*graph.Node
	readers map[int][]*graph.Node
	at      map[*graph.Node]int
}

func (h *headFinder) attention(softmax *graph.Node) {
	scores := h.producingMatMul(softmax.Inputs[0])
	mixed := h.consumingMatMul(softmax.Outputs[0])
	if scores == nil || mixed == nil {
		return
	}
	axis := len(h.shape(scores.Outputs[0])) - 3
	if axis < 0 || len(h.shape(mixed.Outputs[0])) != axis+3 {
		return
	}
	for _, id := range []int{scores.Inputs[0], scores.Inputs[1], mixed.Inputs[1]} {
		h.traceSplit(id, axis)
	}
	h.traceJoin(mixed.Outputs[0], axis)
}

func isMatMul(n *graph.Node) bool {
	return n != nil && (n.Op == "MatMul" || n.Op == "FusedMatMul" || n.Op == "BATCH_MATMUL") && len(n.Inputs) > 1 && n.Inputs[0] >= 0 && n.Inputs[1] >= 0 && len(n.Outputs) > 0
}

// mainInput returns the computed input of an elementwise node with the shape of its output, -1
// for none.
func (h *headFinder) mainInput(n *graph.Node) int {
	if !elementwise[n.Op] {
		return -1
	}
	for _, id := range n.Inputs {
		if id >= 0 && h.made[id] != nil && slices.Equal(h.shape(id), h.shape(n.Outputs[0])) {
			return id
		}
	}
	return -1
}

// producingMatMul traces a value back through elementwise operators to a matrix multiplication.
func (h *headFinder) producingMatMul(id int) *graph.Node {
	for id >= 0 {
		n := h.made[id]
		if n == nil || isMatMul(n) {
			return n
		}
		id = h.mainInput(n)
	}
	return nil
}

// consumingMatMul traces a value forward through elementwise operators to a matrix
// multiplication.
func (h *headFinder) consumingMatMul(id int) *graph.Node {
	for range h.g.Nodes { // no path is longer
		if len(h.readers[id]) != 1 {
			return nil
		}
		n := h.readers[id][0]
		switch {
		case isMatMul(n) && n.Inputs[0] == id:
			return n
		case isMatMul(n) || !elementwise[n.Op]:
			return nil
		}
		id = n.Outputs[0]
	}
	return nil
}

// permutation returns the permutation of a transposition, nil where unknown.
func (h *headFinder) permutation(n *graph.Node) []int {
	if n.Op != "Transpose" && n.Op != "TRANSPOSE" {
		return nil
	}
	if p := n.Attrs.Ints("perm"); p != nil {
		return p
	}
	return (&dependencyFinder{g: h.g, n: n}).ints(1)
}

// traceSplit traces a matrix operand back to the Reshape that created the head axis.
func (h *headFinder) traceSplit(id, axis int) {
	for id >= 0 && h.made[id] != nil {
		n := h.made[id]
		perm := h.permutation(n)
		switch {
		case axis < len(perm):
			id, axis = n.Inputs[0], perm[axis]
		case n.Op == "Reshape" || n.Op == "RESHAPE":
			h.at[n] = axis
			return
		default:
			id = h.mainInput(n)
		}
	}
}

// traceJoin traces the output of the heads forward to the Reshape that merges them.
func (h *headFinder) traceJoin(id, axis int) {
	for range h.g.Nodes {
		if len(h.readers[id]) != 1 {
			return
		}
		n := h.readers[id][0]
		perm := h.permutation(n)
		switch {
		case perm != nil:
			axis = slices.Index(perm, axis)
		case n.Op == "Reshape" || n.Op == "RESHAPE":
			h.at[n] = axis
			return
		case !elementwise[n.Op]:
			return
		}
		if axis < 0 || len(n.Outputs) == 0 {
			return
		}
		id = n.Outputs[0]
	}
}

// tieAttention ties the parts of a fused operator that belong to a head: its columns of the
// weights of queries, keys and values (or of these values themselves), of bias and of output.
// Caches of keys and values keep their heads.
func (b *dependencyFinder) tieAttention(x, y int) {
	heads := b.n.Attrs.Int("num_heads", 0)
	if heads < 1 || b.rank(x) != 3 || b.dim(y, 2)%heads != 0 {
		return
	}
	// parts are operands whose axis holds all heads once, or consecutively for queries, keys and
	// values.
	type part struct{ id, axis int }
	var parts []part
	caches, scores := []int{b.out(1), b.out(2), b.out(3)}, b.in(5)
	switch b.n.Op {
	case "MultiHeadAttention":
		if b.rank(b.in(1)) != 3 || b.rank(b.in(2)) != 3 || b.dim(x, 2) != b.dim(y, 2) {
			return
		}
		caches = append(caches, b.in(6), b.in(7))
		parts = []part{{x, 2}, {b.in(1), 2}, {b.in(2), 2}, {b.in(3), 0}}
		b.tieSame(b.in(1), 0, b.in(2), 0)
		b.tieSame(b.in(1), 1, b.in(2), 1)
	default:
		if b.dim(b.in(1), 1) != 3*b.dim(y, 2) {
			return
		}
		caches = append(caches, b.in(4))
		parts = []part{{b.in(1), 1}, {b.in(2), 0}}
		if b.n.Op == "QAttention" {
			caches[len(caches)-1], scores = b.in(8), -1
			for _, i := range []int{4, 7} {
				if b.dim(b.in(i), 0) > 1 {
					parts = append(parts, part{b.in(i), 0})
				}
			}
		}
		b.tieSame(x, 2, b.in(1), 0)
	}
	b.tieSame(x, 0, y, 0)
	b.tieSame(x, 1, y, 1)
	if scores >= 0 && b.dim(scores, 1) != 1 || slices.ContainsFunc(caches, func(id int) bool { return id >= 0 }) {
		return
	}
	*b.lastVirtual--
	size := b.dim(y, 2) / heads
	for _, p := range append(parts, part{y, 2}) {
		if n := b.dim(p.id, p.axis); p.id >= 0 {
			b.tie(*b.lastVirtual, 0, p.id, p.axis, 0, n, size, heads)
		}
	}
}
