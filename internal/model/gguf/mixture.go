package gguf

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// routing says how the experts of a token are weighted.
type routing struct {
	// normalise divides the weights of the chosen experts by their sum.
	normalise bool
	// late applies the softmax to the chosen experts, not to all.
	late bool
}

// mixture has the sizes of a layer with experts.
type mixture struct {
	experts, used, wide int
	sigmoid             bool    // scores are sigmoids, not a softmax
	scale               float32 // of the weights, 0 for none
	routing
}

// mixture returns the experts of a layer, nil for a layer without.
func (b *builder) mixture(l int) (*mixture, error) {
	experts := b.f.Float(b.key("expert_count"), 0)
	if experts <= 0 || l < int(b.f.Float(b.key("leading_dense_block_count"), 0)) {
		return nil, nil //nolint:nilnil // a layer without experts is no error
	}
	if b.route == nil {
		return nil, fmt.Errorf("mixtures of experts of architecture %s are not supported (%v experts)", b.network.name, experts)
	}
	m := &mixture{routing: *b.route, sigmoid: b.f.Float(b.key("expert_gating_func"), 1) == 2, scale: float32(b.f.Float(b.key("expert_weights_scale"), 0))}
	if v, ok := number(b.f.Meta[b.key("expert_weights_norm")]); ok {
		m.normalise = v != 0
	}
	var err error
	for _, s := range []struct {
		to  *int
		key string
		def float64
	}{
		{&m.experts, "expert_count", 0},
		{&m.used, "expert_used_count", 0},
		{&m.wide, "expert_feed_forward_length", b.f.Float(b.key("feed_forward_length"), 0)},
	} {
		if *s.to, err = b.perLayer(b.f, s.key, l, s.def); err != nil {
			return nil, err
		}
	}
	if m.used > m.experts {
		return nil, fmt.Errorf("metadata %s is %d, expected %d at most", b.key("expert_used_count"), m.used, m.experts)
	}
	b.language.Experts, b.language.UsedExperts = int64(m.experts), int64(m.used)
	return m, nil
}

// experts multiplies x [batch, rows, slots or 1, in] with the matrices of the experts in ids.
func (b *builder) experts(name string, x, ids, experts, out, in int) int {
	t := b.required(name+".weight", experts, out, in)
	bias := b.tensor(name+".bias", experts, out)
	if b.err != nil {
		return -1
	}
	node := shortName(name)
	attrs := graph.Attrs{"experts": int64(experts), "N": int64(out), "K": int64(in)}
	inputs := []int{x, -1, -1, -1, -1, -1, ids}
	if _, is := plainTypes[t.Type]; is {
		inputs[1] = b.floats(t, false)
	} else {
		w := b.matrix(t)
		attrs["bits"], attrs["block_size"], attrs[graph.RoundsRows] = int64(w.bits), int64(w.block), int64(1)
		inputs[1], inputs[2], inputs[3] = w.data, w.scales, w.zeros
	}
	y := b.node(graph.Own, "ExpertMatMul", node, attrs, 1, inputs...)[0]
	if v := b.vector(bias); v >= 0 {
		y = b.op("Add", node+"_bias", nil, y, b.op("Gather", node+"_biases", graph.Attrs{"axis": int64(0)}, v, ids))
	}
	return y
}

// moe adds the experts of a layer, and the shared ones.
func (b *builder) moe(at string, m *mixture, n int) int {
	last := graph.Attrs{"axis": int64(-1)}
	logits := b.linear(at+"ffn_gate_inp", n, m.experts, b.width)
	if b.err != nil {
		return -1
	}
	scores := logits
	switch {
	case m.sigmoid:
		scores = b.op("Sigmoid", "scores", nil, logits)
	case !m.late:
		scores = b.op("Softmax", "scores", last, logits)
	}
	chosenBy := scores
	if v := b.vector(b.tensor(at+"exp_probs_b.bias", m.experts)); v >= 0 {
		chosenBy = b.op("Add", "biased_scores", nil, scores, v)
	}
	top := b.node(graph.ONNX, "TopK", "choose", graph.Attrs{"axis": int64(-1), "largest": int64(1), "sorted": int64(1)}, 2, chosenBy, b.ints("used", int64(m.used)))
	ids := top[1]
	b.g.Values[ids].Type = tensor.Int64
	w := top[0]
	if chosenBy != scores {
		w = b.op("GatherElements", "chosen_scores", last, scores, ids)
	}
	if m.late {
		w = b.op("Softmax", "weights", last, w)
	}
	if m.normalise {
		w = b.op("Div", "normalised", nil, w, b.op("ReduceSum", "sum_of_weights", graph.Attrs{"keepdims": int64(1)}, w, b.ints("last_axis", -1)))
	}
	if m.scale != 0 && m.scale != 1 {
		w = b.op("Mul", "scaled", nil, w, b.float("weight_scale", m.scale))
	}
	x := b.op("Unsqueeze", "slots", nil, n, b.ints("slot_axis", 2))
	gate := b.experts(at+"ffn_gate_exps", x, ids, m.experts, m.wide, b.width)
	up := b.experts(at+"ffn_up_exps", x, ids, m.experts, m.wide, b.width)
	if b.err != nil {
		return -1
	}
	y := b.experts(at+"ffn_down_exps", b.gated(gate, up), ids, m.experts, b.width, m.wide)
	if b.err != nil {
		return -1
	}
	y = b.op("Mul", "weighted", nil, y, b.op("Unsqueeze", "columns", nil, w, b.ints("column_axis", -1)))
	y = b.op("ReduceSum", "experts", graph.Attrs{"keepdims": int64(0)}, y, b.ints("expert_axis", 2))
	return b.sharedExperts(at, n, y)
}

// sharedExperts adds the MLP that all tokens use, if the file has one.
func (b *builder) sharedExperts(at string, n, y int) int {
	up := b.f.Tensor(at + "ffn_up_shexp.weight")
	if up == nil {
		return y
	}
	if len(up.Shape) != 2 {
		b.fail("tensor %q has %d dimensions, expected 2", up.Name, len(up.Shape))
		return -1
	}
	wide := up.Shape[0]
	g, u := b.linear(at+"ffn_gate_shexp", n, wide, b.width), b.linear(at+"ffn_up_shexp", n, wide, b.width)
	if b.err != nil {
		return -1
	}
	s := b.linear(at+"ffn_down_shexp", b.gated(g, u), b.width, wide)
	if v := b.vector(b.tensor(at+"ffn_gate_inp_shexp.weight", b.width)); v >= 0 && b.err == nil {
		open := b.op("ReduceSum", "shared_logit", graph.Attrs{"keepdims": int64(1)}, b.op("Mul", "shared_product", nil, n, v), b.ints("shared_axis", -1))
		s = b.op("Mul", "shared_gated", nil, s, b.op("Sigmoid", "shared_gate", nil, open))
	}
	return b.op("Add", "shared", nil, y, s)
}

// gated multiplies the activation of gate with up.
func (b *builder) gated(gate, up int) int {
	if b.err != nil {
		return -1
	}
	if b.clamped { // SwiGLU of gpt-oss
		const limit, slope = 7, 1.702
		gate = b.op("Min", "gate_limit", nil, gate, b.float("limit", limit))
		up = b.op("Clip", "up_limit", nil, up, b.float("low", -limit), b.float("high", limit))
		gate = b.op("Mul", "activation", nil, gate, b.op("Sigmoid", "sigmoid", nil, b.op("Mul", "steep", nil, gate, b.float("slope", slope))))
		return b.op("Mul", "gated", nil, gate, b.op("Add", "up_one", nil, up, b.float("one", 1)))
	}
	if b.gelu {
		gate = b.op("Gelu", "activation", graph.Attrs{"approximate": "tanh"}, gate)
	} else {
		gate = b.op("Mul", "activation", nil, gate, b.op("Sigmoid", "sigmoid", nil, gate))
	}
	return b.op("Mul", "gated", nil, gate, up)
}
