package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/attention"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Inputs of GroupQueryAttention.
const (
	gqQuery = iota
	gqKey
	gqValue
	gqPastK
	gqPastV
	gqLens  // keys of each batch row, less one
	gqTotal // longest of them
	gqCos
	gqSin
	gqPositions
	gqBias
	gqSink
	gqKScale // the first of those that are not supported
)

// Outputs of GroupQueryAttention.
const (
	gqPresentK = 1
	gqPresentV = 2
	gqScores   = 3
)

// Values of the attribute qk_output of GroupQueryAttention.
const (
	gqScoresNone = iota
	gqScoresRaw  // before the softmax
	gqScoresSoftmax
)

// groupQuery is the geometry of GroupQueryAttention: the cache may be a buffer longer than its
// valid part.
type groupQuery struct {
	batch, rows, heads, kvHeads, size int
	past, present                     int // rows of the caches
	packed                            bool
	window                            int
	scale                             float64
	rotary                            *attention.Rotary

	// Of a run: the longest row's keys, the past keys of each row, positions of new rows, and
	// scores of one more key.
	longest       int
	first, places []int
	sink          *tensor.Tensor
	scores        *tensor.Tensor // the output for them, nil if it is not requested
}

func newGroupQuery(c *op.Call) (*groupQuery, error) {
	for _, i := range []int{gqQuery, gqLens, gqTotal} {
		if !c.Has(i) {
			return nil, fmt.Errorf("input %d is missing", i)
		}
	}
	if err := supportsGroupQuery(c); err != nil {
		return nil, err
	}
	q, a := c.In[gqQuery].Shape, c.Node.Attrs
	t := &groupQuery{heads: a.Int("num_heads", 0), kvHeads: a.Int("kv_num_heads", 0), window: a.Int("local_window_size", -1), packed: !c.Has(gqKey)}
	if len(q) != 3 || t.heads < 1 || t.kvHeads < 1 || t.heads%t.kvHeads != 0 {
		return nil, fmt.Errorf("query %s with %d and %d heads", tensor.FormatShape(q), t.heads, t.kvHeads)
	}
	t.batch, t.rows = q[0], q[1]
	n := t.heads
	if t.packed {
		n += 2 * t.kvHeads
	}
	if q[2]%n != 0 || c.In[gqLens].Len() != t.batch {
		return nil, fmt.Errorf("query %s with %d heads, lengths %s", tensor.FormatShape(q), n, tensor.FormatShape(c.In[gqLens].Shape))
	}
	t.size = q[2] / n
	if want := []int{t.batch, t.rows, t.kvHeads * t.size}; !t.packed && (!slices.Equal(c.In[gqKey].Shape, want) || !c.Has(gqValue) || !slices.Equal(c.In[gqValue].Shape, want)) {
		return nil, fmt.Errorf("key and value for query %s, want %s", tensor.FormatShape(q), tensor.FormatShape(want))
	}
	if p := c.Input(gqPastK); p != nil {
		if v := c.Input(gqPastV); p.Rank() != 4 || v == nil || !slices.Equal(p.Shape, v.Shape) || !slices.Equal(p.Shape, []int{t.batch, t.kvHeads, p.Shape[2], t.size}) {
			return nil, fmt.Errorf("past key %s", tensor.FormatShape(p.Shape))
		}
		t.past = p.Shape[2]
	}
	t.scale = 1 / math.Sqrt(float64(t.size))
	if s := a.Float("scale", 0); s != 0 {
		t.scale = float64(s)
	}
	return t, t.readRotary(c)
}

// supportsGroupQuery fails if the node has inputs or attributes that would be ignored.
func supportsGroupQuery(c *op.Call) error {
	if err := leavesOut(c, gqKScale); err != nil {
		return err
	}
	a := c.Node.Attrs
	for _, name := range []string{"k_quant_type", "v_quant_type"} {
		if s := a.Str(name, "NONE"); s != "NONE" {
			return op.Unsupported("%s %q", name, s)
		}
	}
	for _, name := range []string{"kv_cache_bit_width", "sliding_window_cache"} {
		if n := a.Int(name, 0); n != 0 {
			return op.Unsupported("%s %d", name, n)
		}
	}
	if !a.Bool("causal", true) {
		return op.Unsupported("causal 0")
	}
	switch n := a.Int("qk_output", gqScoresNone); {
	case n < gqScoresNone || n > gqScoresSoftmax:
		return fmt.Errorf("qk_output %d, expected 0, 1 or 2", n)
	case n == gqScoresNone && c.Wants(gqScores):
		return fmt.Errorf("output %d is requested, but qk_output is 0: expected 1 (scores before softmax) or 2", gqScores)
	}
	return nil
}

func (t *groupQuery) readRotary(c *op.Call) error {
	if !c.Node.Attrs.Bool("do_rotary", false) {
		return nil
	}
	cos, sin := c.Input(gqCos), c.Input(gqSin)
	if cos == nil || sin == nil || cos.Rank() != 2 || !slices.Equal(cos.Shape, sin.Shape) || 2*cos.Shape[1] > t.size {
		return fmt.Errorf("rotary caches do not fit heads of %d", t.size)
	}
	t.rotary = &attention.Rotary{Size: t.size, Dim: 2 * cos.Shape[1], Interleaved: c.Node.Attrs.Bool("rotary_interleaved", false)}
	return nil
}

func inferGroupQuery(c *op.Call) error {
	t, err := newGroupQuery(c)
	if err != nil {
		return err
	}
	total, err := op.Ints(c.In[gqTotal])
	if err != nil {
		return err
	}
	if len(total) != 1 || total[0] < 0 {
		return fmt.Errorf("total_sequence_length %v", total)
	}
	kind := c.In[gqQuery].Type
	cache := []int{t.batch, t.kvHeads, max(total[0], t.past), t.size}
	c.SetOut(0, kind, []int{t.batch, t.rows, t.heads * t.size})
	c.SetOut(gqPresentK, kind, cache)
	c.SetOut(gqPresentV, kind, slices.Clone(cache))
	c.SetOut(gqScores, kind, []int{t.batch, t.heads, t.rows, total[0]})
	return nil
}

func prepareGroupQuery[T tensor.Real](c *op.Call) (op.Run, error) {
	t := op.Must(newGroupQuery(c))
	var turned []T
	if t.rotary != nil {
		turned = op.ScratchOf[T](c, t.batch*t.rows*t.heads*t.size)
	}
	var spare [2]*tensor.Tensor // where the caches are not wanted
	t.first, t.places = make([]int, t.batch), make([]int, t.batch*t.rows)
	a, err := groupAttend[T](c, t)
	if err != nil {
		return nil, err
	}
	traceGroup(c, t, a)
	angles := &groupAngles[T]{t: t}
	turn := angles.turn
	return func(c *op.Call) error {
		if err := t.bind(c); err != nil {
			return err
		}
		q, k, v := groupQueryViews[T](c, t)
		cache := attention.Cache[T]{Batch: t.batch, Heads: t.kvHeads, Size: t.size, Past: t.past, Fresh: t.rows, Total: t.present, First: t.first}
		var to [2]*tensor.Tensor
		for i := range to {
			if to[i], err = groupCache(c, i, t.batch*t.kvHeads*t.present*t.size, &spare[i]); err != nil {
				return err
			}
		}
		v = cache.Fill(c.Pool, c.Input(gqPastV), v, to[1])
		if t.rotary != nil {
			angles.cos, angles.sin = tensor.Of[T](c.In[gqCos]), tensor.Of[T](c.In[gqSin])
			angles.from, angles.to = q, attention.PackedHeads(turned, t.rows, t.heads, t.size)
			workers.Each(c.Pool, t.batch*t.rows, max(1, 1<<12/max(1, t.heads*t.size)), angles)
			q, cache.Make = angles.to, turn
		}
		k = cache.Fill(c.Pool, c.Input(gqPastK), k, to[0])
		if err := bindGroupBias(c, t, a); err != nil {
			return err
		}
		a.Total = t.present
		a.Run(c.Pool, q, k, v, attention.PackedHeads(tensor.Of[T](c.Out[0]), t.rows, t.heads, t.size))
		return nil
	}, nil
}

// bind reads the lengths of a run.
func (t *groupQuery) bind(c *op.Call) error {
	lens := c.In[gqLens]
	if c.Wants(gqScores) {
		t.scores = c.Out[gqScores]
	}
	t.longest = int(tensor.At(c.In[gqTotal], 0))
	t.present = max(t.longest, t.past)
	for b := range lens.Len() {
		l := int(tensor.At(lens, b))
		if t.first[b] = 0; t.rows != t.longest {
			t.first[b] = l + 1 - t.rows
		}
		if t.first[b] < 0 || t.first[b] > t.past || t.first[b]+t.rows > t.present {
			return fmt.Errorf("%d keys with %d new ones in a cache of %d", l+1, t.rows, t.present)
		}
	}
	if t.rotary == nil {
		return nil
	}
	given := c.Input(gqPositions)
	for i := range t.places {
		p := t.first[i/t.rows] + i%t.rows
		if given != nil && given.Len() == len(t.places) {
			p = int(tensor.At(given, i))
		}
		if t.places[i] = p; p < 0 || p >= c.In[gqCos].Shape[0] {
			return fmt.Errorf("position %d of %d", p, c.In[gqCos].Shape[0])
		}
	}
	return nil
}

// groupCache returns the cache of keys (0) or values (1), of n elements: an output or, if that is
// not requested, spare.
func groupCache(c *op.Call, i, n int, spare **tensor.Tensor) (*tensor.Tensor, error) {
	if c.Wants(1 + i) {
		if to := c.Out[1+i]; to.Len() == n {
			return to, nil
		}
		return nil, fmt.Errorf("caches of %s, want %d elements", tensor.FormatShape(c.Out[1+i].Shape), n)
	}
	kind := c.In[gqQuery].Type
	if p := c.Input(gqPastK + i); p != nil {
		kind = p.Type
	}
	if *spare == nil || (*spare).Len() < n {
		if err := c.AffordTensor(kind, []int{n}); err != nil {
			return nil, err
		}
		*spare = tensor.New(kind, n)
	}
	return *spare, nil
}

func groupQueryViews[T tensor.Real](c *op.Call, t *groupQuery) (q, k, v attention.Heads[T]) {
	x := tensor.Of[T](c.In[gqQuery])
	if t.packed {
		row := (t.heads + 2*t.kvHeads) * t.size
		part := func(head int) attention.Heads[T] {
			return attention.Heads[T]{Data: x[head*t.size:], Batch: t.rows * row, Head: t.size, Row: row}
		}
		return part(0), part(t.heads), part(t.heads + t.kvHeads)
	}
	return attention.PackedHeads(x, t.rows, t.heads, t.size), attention.PackedHeads(tensor.Of[T](c.In[gqKey]), t.rows, t.kvHeads, t.size),
		attention.PackedHeads(tensor.Of[T](c.In[gqValue]), t.rows, t.kvHeads, t.size)
}

// groupAngles rotates rows by the angles of their positions.
type groupAngles[T tensor.Real] struct {
	t        *groupQuery
	cos, sin []T
	from, to attention.Heads[T] // of the queries
}

// turn rotates a row of a key.
func (q *groupAngles[T]) turn(dst, src []T, b, _, r int) {
	n := q.t.rotary.Dim / 2
	at := q.t.places[b*q.t.rows+r] * n
	attention.Turn(q.t.rotary, dst, src, q.cos[at:][:n], q.sin[at:][:n])
}

// Piece rotates queries lo to hi, of all heads.
func (q *groupAngles[T]) Piece(lo, hi int) {
	t := q.t
	for i := lo; i < hi; i++ {
		for h := range t.heads {
			q.turn(q.to.At(i/t.rows, h, i%t.rows, t.size), q.from.At(i/t.rows, h, i%t.rows, t.size), i/t.rows, h, i%t.rows)
		}
	}
}

// groupAttend lets query row i see keys up to its own position.
func groupAttend[T tensor.Real](c *op.Call, t *groupQuery) (*attention.Attend[T], error) {
	a := &attention.Attend[T]{
		Batch: t.batch, Heads: t.heads, KVHeads: t.kvHeads, Rows: t.rows, Size: t.size, VSize: t.size,
		Scale: t.scale, Softcap: float64(c.Node.Attrs.Float("softcap", 0)), Span: t.span, Outside: T(math.Inf(-1)),
	}
	if sink := c.Input(gqSink); sink != nil {
		if sink.Len() != t.heads {
			return nil, fmt.Errorf("head_sink %s for %d heads", tensor.FormatShape(sink.Shape), t.heads)
		}
		a.Sink = func(h int) float64 { return tensor.At(t.sink, h) }
	} else if c.Node.Attrs.Int("smooth_softmax", 0) == 1 {
		a.Sink = func(int) float64 { return 0 }
	}
	return a, nil
}

// traceGroup lets the attention copy its scores to the output for them. Those of keys that a row
// does not see are 0.
func traceGroup[T tensor.Real](c *op.Call, t *groupQuery, a *attention.Attend[T]) {
	if !c.Wants(gqScores) {
		return
	}
	a.Stage = 2
	if c.Node.Attrs.Int("qk_output", gqScoresNone) == gqScoresSoftmax {
		a.Stage = 3
	}
	a.Trace = func(b, h, i int, scores []T) {
		row := tensor.Of[T](t.scores)[((b*t.heads+h)*t.rows+i)*t.longest:][:t.longest]
		from, end := t.span(b, i)
		clear(row)
		copy(row[from:end], scores[from:])
	}
}

// span returns the range of keys that a row may see.
func (t *groupQuery) span(b, i int) (from, to int) {
	to = t.first[b] + i + 1
	if t.window >= 0 {
		from = max(0, to-t.window)
	}
	return from, to
}

// bindGroupBias reads the additive bias of a run.
func bindGroupBias[T tensor.Real](c *op.Call, t *groupQuery, a *attention.Attend[T]) error {
	t.sink = c.Input(gqSink)
	add := c.Input(gqBias)
	if add == nil {
		return nil
	}
	s := add.Shape
	if len(s) != 4 || s[3] < 1 || s[2] != t.rows && s[2] != 1 || s[0] != 1 && s[0] != t.batch || s[1] != 1 && s[1] != t.heads {
		return fmt.Errorf("attention_bias %s", tensor.FormatShape(s))
	}
	for _, past := range t.first {
		if past+t.rows > s[3] {
			return fmt.Errorf("attention_bias %s for %d keys", tensor.FormatShape(s), past+t.rows)
		}
	}
	st := matmul.BroadcastStrides(s, 4)
	a.Added[0] = attention.Added[T]{Data: tensor.Of[T](add), Batch: st[0], Head: st[1], Row: st[2], Key: st[3]}
	return nil
}

// QAttention: 8-bit x [B,S,I], 8-bit weights [I,3·hidden], float bias, x_scale, weight_scale,
// mask_index, x_zero, weight_zero, past. Query, key and value are floats.

func newQuantAttention(c *op.Call) (*fusedAttention, error) {
	t, err := newFusedAttention(c)
	if err != nil {
		return nil, err
	}
	if c.In[2].Type != tensor.Float32 {
		return nil, op.Unsupported("bias of %v", c.In[2].Type)
	}
	if n := c.In[4].Len(); n != 1 && n != c.In[1].Shape[1] || c.In[3].Len() != 1 {
		return nil, fmt.Errorf("scales %s and %s", tensor.FormatShape(c.In[3].Shape), tensor.FormatShape(c.In[4].Shape))
	}
	t.outputs(c, c.In[2].Type)
	return t, nil
}

func prepareQuantAttention(c *op.Call) (op.Run, error) {
	t := op.Must(newQuantAttention(c))
	product, err := matmul.NewIntMatMul(c, 0, 6, 1, 7)
	if err != nil {
		return nil, err
	}
	n := 2*t.hidden + t.vhidden
	sums, factors := op.ScratchOf[int32](c, t.batch*t.rows*n), op.ScratchOf[float32](c, n)
	return runFusedAttention(c, t, func(c *op.Call, qkv []float32) {
		product.Sums(c, sums)
		x, w, bias := tensor.Single[float32](c.In[3]), tensor.Of[float32](c.In[4]), elem.Elements[float32](c, 2)
		for j := range factors {
			factors[j] = x * w[min(j, len(w)-1)]
		}
		for i := range t.batch * t.rows {
			for j, f := range factors {
				qkv[i*n+j] = float32(sums[i*n+j])*f + bias[j]
			}
		}
	})
}
