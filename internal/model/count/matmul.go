package count

import (
	"strings"

	"github.com/opmeter/opmeter/internal/model/graph"
)

// matmul counts a matrix multiplication with inner dimension k: k multiply-accumulates per output
// element.
func (c *call) matmul(k int64, extra int64) amount {
	n := c.nout(0)
	macs := c.mul(n, k)
	return product(macs, macs, extra)
}

func (c *call) liteFullyConnected() amount {
	n := c.nout(0)
	return c.matmul(c.dim(c.in(1), -1), c.biased(2, n)+c.fused(n))
}

func (c *call) liteBatchMatMul() amount {
	k := -1
	if c.n.Attrs.Bool("adj_x", false) {
		k = -2
	}
	return c.matmul(c.dim(c.in(0), k), 0)
}

// inner is the inner dimension of a matrix multiplication whose left operand is input i.
func (c *call) inner(i int) int64 { return c.dim(c.in(i), -1) }

func (c *call) gemm() amount {
	k := -1
	if c.n.Attrs.Bool("transA", false) {
		k = -2
	}
	n := c.nout(0)
	return c.matmul(c.dim(c.in(0), k), c.biased(2, n)+c.msActivation(n))
}

func (c *call) fusedMatMul() amount {
	k := -1
	if c.n.Attrs.Bool("transA", false) {
		k = -2
	}
	return c.matmul(c.dim(c.in(0), k), 0)
}

// einsum multiplies over the space of all labels of the equation.
func (c *call) einsum() amount {
	eq := strings.ReplaceAll(c.n.Attrs.Str("equation", ""), " ", "")
	left, _, _ := strings.Cut(eq, "->")
	terms := strings.Split(left, ",")
	if eq == "" || len(terms) != len(c.ins) {
		c.bad = true
		return amount{}
	}
	size := map[string]int64{}
	for i, t := range terms {
		s := c.in(i)
		labels := strings.Count(t, "") - 1
		dots := strings.Index(t, "...")
		if dots >= 0 {
			labels -= 3
		}
		at := 0
		for k := 0; k < len(t) && !c.bad; {
			if k == dots {
				for e := range len(s) - labels {
					// Ellipses align at their last dimension.
					name := "..." + string(rune('0'+len(s)-labels-e))
					size[name] = max(size[name], c.dim(s, at))
					at++
				}
				k += 3
				continue
			}
			size[t[k:k+1]] = max(size[t[k:k+1]], c.dim(s, at))
			at++
			k++
		}
		if at != len(s) {
			c.bad = true
		}
	}
	space := int64(1)
	for _, d := range size {
		space = c.mul(space, d)
	}
	if len(terms) == 1 { // a sum over labels that are not in the result
		if space == c.nout(0) {
			return opsOnly(0)
		}
		return opsOnly(space)
	}
	macs := c.mul(space, int64(len(terms)-1))
	return product(macs, macs, 0)
}

// dotGeneral is StableHLO's dot: every output element runs over the contracted dimensions.
func (c *call) dotGeneral() amount {
	x := c.in(0)
	k := int64(1)
	for _, d := range c.n.Attrs.Ints("lhs_contracting_dimensions") {
		k = c.mul(k, c.dim(x, d))
	}
	return c.matmul(k, 0)
}

// hloConv is StableHLO's convolution: every output element runs over the kernel
// of one output feature.
func (c *call) hloConv() amount {
	w := c.in(1)
	features := c.dim(w, c.n.Attrs.Int("kernel_output_feature_dimension", len(w)-1))
	if c.bad || features == 0 {
		c.bad = true
		return amount{}
	}
	macs := c.mul(c.nout(0), c.nin(1)/features)
	return product(macs, unknown, 0)
}

// attention counts softmax(q k' scale + mask) v for batch b, query heads h,
// lengths sq and sk, and head sizes dk and dv: both products, and for each score
// the scale, the mask where there is one, and softmax.
func (c *call) attention(b, h, sq, sk, dk, dv int64, masked bool) amount {
	scores := c.mul(b, h, sq, sk)
	macs := c.mul(scores, dk+dv)
	per := int64(softmaxOps + 1)
	if masked {
		per++
	}
	return product(macs, macs, c.mul(scores, per))
}

// onnxAttention is Attention of the default domain: Q, K, V of three or four
// dimensions, a mask, and past keys and values.
func (c *call) onnxAttention() amount {
	q, k, v := c.in(0), c.in(1), c.in(2)
	if !c.rank(q, 3) || !c.rank(k, 3) || !c.rank(v, 3) {
		return amount{}
	}
	var b, h, sq, sk, dk, dv int64
	if len(q) == 4 {
		b, h, sq, sk, dk, dv = c.dim(q, 0), c.dim(q, 1), c.dim(q, 2), c.dim(k, 2), c.dim(q, 3), c.dim(v, 3)
	} else {
		h = c.attr("q_num_heads", 0)
		kv := c.attr("kv_num_heads", int(h))
		if h == 0 || kv == 0 {
			c.bad = true
			return amount{}
		}
		b, sq, sk, dk, dv = c.dim(q, 0), c.dim(q, 1), c.dim(k, 1), c.dim(q, 2)/h, c.dim(v, 2)/kv
	}
	if c.has(4) {
		sk += c.dim(c.in(4), 2)
	}
	return c.attention(b, h, sq, sk, dk, dv, c.has(3))
}

// msAttention projects its input with one weight matrix (input, bias, mask, past)
// and attends.
func (c *call) msAttention() amount {
	x, w := c.in(0), c.in(1)
	h := c.attr("num_heads", 0)
	if !c.rank(x, 3) || !c.rank(w, 2) || h == 0 {
		c.bad = true
		return amount{}
	}
	b, s, three := c.dim(x, 0), c.dim(x, 1), c.dim(w, 1)
	dq, dv := three/3/h, three/3/h
	if sizes := c.n.Attrs.Ints("qkv_hidden_sizes"); len(sizes) == 3 {
		dq, dv = int64(sizes[0])/h, int64(sizes[2])/h
	}
	sk, mask, past, extra := s, 3, 4, int64(0)
	if c.n.Op == "QAttention" {
		mask, past, extra = 5, 8, c.mul(2, b, s, three)
	}
	if c.has(past) {
		sk += c.dim(c.in(past), 3)
	}
	a := c.attention(b, h, s, sk, dq, dv, c.has(mask))
	macs := c.mul(b, s, c.dim(x, 2), three)
	return product(macs+a.macs, macs+a.macs, a.ops-2*a.macs+c.biased(2, c.mul(b, s, three))+extra)
}

// msMultiHead counts attention: query, key, value; past keys and values are at 6 and 7 if the
// runtime supplies them.
func (c *call) msMultiHead() amount {
	q := c.in(0)
	h := c.attr("num_heads", 0)
	if !c.rank(q, 3) || h == 0 || !c.has(1) || !c.has(2) {
		c.bad = true // packed forms have no rule
		return amount{}
	}
	k, v := c.in(1), c.in(2)
	if len(q) != 3 || len(k) < 3 || len(v) < 3 {
		c.bad = true
		return amount{}
	}
	var sk, dv int64
	if len(k) == 4 { // batch, heads, length, size
		sk, dv = c.dim(k, 2), c.dim(v, 3)
	} else {
		sk, dv = c.dim(k, 1), c.dim(v, 2)/h
	}
	if c.has(6) {
		sk += c.dim(c.in(6), 2)
	}
	return c.attention(c.dim(q, 0), h, c.dim(q, 1), sk, c.dim(q, 2)/h, dv, c.has(4) || c.has(5))
}

// msGroupQuery counts attention with fewer key than query heads: query, key, value, past key,
// past value, lengths, total length. The key length is that of the present key (output 1), or the
// total length in a longer buffer.
func (c *call) msGroupQuery() amount {
	q := c.in(0)
	h, kv := c.attr("num_heads", 0), c.attr("kv_num_heads", 0)
	if !c.rank(q, 3) || h == 0 || kv == 0 {
		c.bad = true
		return amount{}
	}
	d := c.dim(q, 2) / h
	if !c.has(1) { // query, key and value packed into one
		d = c.dim(q, 2) / (h + 2*kv)
	}
	sk := c.dim(q, 1)
	if p := shape(c.tensor(c.outs, 1)); len(p) == 4 {
		sk = int64(p[2])
	} else if c.has(3) {
		sk += c.dim(c.in(3), 2)
	}
	if total := c.ints(6); len(total) == 1 && total[0] > 0 {
		sk = min(sk, total[0])
	}
	a := c.attention(c.dim(q, 0), h, c.dim(q, 1), sk, d, d, false)
	if c.n.Attrs.Bool("do_rotary", false) {
		a.ops += c.mul(3, c.dim(q, 0), c.dim(q, 1), h+kv, d)
	}
	return a
}

// experts reports whether the operator is a mixture of experts whose operands from 2 on have a
// slice for each expert.
func (c *call) experts() bool {
	return c.n.Domain == graph.Microsoft && (c.n.Op == "MoE" || c.n.Op == "QMoE")
}

// choices is how many experts all rows choose together.
func (c *call) choices() int64 { return c.mul(c.nin(0)/max(1, c.inner(0)), c.attr("k", 1)) }

// mixture multiplies each row by the matrices of k experts: two, or three with a gate of its own.
func (c *call) mixture() amount {
	matrices := []int{2, 4, 6}
	if c.n.Op == "QMoE" {
		matrices = packedWeights["QMoE"].operands[:3]
	}
	if !c.has(matrices[0]) || !c.has(matrices[1]) {
		c.bad = true
		return amount{}
	}
	macs := int64(0)
	for _, i := range matrices {
		if !c.has(i) {
			continue
		}
		t := c.in(i)
		if !c.rank(t, 3) || c.dim(t, 0) < 1 {
			c.bad = true
			return amount{}
		}
		weights := c.mul(c.dim(t, 1), c.dim(t, 2))
		if bits := c.attr("expert_weight_bits", 4); c.n.Op == "QMoE" && bits >= 1 && bits <= 8 {
			weights = c.mul(weights, 8) / bits
		}
		macs += c.mul(c.choices(), weights)
	}
	return product(macs, macs, 0)
}

// linearAttention updates a Dk x Dv state per key head with every token, and reads it with every
// query head; the delta rule reads it once more before.
func (c *call) linearAttention() amount {
	q, v := c.in(0), c.in(2)
	h, kv := c.attr("q_num_heads", 0), c.attr("kv_num_heads", 0)
	if !c.rank(q, 3) || !c.rank(v, 3) || h == 0 || kv == 0 {
		c.bad = true
		return amount{}
	}
	state := c.mul(c.dim(q, 0), c.dim(q, 1), c.dim(q, 2)/h, c.dim(v, 2)/kv)
	macs := c.mul(state, h+kv)
	rule := c.n.Attrs.Str("update_rule", "gated_delta")
	if rule == "delta" || rule == "gated_delta" {
		macs += c.mul(state, kv)
	}
	extra := int64(0)
	if rule == "gated" || rule == "gated_delta" {
		extra = c.mul(state, kv)
	}
	return product(macs, macs, extra)
}
