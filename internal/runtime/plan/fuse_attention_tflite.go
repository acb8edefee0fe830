package plan

import (
	"slices"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// TFLite models write attention as BATCH_MATMUL, binary operators, SOFTMAX and BATCH_MATMUL, with
// reshapes between. See internal/runtime/tfliteop/matmul/attend.go for how the last BATCH_MATMUL
// uses the attributes set here.

// Minimum numbers of scores and rows for which fusion pays off: fewer scores stay in the cache
// between separate operators too, and fewer rows do not pay for packing.
const (
	leastLiteScores = 1 << 13
	leastLiteRows   = 8
)

// fuseLiteAttentions is fuseAttentions for TFLite; results stay bit-exact.
func fuseLiteAttentions(g *Graph) {
	m := &liteMatcher{matcher: matcher{g: g, uses: g.readers(), domain: graph.TFLite}}
	for i := range g.Tasks {
		if !m.is(i, "BATCH_MATMUL", 2) {
			continue
		}
		attrs, in := m.attention(i)
		if in == nil {
			continue
		}
		n := g.Tasks[i].Node
		g.replace(i, &graph.Node{
			Index: n.Index, Name: n.Name, Domain: n.Domain, Function: n.Function, Op: n.Op, Version: n.Version, Inputs: in, Outputs: n.Outputs, Attrs: attrs,
		}, m.taken...)
		g.Tasks[i].Lowered = true
	}
	g.InferAll()
}

// liteMatcher collects the operators between the two MatMuls.
type liteMatcher struct {
	matcher
	names    []string // operators, last one first
	operands []int
	batches  [][]int64 // batch dimensions of the scores at each operator
}

// attention matches an attention that ends in MatMul i.
func (m *liteMatcher) attention(i int) (graph.Attrs, []int) {
	m.begin(i)
	m.names, m.operands, m.batches = nil, nil, nil
	last := m.g.Tasks[i].Node
	out, value := m.float32Value(last.Outputs[0]), m.float32Value(last.Inputs[1])
	weights := m.float32Value(last.Inputs[0])
	if out == nil || value == nil || weights == nil || last.Attrs.Bool("adj_x", false) {
		return nil, nil
	}
	r := weights.Rank()
	if r < 2 || r > 2+op.LeadAxes || weights.Shape[r-2] < leastLiteRows || weights.Shape[r-2]*weights.Shape[r-1] < leastLiteScores || value.Len() == 0 {
		return nil, nil
	}
	batches := lead(weights.Shape)
	soft := m.producer(m.reshaped(last.Inputs[0], 2), "SOFTMAX", 1)
	if soft == nil || m.float32Value(soft.Outputs[0]) == nil {
		return nil, nil
	}
	first := m.scores(soft.Inputs[0])
	if first == nil {
		return nil, nil
	}
	x, y := m.float32Value(first.Inputs[0]), m.float32Value(first.Inputs[1])
	if x == nil || y == nil || x.Len()*y.Len() == 0 {
		return nil, nil
	}
	slices.Reverse(m.names)
	slices.Reverse(m.operands)
	slices.Reverse(m.batches)
	all := slices.Concat(append(m.batches, batches)...)
	adjoint := []int64{int64(first.Attrs.Int("adj_x", 0)), int64(first.Attrs.Int("adj_y", 0)), int64(last.Attrs.Int("adj_y", 0))}
	return graph.Attrs{
		op.AttrScores: m.names, op.AttrAdjoint: adjoint, op.AttrBatches: all, op.AttrRank: int64(out.Rank()),
		op.AttrExponent: soft.Attrs.Float("beta", 1),
	}, append([]int{first.Inputs[0], first.Inputs[1], last.Inputs[1]}, m.operands...)
}

// scores returns the MatMul that computes a value through binary operators and reshapes, nil if
// absent.
func (m *liteMatcher) scores(id int) *graph.Node {
	id = m.reshaped(id, 2)
	s := m.float32Value(id)
	if s == nil || s.Rank() > 2+op.LeadAxes {
		return nil
	}
	if n := m.producer(id, "BATCH_MATMUL", 2); n != nil {
		return n
	}
	for _, name := range []string{"ADD", "MUL", "SUB", "DIV"} {
		taken := len(m.taken)
		n := m.producer(id, name, 2)
		if n == nil || n.Attrs.Str("fused_activation_function", "NONE") != "NONE" {
			m.taken = m.taken[:taken]
			continue
		}
		steps := len(m.names)
		for k := 0; k < 2 && (k == 0 || name == "ADD" || name == "MUL"); k++ {
			here := len(m.taken)
			if x := m.float32Value(n.Inputs[k]); x != nil && slices.Equal(x.Shape, s.Shape) && m.spreads(n.Inputs[1-k], s.Shape) {
				m.names, m.operands, m.batches = append(m.names, name), append(m.operands, n.Inputs[1-k]), append(m.batches, lead(s.Shape))
				if first := m.scores(n.Inputs[k]); first != nil {
					return first
				}
			}
			m.taken, m.names, m.operands, m.batches = m.taken[:here], m.names[:steps], m.operands[:steps], m.batches[:steps]
		}
	}
	return nil
}

// reshaped returns the input of a chain of reshapes that keep the last dimensions, some of them,
// or the value itself.
func (m *liteMatcher) reshaped(id, some int) int {
	last := func(y *tensor.Tensor) []int { return y.Shape[y.Rank()-some:] }
	for {
		y := m.float32Value(id)
		if y == nil || y.Rank() < some {
			return id
		}
		taken := len(m.taken)
		n := m.producer(id, "RESHAPE", 2)
		if n == nil {
			n = m.producer(id, "RESHAPE", 1)
		}
		if n == nil {
			return id
		}
		x := m.float32Value(n.Inputs[0])
		if x == nil || x.Rank() < some || !slices.Equal(last(x), last(y)) {
			m.taken = m.taken[:taken]
			return id
		}
		id = n.Inputs[0]
	}
}

// broadcastsTo reports whether a float32 value, a scalar included, broadcasts to the shape of the
// scores.
func (m *liteMatcher) spreads(id int, scores []int) bool {
	x := m.float32Value(id)
	return x != nil && x.Rank() == 0 || m.matcher.broadcastsTo(id, scores)
}

// lead returns the batch dimensions of a shape, padded with ones to op.LeadAxes of them.
func lead(shape []int) []int64 {
	all := make([]int64, 0, op.LeadAxes)
	for n := len(shape) - 2; len(all) < op.LeadAxes-n; {
		all = append(all, 1)
	}
	for _, n := range shape[:len(shape)-2] {
		all = append(all, int64(n))
	}
	return all
}
