package gguf

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// heads has the sizes of an attention layer.
type heads struct{ query, kv, size int }

func (b *builder) heads(layer int) (h heads, err error) {
	if h.query, err = b.perLayer(b.f, "attention.head_count", layer, 0); err != nil {
		return h, err
	}
	if h.kv, err = b.perLayer(b.f, "attention.head_count_kv", layer, float64(h.query)); err != nil {
		return h, err
	}
	if h.size, err = b.perLayer(b.f, "attention.key_length", layer, float64(b.width/h.query)); err != nil {
		return h, err
	}
	v, err := b.perLayer(b.f, "attention.value_length", layer, float64(h.size))
	switch {
	case err != nil:
		return h, err
	case v != h.size:
		return h, fmt.Errorf("heads of %d for keys and %d for values are not supported", h.size, v)
	case h.query%h.kv != 0:
		return h, fmt.Errorf("layer %d: %d heads cannot share %d heads of keys", layer, h.query, h.kv)
	}
	return h, nil
}

// layer adds a layer and returns its output and its caches or states.
func (b *builder) layer(l, x, dim int) (y int, caches []int, err error) {
	at := fmt.Sprintf("blk.%d.", l)
	b.scope = fmt.Sprintf("blk.%d/attention", l)
	if b.recurrent {
		b.scope = fmt.Sprintf("blk.%d/state_space", l)
		y, caches, err = b.mamba(l, at, x)
		return b.join("", x, y), caches, err
	}
	mix, err := b.mixture(l)
	if err != nil {
		return 0, nil, err
	}
	var a int
	if b.latentKV {
		a, caches, err = b.mla(l, at, x)
	} else {
		var h heads
		if h, err = b.heads(l); err == nil {
			a, caches = b.attention(l, at, x, h, dim)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	post, before := at+"post_attention_norm", at+"ffn_norm"
	if b.mlpNorm != "" {
		post, before = "", at+b.mlpNorm
	}
	x = b.join(post, x, a)
	b.scope = fmt.Sprintf("blk.%d/mlp", l)
	if b.err != nil {
		return 0, nil, b.err
	}
	n := b.norm(before, x, b.width)
	if mix != nil {
		y = b.moe(at, mix, n)
	} else {
		y = b.mlp(l, at, n)
	}
	return b.join(at+"post_ffw_norm", x, y), caches, b.err
}

func (b *builder) key(key string) string { return b.network.name + "." + key }

// join adds the result of a part to its input, after a norm if the file has one.
func (b *builder) join(norm string, x, part int) int {
	if b.err != nil {
		return -1
	}
	if norm != "" && b.f.Tensor(norm+".weight") != nil {
		part = b.norm(norm, part, b.width)
	}
	if b.residual != 0 {
		part = b.op("Mul", "residual_scale", nil, part, b.float("residual_factor", b.residual))
	}
	return b.op("Add", "residual", nil, x, part)
}

// split divides the last dimension.
func (b *builder) split(name string, x int, sizes ...int64) []int {
	return b.node(graph.ONNX, "Split", name, graph.Attrs{"axis": int64(-1)}, len(sizes), x, b.ints(name+"_sizes", sizes...))
}

func (b *builder) attention(l int, at string, x int, h heads, dim int) (y int, kv []int) {
	n := b.norm(at+"attn_norm", x, b.width)
	wide, narrow := h.query*h.size, h.kv*h.size
	var q, k, v int
	if b.f.Tensor(at+"attn_qkv.weight") != nil {
		if all := b.linear(at+"attn_qkv", n, wide+2*narrow, b.width); b.err == nil {
			parts := b.split("qkv", all, int64(wide), int64(narrow), int64(narrow))
			q, k, v = parts[0], parts[1], parts[2]
		}
	} else {
		q, k, v = b.linear(at+"attn_q", n, wide, b.width), b.linear(at+"attn_k", n, narrow, b.width), b.linear(at+"attn_v", n, narrow, b.width)
	}
	if b.err != nil {
		return -1, kv
	}
	attrs := graph.Attrs{"num_heads": int64(h.query), "kv_num_heads": int64(h.kv), "scale": b.scoreScale(h)}
	cos, sin := b.cos, b.sin
	if b.window > 0 && b.architecture.window != nil && b.architecture.window(l) {
		attrs["local_window_size"] = int64(b.window)
		cos, sin = b.localCos, b.localSin
	}
	if b.softcap > 0 {
		attrs["softcap"] = b.softcap
	}
	q = b.rotate("q", at+"attn_q_norm", q, h.query, h.size, dim, cos, sin)
	k = b.rotate("k", at+"attn_k_norm", k, h.kv, h.size, dim, cos, sin)
	past := [2]int{}
	for i, kind := range []string{"key", "value"} {
		past[i] = b.input(fmt.Sprintf("past_key_values.%d.%s", l, kind), tensor.Float32, "batch_size", h.kv, "past_sequence_length", h.size)
	}
	in := []int{q, k, v, past[0], past[1], b.lens, b.total}
	if sinks := b.vector(b.tensor(at+"attn_sinks.weight", h.query)); sinks >= 0 {
		in = append(in, -1, -1, -1, -1, sinks)
	}
	out := b.node(graph.Microsoft, "GroupQueryAttention", "attend", attrs, 3, in...)
	for i, kind := range []string{"key", "value"} {
		kv = append(kv, out[1+i])
		b.g.Values[kv[i]].Name = fmt.Sprintf("present.%d.%s", l, kind)
	}
	return b.linear(at+"attn_output", out[0], b.width, wide), kv
}

func (b *builder) scoreScale(h heads) float32 {
	switch {
	case b.attentionScale != 0:
		return b.attentionScale
	case b.wide > 0 && b.layers == b.wide:
		return float32(1 / math.Sqrt(float64(b.width)/float64(h.query)))
	}
	return float32(1 / math.Sqrt(float64(h.size)))
}

// rotate adds positions to queries or keys, after a norm of each head if the file has one.
func (b *builder) rotate(name, norm string, x, heads, size, dim, cos, sin int) int {
	if b.f.Tensor(norm+".weight") != nil {
		x = b.op("Reshape", name+"_heads", nil, x, b.ints(name+"_split", 0, 0, int64(heads), int64(size)))
		x = b.norm(norm, x, size)
		x = b.op("Reshape", name+"_rows", nil, x, b.ints(name+"_joined", 0, 0, int64(heads*size)))
	}
	attrs := graph.Attrs{"num_heads": int64(heads)}
	if b.interleaved {
		attrs["interleaved"] = int64(1)
	}
	if dim != size {
		attrs["rotary_embedding_dim"] = int64(dim)
	}
	return b.op("RotaryEmbedding", name+"_rotary", attrs, x, cos, sin)
}

func (b *builder) mlp(l int, at string, n int) int {
	wide, err := b.perLayer(b.f, "feed_forward_length", l, 0)
	if err != nil {
		b.err = err
		return -1
	}
	var gate, up int
	if b.f.Tensor(at+"ffn_gate.weight") == nil { // both in one matrix
		both := b.linear(at+"ffn_up", n, 2*wide, b.width)
		if b.err != nil {
			return -1
		}
		parts := b.split("halves", both, int64(wide), int64(wide))
		gate, up = parts[0], parts[1]
	} else {
		gate, up = b.linear(at+"ffn_gate", n, wide, b.width), b.linear(at+"ffn_up", n, wide, b.width)
	}
	if b.err != nil {
		return -1
	}
	return b.linear(at+"ffn_down", b.gated(gate, up), b.width, wide)
}

// head adds the logits of the last token.
func (b *builder) head(x int) int {
	x = b.op("Gather", "last_token", graph.Attrs{"axis": int64(1)}, x, b.ints("last_index", -1))
	x = b.norm("output_norm", x, b.width)
	table := b.f.Tensor("output.weight")
	if table == nil {
		table = b.f.Tensor(tokens)
	}
	b.tensor(table.Name, b.vocab, b.width)
	bias := b.vector(b.tensor("output.bias", b.vocab))
	if b.err != nil {
		return -1
	}
	x = b.product("output", table, bias, x)
	if b.logits != 0 {
		x = b.op("Mul", "logit_scale", nil, x, b.float("logit_factor", 1/b.logits))
	}
	if b.lastcap > 0 {
		limit := b.float("cap", b.lastcap)
		x = b.op("Mul", "capped", nil, b.op("Tanh", "tanh", nil, b.op("Div", "by_cap", nil, x, limit)), limit)
	}
	b.g.Values[x].Name = "logits"
	return x
}

// finish checks that the graph reads the whole file.
func (b *builder) finish() error {
	if b.err != nil {
		return b.err
	}
	b.describe()
	var unread []string
	for _, t := range b.f.Tensors {
		if !b.used[t.Name] {
			unread = append(unread, t.Name)
		}
	}
	slices.Sort(unread)
	const named = 3
	if n := len(unread); n > 0 {
		list := strings.Join(unread[:min(n, named)], ", ")
		if n > named {
			list += fmt.Sprintf(" and %d more", n-named)
		}
		b.warnings = append(b.warnings, fmt.Sprintf("The graph does not read %d of %d tensors: %s. What they compute is missing from all figures.", n, len(b.f.Tensors), list))
	}
	if n := b.f.Float(b.key("expert_group_count"), 0); n > 1 {
		b.warnings = append(b.warnings, fmt.Sprintf("The %v groups of experts are not applied: a token may use other experts, speed does not change.", n))
	}
	if s := b.f.Text(b.key("rope.scaling.type")); s != "" && s != "none" && s != "linear" {
		b.warnings = append(b.warnings, fmt.Sprintf("Rotary scaling of type %s is not applied: outputs differ for long contexts, speed does not.", s))
	}
	return nil
}
