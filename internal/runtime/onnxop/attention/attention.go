// Package attention implements ONNX's multi-head attention, rotary embeddings and other operators
// on sequences of tokens.
package attention

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	flex := elem.RealDef("FlexAttention", op.Needs(3, op.Infer(newFlex)), prepareFlexAttention[float32], prepareFlexAttention[float64])
	flex.Domain = "ai.onnx.preview"
	return []op.Def{
		elem.WithCaches(elem.RealDef("Attention", op.Needs(3, inferAttention), prepareAttention[float32], prepareAttention[float64]), prepareAttention[float32], [2]int{atPastK, 1}, [2]int{atPastV, 2}),
		flex,
		elem.RealDef("LinearAttention", op.Needs(3, InferLinearAttention), PrepareLinearAttention, nil),
		elem.RealDef("RotaryEmbedding", op.Needs(3, op.Infer(newRotary)), prepareRotary[float32], prepareRotary[float64]),
		{Name: "TensorScatter", Since: 24, Infer: op.Needs(2, inferTensorScatter), Prepare: prepareTensorScatter, Updates: [][2]int{{0, 0}}},
		elem.RealDef("CausalConvWithState", op.Needs(2, InferCausalConv), PrepareCausalConv[float32], nil),
	}
}

// Inputs of Attention.
const (
	atQ = iota
	atK
	atV
	atMask
	atPastK
	atPastV
	atNonpad
)

// attention is the checked geometry of an Attention node.
type attention struct {
	packed bool // 3-D inputs
	// of matrices: keys are [..., size, keys], 3-D inputs have no batch
	products                       bool
	batch, heads, kvHeads          int
	rows, past, fresh, size, vsize int
	causal                         bool
	left, right                    int // window, -1 unbounded
	scale, softcap                 float64
	mask                           []int // broadcast strides of the mask
	maskCols                       int
}

func newAttention(c *op.Call) (*attention, error) {
	q, k, v, a := c.In[atQ].Shape, c.In[atK].Shape, c.In[atV].Shape, c.Node.Attrs
	bad := fmt.Errorf("query %s, key %s, value %s", tensor.FormatShape(q), tensor.FormatShape(k), tensor.FormatShape(v))
	t := &attention{
		causal: a.Bool("is_causal", false), softcap: float64(a.Float("softcap", 0)),
		left: a.Int("left_window_size", -1), right: a.Int("right_window_size", -1),
	}
	// A plan's own attribute, which files cannot have.
	if t.products = a.Bool(op.AttrProducts, false); t.products {
		q, k, v = asMatrices(q), asMatrices(k), asMatrices(v)
		if len(k) == 4 {
			k = []int{k[0], k[1], k[3], k[2]}
		}
	}
	switch {
	case len(q) == 3 && len(k) == 3 && len(v) == 3:
		t.packed = true
		t.heads, t.kvHeads = a.Int("q_num_heads", 0), a.Int("kv_num_heads", 0)
		if t.heads < 1 || t.kvHeads < 1 || q[2]%t.heads != 0 || k[2]%t.kvHeads != 0 || v[2]%t.kvHeads != 0 {
			return nil, fmt.Errorf("%w with %d and %d heads", bad, t.heads, t.kvHeads)
		}
		t.batch, t.rows, t.size = q[0], q[1], q[2]/t.heads
		t.fresh, t.vsize = k[1], v[2]/t.kvHeads
		if k[0] != t.batch || v[0] != t.batch || v[1] != t.fresh || k[2]/t.kvHeads != t.size {
			return nil, bad
		}
	case len(q) == 4 && len(k) == 4 && len(v) == 4:
		t.batch, t.heads, t.rows, t.size = q[0], q[1], q[2], q[3]
		t.kvHeads, t.fresh, t.vsize = k[1], k[2], v[3]
		if k[0] != t.batch || v[0] != t.batch || v[1] != t.kvHeads || v[2] != t.fresh || k[3] != t.size {
			return nil, bad
		}
	default:
		return nil, bad
	}
	if t.kvHeads < 1 || t.heads%t.kvHeads != 0 {
		return nil, fmt.Errorf("%d query heads for %d key heads", t.heads, t.kvHeads)
	}
	t.scale = 1 / math.Sqrt(float64(t.size))
	if a.Has("scale") {
		t.scale = float64(a.Float("scale", 0))
	}
	if pk := c.Input(atPastK); pk != nil {
		pv := c.Input(atPastV)
		if pv == nil || pk.Rank() != 4 || pv.Rank() != 4 || pk.Shape[0] != t.batch || pk.Shape[1] != t.kvHeads ||
			pk.Shape[3] != t.size || pv.Shape[0] != t.batch || pv.Shape[1] != t.kvHeads || pv.Shape[2] != pk.Shape[2] || pv.Shape[3] != t.vsize {
			return nil, fmt.Errorf("past key %s does not fit %w", tensor.FormatShape(pk.Shape), bad)
		}
		t.past = pk.Shape[2]
	}
	if n := c.Input(atNonpad); n != nil && n.Len() != t.batch {
		return nil, fmt.Errorf("nonpad_kv_seqlen %s for batch %d", tensor.FormatShape(n.Shape), t.batch)
	}
	return t, t.checkMask(c.Input(atMask))
}

// asMatrices adds a batch axis before the axes of heads, rows and elements.
func asMatrices(shape []int) []int {
	if len(shape) == 3 {
		return append([]int{1}, shape...)
	}
	return shape
}

func (t *attention) total() int { return t.past + t.fresh }

func (t *attention) checkMask(m *tensor.Tensor) error {
	if m == nil {
		return nil
	}
	if m.Rank() == 0 || m.Rank() > 4 {
		return fmt.Errorf("mask %s", tensor.FormatShape(m.Shape))
	}
	t.mask = matmul.BroadcastStrides(m.Shape, 4)
	t.maskCols = m.Shape[m.Rank()-1]
	want := []int{t.batch, t.heads, t.rows, t.total()}
	for i, d := range m.Shape {
		w := want[4-m.Rank()+i]
		if d != 1 && d != w && (i != m.Rank()-1 || d > w) {
			return fmt.Errorf("mask %s for scores %s", tensor.FormatShape(m.Shape), tensor.FormatShape(want))
		}
	}
	if t.maskCols == 1 && t.total() > 1 {
		t.maskCols = t.total() // broadcast
	}
	return nil
}

func inferAttention(c *op.Call) error {
	t, err := newAttention(c)
	if err != nil {
		return err
	}
	y := []int{t.batch, t.heads, t.rows, t.vsize}
	if t.packed {
		y = []int{t.batch, t.rows, t.heads * t.vsize}
	}
	if t.products {
		y = y[4-c.In[atQ].Rank():]
	}
	q := c.In[atQ].Type
	c.SetOut(0, q, y)
	c.SetOut(1, c.In[atK].Type, []int{t.batch, t.kvHeads, t.total(), t.size})
	c.SetOut(2, c.In[atV].Type, []int{t.batch, t.kvHeads, t.total(), t.vsize})
	c.SetOut(3, q, []int{t.batch, t.heads, t.rows, t.total()})
	return nil
}

func prepareAttention[T tensor.Real](c *op.Call) (op.Run, error) {
	t := op.Must(newAttention(c))
	var joined [2]*tensor.Tensor
	for i, size := range []int{t.size, t.vsize} {
		if t.past > 0 && !c.Wants(1+i) {
			joined[i] = CacheWorkspace[T](c, c.In[atPastK+i], t.batch*t.kvHeads*t.total()*size)
		}
	}
	p := &places[T]{t: t}
	if m := c.Input(atMask); m != nil && !isAdded(m.Type) {
		p.mask = op.ScratchOf[T](c, m.Len())
	}
	a := Attend[T]{
		Batch: t.batch, Heads: t.heads, KVHeads: t.kvHeads, Rows: t.rows, Total: t.total(), Size: t.size, VSize: t.vsize,
		Scale: t.scale, Softcap: t.softcap, Stage: c.Node.Attrs.Int("qk_matmul_output_mode", 0), Outside: T(math.Inf(-1)),
		Products: t.products,
	}
	if c.Has(atNonpad) || t.causal || t.left >= 0 || t.right >= 0 || c.Has(atMask) && t.maskCols < t.total() {
		a.Span = p.span
	}
	var qk []T // of the run, which takes copies of scores
	if c.Wants(3) {
		a.Trace = func(b, h, i int, s []T) { copy(qk[((b*t.heads+h)*t.rows+i)*t.total():], s) }
	}
	return func(c *op.Call) error {
		var views [4]Heads[T]
		views[0] = ViewOf(tensor.Of[T](c.In[atQ]), t.packed, t.rows, t.heads, t.size)
		views[1] = ViewOf(tensor.Of[T](c.In[atK]), t.packed, t.fresh, t.kvHeads, t.size)
		if t.products {
			views[1].Row = t.fresh
		}
		views[2] = ViewOf(tensor.Of[T](c.In[atV]), t.packed, t.fresh, t.kvHeads, t.vsize)
		views[3] = ViewOf(tensor.Of[T](c.Out[0]), t.packed, t.rows, t.heads, t.vsize)
		for i, size := range [2]int{t.size, t.vsize} {
			views[1+i] = joinPast(c, t, i, size, views[1+i], joined[i])
		}
		var err error
		if a.Added[0], err = p.bind(c); err != nil {
			return err
		}
		if c.Wants(3) {
			qk = tensor.Of[T](c.Out[3])
		}
		a.Run(c.Pool, views[0], views[1], views[2], views[3])
		return nil
	}, nil
}

// ViewOf returns a view of an input or output in either layout.
func ViewOf[T tensor.Real](v []T, packed bool, rows, heads, size int) Heads[T] {
	if packed {
		return PackedHeads(v, rows, heads, size)
	}
	return SplitHeads(v, rows, heads, size)
}

// joinPast concatenates past and fresh keys or values (i = 0, 1), into the present output if
// requested, and returns the view to attend to.
func joinPast[T tensor.Real](c *op.Call, t *attention, i, size int, fresh Heads[T], spare *tensor.Tensor) Heads[T] {
	switch {
	case c.Wants(1 + i):
		spare = c.Out[1+i]
	case t.past == 0:
		return fresh
	}
	return Cache[T]{Batch: t.batch, Heads: t.kvHeads, Size: size, Past: t.past, Fresh: t.fresh, Total: t.total()}.Fill(c.Pool, c.Input(atPastK+i), fresh, spare)
}

// places determines the keys that rows may see: mask, causal limit, window and padding.
type places[T tensor.Real] struct {
	t     *attention
	valid []int // keys of each batch row, nil for all
	mask  []T   // what a mask of other numbers adds
}

// span returns the range of keys that a row may see by its position.
func (p *places[T]) span(b, i int) (from, to int) {
	t := p.t
	to = t.total()
	if t.mask != nil {
		to = min(to, t.maskCols)
	}
	offset := t.past
	if p.valid != nil {
		to = min(to, p.valid[b])
		if t.past == 0 {
			offset = p.valid[b] - t.rows
		}
	}
	if t.causal {
		to = min(to, i+offset+1)
	}
	if t.right >= 0 {
		to = min(to, i+offset+t.right+1)
	}
	if t.left >= 0 {
		from = max(0, i+offset-t.left)
	}
	return from, to
}

// isAdded reports whether a mask is added unchanged.
func isAdded(t tensor.Type) bool { return t == tensor.Float32 || t == tensor.Float64 }

// bind reads lengths and mask of a run.
func (p *places[T]) bind(c *op.Call) (Added[T], error) {
	p.valid = nil
	if n := c.Input(atNonpad); n != nil {
		var err error
		if p.valid, err = op.Ints(n); err != nil {
			return Added[T]{}, err
		}
	}
	m := c.Input(atMask)
	if m == nil {
		return Added[T]{}, nil
	}
	data := p.mask
	switch {
	case m.Type == tensor.Bool:
		workers.Each(c.Pool, m.Len(), pieceCopy, truths[T]{data, tensor.Of[uint8](m)})
	case !isAdded(m.Type):
		tensor.Read(data, m, 0)
	case m.Type != c.In[atQ].Type:
		return Added[T]{}, op.Unsupported("mask of %v", m.Type)
	default:
		data = tensor.Of[T](m)
	}
	s := p.t.mask
	return Added[T]{Data: data, Batch: s[0], Head: s[1], Row: s[2], Key: s[3]}, nil
}

// truths converts a boolean mask to the values to add.
type truths[T tensor.Real] struct {
	to   []T
	from []uint8
}

// Piece converts elements lo to hi.
func (q truths[T]) Piece(lo, hi int) {
	values := [2]T{T(math.Inf(-1)), 0}
	to := q.to[lo:hi]
	for j, v := range q.from[lo:hi] {
		to[j] = values[min(v, 1)]
	}
}

// Cache appends new keys or values to those of earlier runs, as [batch, heads, rows, size] in the
// type of the file: 16-bit values stay 16-bit, and attention widens them when it reads them.
type Cache[T tensor.Real] struct {
	Batch, Heads, Size int
	Past, Fresh, Total int // rows of a head: of the past, new ones, of the cache
	// First is where the new rows of each batch entry begin; nil means after the whole past. Rows
	// between and after are zero.
	First []int
	// Make computes new row r of a head from the given one; nil for a copy.
	Make func(dst, src []T, b, h, r int)
}

// CacheWorkspace allocates a cache of n elements that is not an output, in the type of the past, if
// present.
func CacheWorkspace[T tensor.Real](c *op.Call, past *tensor.Tensor, n int) *tensor.Tensor {
	kind := cacheType[T](past)
	return &tensor.Tensor{Type: kind, Shape: []int{n}, Data: c.Scratch(kind.Bytes(n))}
}

func cacheType[T tensor.Real](past *tensor.Tensor) tensor.Type {
	var zero T
	switch _, single := any(zero).(float32); {
	case past != nil:
		return past.Type
	case single:
		return tensor.Float32
	}
	return tensor.Float64
}

// Fill fills to from the past, nil if absent, and new rows. If both are the same memory, it writes
// the new rows only. It returns the view of all.
func (q Cache[T]) Fill(p *workers.Pool, past *tensor.Tensor, fresh Heads[T], to *tensor.Tensor) Heads[T] {
	workers.Each(p, q.Batch*q.Heads, max(1, pieceCopy/max(1, q.Total*q.Size)), filling[T]{q, past, to, fresh})
	all := SplitHeads[T](nil, q.Total, q.Heads, q.Size)
	if to.Type.IsHalf() {
		all.Halves = to
	} else {
		all.Data = tensor.Of[T](to)
	}
	return all
}

// filling holds the arguments of a work item of filling a cache.
type filling[T tensor.Real] struct {
	Cache[T]
	past, to *tensor.Tensor
	fresh    Heads[T]
}

// Piece fills heads lo to hi.
func (q filling[T]) Piece(lo, hi int) {
	row := q.Size * q.to.Type.Bits() / 8
	for n := lo; n < hi; n++ {
		b, h, first := n/q.Heads, n%q.Heads, q.Past
		if q.First != nil {
			first = q.First[b]
		}
		if q.past != nil && op.SameMemory(q.past.Data, q.to.Data) {
			q.rows(b, h, n*q.Total+first)
			continue
		}
		head, done := q.to.Data[n*q.Total*row:][:q.Total*row], 0
		if q.past != nil {
			done = copy(head, q.past.Data[n*q.Past*row:][:min(first, q.Past)*row])
		}
		clear(head[done : first*row])
		q.rows(b, h, n*q.Total+first)
		clear(head[(first+q.Fresh)*row:])
	}
}

// rows writes the new rows of a head from row at of the cache on.
func (q *filling[T]) rows(b, h, at int) {
	if q.to.Type.IsHalf() {
		r := blocks.Get().(*block)
		r.query = elem.Grow(r.query, q.Size)
		for i := range q.Fresh {
			row := q.fresh.At(b, h, i, q.Size)
			if q.Make != nil {
				made := any(r.query).([]T)
				q.Make(made, row, b, h, i)
				row = made
			}
			elem.WriteHalves(q.to, (at+i)*q.Size, any(row).([]float32))
		}
		blocks.Put(r)
		return
	}
	to := tensor.Of[T](q.to)[at*q.Size:]
	for i := range q.Fresh {
		dst, src := to[i*q.Size:][:q.Size], q.fresh.At(b, h, i, q.Size)
		if q.Make != nil {
			q.Make(dst, src, b, h, i)
		} else {
			copy(dst, src)
		}
	}
}
