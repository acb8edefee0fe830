package gguf

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// mamba adds a layer with a state space: a convolution over the last tokens, and a state that each
// token decays and adds to. It returns the output and both states.
func (b *builder) mamba(l int, at string, x int) (y int, states []int, err error) {
	var kernel, inner, state, rank int
	for _, s := range []struct {
		to  *int
		key string
	}{{&kernel, "ssm.conv_kernel"}, {&inner, "ssm.inner_size"}, {&state, "ssm.state_size"}, {&rank, "ssm.time_step_rank"}} {
		if *s.to, err = b.perLayer(b.f, s.key, l, 0); err != nil {
			return 0, nil, err
		}
	}
	if kernel < 2 {
		return 0, nil, fmt.Errorf("metadata %s is %d, expected 2 at least", b.key("ssm.conv_kernel"), kernel)
	}
	n := b.norm(at+"attn_norm", x, b.width)
	both := b.linear(at+"ssm_in", n, 2*inner, b.width)
	conv, convBias := b.required(at+"ssm_conv1d.weight", inner, kernel), b.vector(b.tensor(at+"ssm_conv1d.bias", inner))
	if b.err != nil {
		return 0, nil, b.err
	}
	parts := b.split("halves", both, int64(inner), int64(inner))
	columns := b.op("Transpose", "columns", graph.Attrs{"perm": []int64{0, 2, 1}}, parts[0])
	weights := b.op("Unsqueeze", "conv_weights", nil, b.vector(conv), b.ints("conv_axis", 1))
	past := b.input(fmt.Sprintf("past_states.%d.conv", l), tensor.Float32, "batch_size", inner, kernel-1)
	out := b.node(graph.Microsoft, "CausalConvWithState", "conv1d", graph.Attrs{"activation": "silu"}, 2, columns, weights, convBias, past)
	u := b.op("Transpose", "tokens", graph.Attrs{"perm": []int64{0, 2, 1}}, out[0])
	b.g.Values[out[1]].Name = fmt.Sprintf("present_states.%d.conv", l)

	all := b.linear(at+"ssm_x", u, rank+2*state, inner)
	if b.err != nil {
		return 0, nil, b.err
	}
	selected := b.split("selected", all, int64(rank), int64(state), int64(state))
	if b.f.Float(b.key("ssm.dt_b_c_rms"), 0) != 0 {
		for i := range selected {
			name := b.name([]string{"dt_rms", "b_rms", "c_rms"}[i])
			size := []int{rank, state, state}[i]
			one := tensor.New(tensor.Float32, size)
			for k := range tensor.Of[float32](one) {
				tensor.Of[float32](one)[k] = 1
			}
			selected[i] = b.op("RMSNormalization", name, graph.Attrs{"axis": int64(-1), "epsilon": b.epsilon}, selected[i], b.constant(b.name(name+"_scale"), one))
		}
	}
	dt := b.op("Softplus", "step", nil, b.linear(at+"ssm_dt", selected[0], inner, rank))
	a := b.vector(b.required(at+"ssm_a", inner, state))
	d := b.vector(b.required(at+"ssm_d", inner))
	if b.err != nil {
		return 0, nil, b.err
	}
	// Each channel is a head whose key has the elements of the state and whose value is one number.
	rows := b.ints("state_rows", 0, 0, int64(inner*state))
	decay := b.op("Reshape", "decays", nil, b.op("Mul", "decay", nil, b.op("Unsqueeze", "step_column", nil, dt, b.ints("step_axis", -1)), a), rows)
	repeat := b.ints("repeats", 1, 1, int64(inner))
	key, query := b.op("Tile", "keys", nil, selected[1], repeat), b.op("Tile", "queries", nil, selected[2], repeat)
	before := b.input(fmt.Sprintf("past_states.%d.ssm", l), tensor.Float32, "batch_size", inner, state, 1)
	attrs := graph.Attrs{"q_num_heads": int64(inner), "kv_num_heads": int64(inner), "update_rule": "gated", "scale": float32(1)}
	scan := b.node(graph.Microsoft, "LinearAttention", "scan", attrs, 2, query, key, b.op("Mul", "input_step", nil, dt, u), before, decay)
	b.g.Values[scan[1]].Name = fmt.Sprintf("present_states.%d.ssm", l)
	s := b.op("Add", "skip", nil, scan[0], b.op("Mul", "direct", nil, u, d))
	z := b.op("Mul", "gate", nil, parts[1], b.op("Sigmoid", "gate_sigmoid", nil, parts[1]))
	y = b.linear(at+"ssm_out", b.op("Mul", "gated", nil, s, z), b.width, inner)
	b.language.StateElements += int64(inner) * int64(kernel-1+state)
	return y, []int{out[1], scan[1]}, b.err
}
