package rewrite

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// heads finds where attention splits an axis into heads and joins them again: by node, a Reshape, the axis that counts the heads, of its
// output where it splits and of its input where it joins. It is the axis before the last two of the product that Softmax makes shares of:
// Q and K are followed back from there, V from the product with the shares, and that product to where heads are joined.
func heads(g *graph.Graph, shape func(id int) []int) map[*graph.Node]int {
	h := &headFinder{g: g, shape: shape, made: weights.Makers(g), readers: map[int][]*graph.Node{}, at: map[*graph.Node]int{}}
	for _, n := range g.Nodes {
		for _, id := range n.Inputs {
			if id >= 0 && !weights.SeesShape(n) {
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
	scores := h.back(softmax.Inputs[0])
	mixed := h.on(softmax.Outputs[0])
	if scores == nil || mixed == nil {
		return
	}
	axis := len(h.shape(scores.Outputs[0])) - 3
	if axis < 0 || len(h.shape(mixed.Outputs[0])) != axis+3 {
		return
	}
	for _, id := range []int{scores.Inputs[0], scores.Inputs[1], mixed.Inputs[1]} {
		h.split(id, axis)
	}
	h.join(mixed.Outputs[0], axis)
}

func isProduct(n *graph.Node) bool {
	return n != nil && (n.Op == "MatMul" || n.Op == "FusedMatMul" || n.Op == "BATCH_MATMUL") && len(n.Inputs) > 1 && n.Inputs[0] >= 0 && n.Inputs[1] >= 0 && len(n.Outputs) > 0
}

// main is the input of an elementwise node that has its shape and is computed, -1 for none.
func (h *headFinder) main(n *graph.Node) int {
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

// back is the product that a value comes from through elementwise operators.
func (h *headFinder) back(id int) *graph.Node {
	for id >= 0 {
		n := h.made[id]
		if n == nil || isProduct(n) {
			return n
		}
		id = h.main(n)
	}
	return nil
}

// on is the product that reads a value, through elementwise operators.
func (h *headFinder) on(id int) *graph.Node {
	for range h.g.Nodes { // no way is longer
		if len(h.readers[id]) != 1 {
			return nil
		}
		n := h.readers[id][0]
		switch {
		case isProduct(n) && n.Inputs[0] == id:
			return n
		case isProduct(n) || !elementwise[n.Op]:
			return nil
		}
		id = n.Outputs[0]
	}
	return nil
}

// permutation is what a transposition does to axes, nil where that is not known.
func (h *headFinder) permutation(n *graph.Node) []int {
	if n.Op != "Transpose" && n.Op != "TRANSPOSE" {
		return nil
	}
	if p := n.Attrs.Ints("perm"); p != nil {
		return p
	}
	return (&bonds{g: h.g, n: n}).ints(1)
}

// split goes from a product's operand to where the axis comes from.
func (h *headFinder) split(id, axis int) {
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
			id = h.main(n)
		}
	}
}

// join goes from what heads make to where they become one axis.
func (h *headFinder) join(id, axis int) {
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

// attention ties what a fused operator has for each head: its columns of the weights of queries, keys and values, or of these
// themselves, its part of bias and output. Caches of keys and values keep their heads.
func (b *bonds) attention(x, y int) {
	heads := b.n.Attrs.Int("num_heads", 0)
	if heads < 1 || b.rank(x) != 3 || b.dim(y, 2)%heads != 0 {
		return
	}
	// parts are operands whose axis holds all heads once, or one after the other for queries, keys and values.
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
		b.same(b.in(1), 0, b.in(2), 0)
		b.same(b.in(1), 1, b.in(2), 1)
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
		b.same(x, 2, b.in(1), 0)
	}
	b.same(x, 0, y, 0)
	b.same(x, 1, y, 1)
	if scores >= 0 && b.dim(scores, 1) != 1 || slices.ContainsFunc(caches, func(id int) bool { return id >= 0 }) {
		return
	}
	*b.tie--
	size := b.dim(y, 2) / heads
	for _, p := range append(parts, part{y, 2}) {
		if n := b.dim(p.id, p.axis); p.id >= 0 {
			b.join(*b.tie, 0, p.id, p.axis, 0, n, size, heads)
		}
	}
}
