package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/attention"
	"github.com/opmeter/opmeter/internal/onnxop/elem"
	"github.com/opmeter/opmeter/internal/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
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
)

// groupQuery is the geometry of GroupQueryAttention: the cache may be a buffer
// longer than what is valid in it.
type groupQuery struct {
	batch, rows, heads, kvHeads, size int
	past, present                     int // rows of the caches
	packed                            bool
	window                            int
	scale                             float64
	rotary                            *attention.Rotary

	// Of a run: the longest row's keys, the past ones of each row, and scores of one more key.
	longest int
	first   []int
	sink    *tensor.Tensor
}

func newGroupQuery(c *op.Call) (*groupQuery, error) {
	for _, i := range []int{gqQuery, gqLens, gqTotal} {
		if !c.Has(i) {
			return nil, fmt.Errorf("input %d is missing", i)
		}
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
	c.SetOut(1, kind, cache)
	c.SetOut(2, kind, slices.Clone(cache))
	return nil
}

func prepareGroupQuery[T tensor.Real](c *op.Call) (op.Run, error) {
	t, err := newGroupQuery(c)
	if err != nil {
		return nil, err
	}
	var turned []T
	if t.rotary != nil {
		turned = op.ScratchOf[T](c, t.batch*t.rows*t.heads*t.size)
	}
	var keys, values []T // where the caches are not wanted
	t.first = make([]int, t.batch)
	a, err := groupAttend[T](c, t)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		if err := t.bind(c); err != nil {
			return err
		}
		n := t.batch * t.kvHeads * t.present * t.size
		kc, vc := groupCache(c, 1, n, &keys), groupCache(c, 2, n, &values)
		if len(kc) != n || len(vc) != n {
			return fmt.Errorf("total_sequence_length %d does not fit the caches", t.longest)
		}
		q, k, v := groupQueryViews[T](c, t)
		kh, vh := attention.SplitHeads(kc, t.present, t.kvHeads, t.size), attention.SplitHeads(vc, t.present, t.kvHeads, t.size)
		grain := max(1, 1<<14/max(1, t.present*t.size))
		workers.Each(c.Pool, t.batch*t.kvHeads, grain, fillArgs[T]{t, elem.Elements[T](c, gqPastK), k, kh})
		workers.Each(c.Pool, t.batch*t.kvHeads, grain, fillArgs[T]{t, elem.Elements[T](c, gqPastV), v, vh})
		if t.rotary != nil {
			to := attention.PackedHeads(turned, t.rows, t.heads, t.size)
			if err := turnHeads(c, t, q, to, t.heads, false); err != nil {
				return err
			}
			if err := turnHeads(c, t, kh, kh, t.kvHeads, true); err != nil {
				return err
			}
			q = to
		}
		if err := bindGroupBias(c, t, a); err != nil {
			return err
		}
		a.Total = t.present
		a.Run(c.Pool, q, kh, vh, attention.PackedHeads(tensor.Of[T](c.Out[0]), t.rows, t.heads, t.size))
		return nil
	}, nil
}

// bind takes the lengths of a run.
func (t *groupQuery) bind(c *op.Call) error {
	lens, err := op.Ints(c.In[gqLens])
	if err != nil {
		return err
	}
	t.longest = int(tensor.At(c.In[gqTotal], 0))
	t.present = max(t.longest, t.past)
	for b, l := range lens {
		if t.first[b] = 0; t.rows != t.longest {
			t.first[b] = l + 1 - t.rows
		}
		if t.first[b] < 0 || t.first[b] > t.past || t.first[b]+t.rows > t.present {
			return fmt.Errorf("%d keys with %d new ones in a cache of %d", l+1, t.rows, t.present)
		}
	}
	return nil
}

// groupCache is a cache of n elements: an output or, if that is not wanted, spare.
func groupCache[T tensor.Real](c *op.Call, i, n int, spare *[]T) []T {
	if c.Wants(i) {
		return tensor.Of[T](c.Out[i])
	}
	*spare = elem.Grow(*spare, n)
	return *spare
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

// fillArgs is what a piece of filling a cache needs.
type fillArgs[T tensor.Real] struct {
	t         *groupQuery
	past      []T // nil for none
	fresh, to attention.Heads[T]
}

// Piece copies what is valid of the past of heads lo to hi, then the new rows; the rest is zero.
func (q fillArgs[T]) Piece(lo, hi int) {
	t := q.t
	for n := lo; n < hi; n++ {
		b, h, done := n/t.kvHeads, n%t.kvHeads, 0
		head := q.to.Data[n*t.present*t.size:][:t.present*t.size]
		if q.past != nil {
			done = copy(head, q.past[n*t.past*t.size:][:t.first[b]*t.size])
		}
		clear(head[done : t.first[b]*t.size])
		for r := range t.rows {
			copy(q.to.At(b, h, t.first[b]+r, t.size), q.fresh.At(b, h, r, t.size))
		}
		clear(head[(t.first[b]+t.rows)*t.size:])
	}
}

// turnHeads applies the rotary embedding to the new rows; inCache says that they
// lie behind the past.
func turnHeads[T tensor.Real](c *op.Call, t *groupQuery, from, to attention.Heads[T], heads int, inCache bool) error {
	cos, sin := tensor.Of[T](c.In[gqCos]), tensor.Of[T](c.In[gqSin])
	n := t.rotary.Dim / 2
	for b := range t.batch {
		for r := range t.rows {
			pos, row := t.first[b]+r, r
			if inCache {
				row = pos
			}
			if p := c.Input(gqPositions); p != nil && p.Len() == t.batch*t.rows {
				pos = int(tensor.At(p, b*t.rows+r))
			}
			if pos < 0 || pos >= c.In[gqCos].Shape[0] {
				return fmt.Errorf("position %d of %d", pos, c.In[gqCos].Shape[0])
			}
			for h := range heads {
				attention.Turn(t.rotary, to.At(b, h, row, t.size), from.At(b, h, row, t.size), cos[pos*n:][:n], sin[pos*n:][:n])
			}
		}
	}
	return nil
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

// span is the range of keys that a row may see.
func (t *groupQuery) span(b, i int) (from, to int) {
	to = t.first[b] + i + 1
	if t.window >= 0 {
		from = max(0, to-t.window)
	}
	return from, to
}

// bindGroupBias takes what a run adds to scores.
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
