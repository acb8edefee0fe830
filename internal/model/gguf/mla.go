package gguf

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// latent has the sizes of multi-head latent attention (MLA): keys and values of all heads come from
// one vector of rank elements, keys have rope more that are rotated.
type latent struct {
	heads, rank, rope int
	plain             int // elements of a head's key that are not rotated
	value             int
}

func (b *builder) latent(l int) (h latent, err error) {
	get := func(to *int, key string, def float64) {
		if err == nil {
			*to, err = b.perLayer(b.f, key, l, def)
		}
	}
	get(&h.heads, "attention.head_count", 0)
	get(&h.rank, "attention.kv_lora_rank", 0)
	get(&h.rope, "rope.dimension_count", 0)
	get(&h.plain, "attention.key_length_mla", b.f.Float(b.key("attention.key_length"), 0))
	get(&h.value, "attention.value_length_mla", b.f.Float(b.key("attention.value_length"), 0))
	if err == nil && (h.rope >= h.plain || h.rope%2 != 0) {
		err = fmt.Errorf("heads of %d with %d rotated elements, expected an even number of them below the whole", h.plain, h.rope)
	}
	h.plain -= h.rope
	return h, err
}

// mla adds latent attention and returns its output and its cache. Files have the projection to keys
// and values in two parts, which are applied to queries and results, or as one matrix, which is
// applied to the whole cache.
func (b *builder) mla(l int, at string, x int) (y int, caches []int, err error) {
	h, err := b.latent(l)
	if err != nil {
		return 0, nil, err
	}
	n := b.norm(at+"attn_norm", x, b.width)
	size := h.plain + h.rope
	q := n
	if a := b.f.Tensor(at + "attn_q_a.weight"); a != nil && len(a.Shape) == 2 {
		in := a.Shape[0]
		q = b.norm(at+"attn_q_a_norm", b.linear(at+"attn_q_a", n, in, b.width), in)
		q = b.linear(at+"attn_q_b", q, h.heads*size, in)
	} else {
		q = b.linear(at+"attn_q", q, h.heads*size, b.width)
	}
	kv := b.linear(at+"attn_kv_a_mqa", n, h.rank+h.rope, b.width)
	if b.err != nil {
		return 0, nil, b.err
	}
	parts := b.split("kv", kv, int64(h.rank), int64(h.rope))
	c := b.norm(at+"attn_kv_a_norm", parts[0], h.rank)
	kr := b.op("RotaryEmbedding", "k_rotary", b.turns(1), parts[1], b.cos, b.sin)

	q = b.op("Reshape", "q_heads", nil, q, b.ints("q_split", 0, 0, int64(h.heads), int64(size)))
	qs := b.split("q", q, int64(h.plain), int64(h.rope))
	qr := b.op("Reshape", "q_rope", nil, qs[1], b.ints("q_rope_rows", 0, 0, int64(h.heads*h.rope)))
	qr = b.op("RotaryEmbedding", "q_rotary", b.turns(h.heads), qr, b.cos, b.sin)
	qr = b.op("Reshape", "q_rope_heads", nil, qr, b.ints("q_rope_split", 0, 0, int64(h.heads), int64(h.rope)))

	past := b.input(fmt.Sprintf("past_key_values.%d.latent", l), tensor.Float32, "batch_size", "past_sequence_length", h.rank+h.rope)
	present := b.op("Concat", "cache", graph.Attrs{"axis": int64(1)}, past, b.op("Concat", "latent", graph.Attrs{"axis": int64(-1)}, c, kr))
	b.g.Values[present].Name = fmt.Sprintf("present.%d.latent", l)
	var out int
	if b.f.Tensor(at+"attn_kv_b.weight") == nil {
		out = b.absorbed(at, h, qs[0], qr, present)
	} else {
		out = b.expanded(at, h, qs[0], qr, present)
	}
	if b.err != nil {
		return 0, nil, b.err
	}
	out = b.op("Reshape", "rows", nil, out, b.ints("joined", 0, 0, int64(h.heads*h.value)))
	return b.linear(at+"attn_output", out, b.width, h.heads*h.value), []int{present}, b.err
}

// turns are the attributes of rotary positions of a number of heads.
func (b *builder) turns(heads int) graph.Attrs {
	a := graph.Attrs{"num_heads": int64(heads)}
	if b.interleaved {
		a["interleaved"] = int64(1)
	}
	return a
}

// headFirst moves the heads before the rows.
func (b *builder) headFirst(name string, x int) int {
	return b.op("Transpose", name, graph.Attrs{"perm": []int64{0, 2, 1, 3}}, x)
}

// attend adds attention [batch, heads, rows, size] and moves the heads back behind the rows.
func (b *builder) attend(h latent, q, k, v int) int {
	attrs := graph.Attrs{"scale": float32(1 / math.Sqrt(float64(h.plain+h.rope)))}
	if b.attentionScale != 0 {
		attrs["scale"] = b.attentionScale
	}
	return b.headFirst("to_rows", b.op("Attention", "attend", attrs, q, k, v, b.visible()))
}

// visible is the mask [batch, 1, rows, keys] by which a token sees keys up to its own position.
func (b *builder) visible() int {
	if b.mask < 0 {
		scope := b.scope
		b.scope = "lengths"
		keys := b.op("Range", "keys", nil, b.scalar("first", 0), b.size, b.scalar("step", 1))
		b.mask = b.op("LessOrEqual", "visible", nil, keys, b.op("Unsqueeze", "rows", nil, b.positions, b.ints("row_axes", 1, 3)))
		b.scope = scope
	}
	return b.mask
}

// absorbed projects queries and results: all heads attend to the cache itself.
func (b *builder) absorbed(at string, h latent, plain, rope, cache int) int {
	ids := make([]int64, h.heads)
	for i := range ids {
		ids[i] = int64(i)
	}
	all := b.ints("all_heads", ids...)
	q := b.experts(at+"attn_k_b", plain, all, h.heads, h.rank, h.plain)
	if b.err != nil {
		return -1
	}
	q = b.headFirst("queries", b.op("Concat", "query", graph.Attrs{"axis": int64(-1)}, q, rope))
	k := b.op("Unsqueeze", "keys", nil, cache, b.ints("head_axis", 1))
	v := b.op("Slice", "values", nil, k, b.ints("from", 0), b.ints("to", int64(h.rank)), b.ints("of", -1))
	return b.experts(at+"attn_v_b", b.attend(h, q, k, v), all, h.heads, h.value, h.rank)
}

// expanded projects the cache to the keys and values of each head.
func (b *builder) expanded(at string, h latent, plain, rope, cache int) int {
	q := b.headFirst("queries", b.op("Concat", "query", graph.Attrs{"axis": int64(-1)}, plain, rope))
	parts := b.split("cached", cache, int64(h.rank), int64(h.rope))
	kv := b.linear(at+"attn_kv_b", parts[0], h.heads*(h.plain+h.value), h.rank)
	if b.err != nil {
		return -1
	}
	kv = b.op("Reshape", "kv_heads", nil, kv, b.ints("kv_split", 0, 0, int64(h.heads), int64(h.plain+h.value)))
	halves := b.split("kv_parts", kv, int64(h.plain), int64(h.value))
	shape := b.op("Concat", "rope_shape", graph.Attrs{"axis": int64(0)}, b.op("Shape", "rope_rows", graph.Attrs{"start": int64(0), "end": int64(2)}, cache), b.ints("rope_heads", int64(h.heads), int64(h.rope)))
	kr := b.op("Expand", "rope_all", nil, b.op("Unsqueeze", "rope_one", nil, parts[1], b.ints("rope_axis", 2)), shape)
	k := b.headFirst("keys", b.op("Concat", "key", graph.Attrs{"axis": int64(-1)}, halves[0], kr))
	return b.attend(h, q, k, b.headFirst("values", halves[1]))
}
