package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/attention"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/norm"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// fusedAttention is the geometry of com.microsoft's Attention and MultiHeadAttention.
type fusedAttention struct {
	batch, heads, rows, fresh, past int
	in, size, vsize                 int
	hidden, vhidden                 int
	scale, filter                   float64
	causal                          bool
	maskKind                        int
	// Inputs with mask, past state and additive bias of the scores, -1 for none.
	maskAt, pastAt, addAt int
}

// Layouts of a key mask.
const (
	maskNone   = iota
	maskEnd    // [B]: number of valid keys
	maskRange  // [2B]: ends, then starts
	maskKeys   // [B,T]: 1 for valid keys
	maskScores // [B,S,T]
	maskSquare // [B,1,M,M], M at least T
	maskCumul  // [3B+2]: lengths, then cumulative ones
)

func (t *fusedAttention) total() int { return t.past + t.fresh }

func (t *fusedAttention) options(c *op.Call) error {
	a := c.Node.Attrs
	t.heads = a.Int("num_heads", 0)
	if t.heads < 1 {
		return fmt.Errorf("num_heads %d", t.heads)
	}
	t.causal, t.filter, t.scale = a.Bool("unidirectional", false), float64(a.Float("mask_filter_value", -10000)), float64(a.Float("scale", 0))
	return nil
}

func (t *fusedAttention) checkMask(m *tensor.Tensor) error {
	if m == nil {
		return nil
	}
	if m.Type != tensor.Int32 {
		return op.Unsupported("mask of %v", m.Type)
	}
	s := m.Shape
	switch {
	case len(s) == 1 && s[0] == t.batch:
		t.maskKind = maskEnd
	case len(s) == 1 && s[0] == 2*t.batch:
		t.maskKind = maskRange
	case len(s) == 1 && s[0] == 3*t.batch+2:
		t.maskKind = maskCumul
	case slices.Equal(s, []int{t.batch, t.total()}):
		t.maskKind = maskKeys
	case slices.Equal(s, []int{t.batch, t.rows, t.total()}):
		t.maskKind = maskScores
	case len(s) == 4 && s[0] == t.batch && s[1] == 1 && s[2] == s[3] && s[2] >= t.total():
		t.maskKind = maskSquare
	default:
		return fmt.Errorf("mask %s for %d x %d scores", tensor.FormatShape(s), t.rows, t.total())
	}
	return nil
}

// maskRows returns the number of rows of scores for which a mask differs, in each batch entry.
func (t *fusedAttention) maskRows() int {
	if t.maskKind == maskScores || t.maskKind == maskSquare {
		return t.rows
	}
	return 1
}

// fillMask writes the additive mask for query i: least for masked keys, zero for others.
func fillMask[T tensor.Real](t *fusedAttention, mask []int32, side, b, i int, dst []T, least T) {
	from, to := 0, len(dst) // of ranges
	switch t.maskKind {
	case maskEnd, maskCumul:
		to = int(mask[b])
	case maskRange:
		from, to = int(mask[t.batch+b]), int(mask[b])
	case maskKeys:
		mask = mask[b*t.total():]
	case maskScores:
		mask = mask[(b*t.rows+i)*t.total():]
	case maskSquare:
		mask = mask[(b*side+t.past+i)*side:]
	}
	if t.maskKind == maskEnd || t.maskKind == maskCumul || t.maskKind == maskRange {
		for j := range dst {
			if dst[j] = 0; j < from || j >= to {
				dst[j] = least
			}
		}
		return
	}
	for j, v := range mask[:len(dst)] {
		if dst[j] = 0; v <= 0 {
			dst[j] = least
		}
	}
}

// fusedBias combines mask, causal limit and the additive input.
type fusedBias[T tensor.Real] struct {
	t       *fusedAttention
	mask    []T   // what the mask adds; nil for none
	strides []int // of the additive input
	side    int   // of a square mask
	fill    func(c *op.Call, lo, hi int)
}

// newFusedBias returns nil if nothing is added. It sets which keys an attention sees.
func newFusedBias[T tensor.Real](c *op.Call, t *fusedAttention, a *attention.Attend[T]) (*fusedBias[T], error) {
	f := &fusedBias[T]{t: t}
	f.fill = f.maskRows
	a.Outside = T(-math.MaxFloat32)
	if t.causal {
		a.Span = func(_, i int) (from, to int) { return 0, t.past + i + 1 }
	}
	if !c.Has(t.maskAt) && !c.Has(t.addAt) {
		return nil, nil
	}
	if c.Has(t.addAt) {
		shape := c.In[t.addAt].Shape
		if _, err := norm.NewSpread([]int{t.batch, t.heads, t.rows, t.total()}, shape, 3); err != nil {
			return nil, err
		}
		f.strides = matmul.BroadcastStrides(shape, 4)
	}
	if c.Has(t.maskAt) {
		f.mask = op.ScratchOf[T](c, t.batch*t.maskRows()*t.total())
		if t.maskKind == maskSquare {
			f.side = c.In[t.maskAt].Shape[3]
		}
	}
	return f, nil
}

// bind reads the values of a run.
func (f *fusedBias[T]) bind(c *op.Call, a *attention.Attend[T]) {
	if f == nil {
		return
	}
	t := f.t
	if f.mask != nil {
		rows := t.maskRows()
		workers.Do(c.Pool, t.batch*rows, max(1, 1<<13/max(1, t.total())), c, f.fill)
		a.Added[0] = attention.Added[T]{Data: f.mask, Batch: rows * t.total(), Key: 1}
		if rows > 1 {
			a.Added[0].Row = t.total()
		}
	}
	if s := f.strides; s != nil {
		a.Added[1] = attention.Added[T]{Data: elem.Elements[T](c, t.addAt), Batch: s[0], Head: s[1], Row: s[2], Key: s[3]}
	}
}

// maskRows makes rows lo to hi of the mask.
func (f *fusedBias[T]) maskRows(c *op.Call, lo, hi int) {
	t, mask := f.t, elem.Elements[int32](c, f.t.maskAt)
	rows, total, least := t.maskRows(), t.total(), max(T(t.filter), T(-math.MaxFloat32))
	for n := lo; n < hi; n++ {
		fillMask(t, mask, f.side, n/rows, n%rows, f.mask[n*total:][:total], least)
	}
}

// Attention (com.microsoft): x [B,S,I], weights [I, q+k+v], bias, mask_index, past
// [2,B,N,P,D], attention_bias.

func newFusedAttention(c *op.Call) (*fusedAttention, error) {
	x, w := c.In[0].Shape, c.In[1].Shape
	t := &fusedAttention{maskAt: 3, pastAt: 4, addAt: 5}
	if c.Node.Op == "QAttention" {
		t.maskAt, t.pastAt, t.addAt = 5, 8, -1
	}
	if err := t.options(c); err != nil {
		return nil, err
	}
	if len(x) != 3 || len(w) != 2 || w[0] != x[2] {
		return nil, fmt.Errorf("input %s, weights %s", tensor.FormatShape(x), tensor.FormatShape(w))
	}
	for _, name := range []string{"do_rotary", "past_present_share_buffer"} {
		if c.Node.Attrs.Bool(name, false) {
			return nil, op.Unsupported("%s with %s", c.Node.Op, name)
		}
	}
	if err := leavesOut(c, max(t.maskAt, t.pastAt, t.addAt)+1); err != nil {
		return nil, err
	}
	t.batch, t.rows, t.in = x[0], x[1], x[2]
	t.fresh = t.rows
	t.hidden, t.vhidden = w[1]/3, w[1]/3
	if s := c.Node.Attrs.Ints("qkv_hidden_sizes"); len(s) == 3 {
		t.hidden, t.vhidden = s[0], s[2]
		if s[0] != s[1] {
			return nil, fmt.Errorf("qkv_hidden_sizes %v", s)
		}
	}
	if 2*t.hidden+t.vhidden != w[1] || t.hidden%t.heads != 0 || t.vhidden%t.heads != 0 {
		return nil, fmt.Errorf("weights %s for %d heads", tensor.FormatShape(w), t.heads)
	}
	t.size, t.vsize = t.hidden/t.heads, t.vhidden/t.heads
	if b := c.Input(2); b != nil && b.Len() != w[1] {
		return nil, fmt.Errorf("bias %s for weights %s", tensor.FormatShape(b.Shape), tensor.FormatShape(w))
	}
	if p := c.Input(t.pastAt); p != nil {
		if p.Rank() != 5 || t.size != t.vsize || !slices.Equal(p.Shape, []int{2, t.batch, t.heads, p.Shape[3], t.size}) {
			return nil, fmt.Errorf("past %s", tensor.FormatShape(p.Shape))
		}
		t.past = p.Shape[3]
	}
	if t.scale == 0 {
		t.scale = 1 / math.Sqrt(float64(t.size))
	}
	return t, t.checkMask(c.Input(t.maskAt))
}

// leavesOut fails if the node has input n or a later one: they are not read.
func leavesOut(c *op.Call, n int) error {
	for ; n < len(c.In); n++ {
		if c.Has(n) {
			return op.Unsupported("%s with input %d", c.Node.Op, n)
		}
	}
	return nil
}

func inferFusedAttention(c *op.Call) error {
	t, err := newFusedAttention(c)
	if err != nil {
		return err
	}
	t.outputs(c, c.In[0].Type)
	return nil
}

func (t *fusedAttention) outputs(c *op.Call, kind tensor.Type) {
	c.SetOut(0, kind, []int{t.batch, t.rows, t.vhidden})
	c.SetOut(1, kind, []int{2, t.batch, t.heads, t.total(), t.size})
}

func prepareFusedAttention[T tensor.Real](c *op.Call) (op.Run, error) {
	t := op.Must(newFusedAttention(c))
	n := 2*t.hidden + t.vhidden
	project := newProjection[T](c, t.batch*t.rows, n, t.in, 1)
	return runFusedAttention(c, t, func(c *op.Call, qkv []T) {
		project(c, tensor.Of[T](c.In[0]), elem.Elements[T](c, 2), qkv)
	})
}

// runFusedAttention attends to the result of project on the input: rows of query, key and value.
func runFusedAttention[T tensor.Real](c *op.Call, t *fusedAttention, project func(c *op.Call, qkv []T)) (op.Run, error) {
	n := 2*t.hidden + t.vhidden
	qkv := op.ScratchOf[T](c, t.batch*t.rows*n)
	keep := t.past > 0 || c.Wants(1)
	var workspace *tensor.Tensor
	if keep && !c.Wants(1) {
		workspace = attention.CacheWorkspace[T](c, c.Input(t.pastAt), 2*t.batch*t.heads*t.total()*t.size)
	}
	cache := attention.Cache[T]{Batch: t.batch, Heads: t.heads, Size: t.size, Past: t.past, Fresh: t.fresh, Total: t.total()}
	var halves [3]halfState
	a := attention.Attend[T]{Batch: t.batch, Heads: t.heads, KVHeads: t.heads, Rows: t.rows, Total: t.total(), Size: t.size, VSize: t.vsize, Scale: t.scale}
	bias, err := newFusedBias(c, t, &a)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		project(c, qkv)
		view := func(at, size int) attention.Heads[T] {
			return attention.Heads[T]{Data: qkv[at:], Batch: t.rows * n, Head: size, Row: n}
		}
		q, k, v := view(0, t.size), view(t.hidden, t.size), view(2*t.hidden, t.vsize)
		if keep {
			past, present := c.Input(t.pastAt), workspace
			if c.Wants(1) {
				present = c.Out[1]
			}
			k = cache.Fill(c.Pool, halves[0].set(past, 0), k, halves[1].set(present, 0))
			v = cache.Fill(c.Pool, halves[0].set(past, 1), v, halves[2].set(present, 1))
		}
		bias.bind(c, &a)
		a.Run(c.Pool, q, k, v, attention.PackedHeads(tensor.Of[T](c.Out[0]), t.rows, t.heads, t.vsize))
		return nil
	}, nil
}

// halfState is the half of a state that holds keys (0) or values (1).
type halfState struct{ tensor.Tensor }

func (h *halfState) set(x *tensor.Tensor, i int) *tensor.Tensor {
	if x == nil {
		return nil
	}
	n := len(x.Data) / 2
	h.Type, h.Data = x.Type, x.Data[i*n:][:n]
	return &h.Tensor
}

// MultiHeadAttention: query, key, value, bias, key_padding_mask, attention_bias,
// past_key, past_value. Query alone may hold all three as [B,S,N,3,D], key may hold
// key and value as [B,L,N,2,D]; key and value may be [B,N,L,D].

func newMultiHead(c *op.Call) (*fusedAttention, error) {
	t := &fusedAttention{maskAt: 4, pastAt: 6, addAt: 5}
	if err := t.options(c); err != nil {
		return nil, err
	}
	if err := leavesOut(c, 8); err != nil { // a buffer for the caches, beams
		return nil, err
	}
	q := c.In[0].Shape
	k, v := c.Input(1), c.Input(2)
	bad := fmt.Errorf("query %s with key and value", tensor.FormatShape(q))
	switch {
	case len(q) == 5 && k == nil && v == nil && q[2] == t.heads && q[3] == 3:
		t.hidden = q[2] * q[4]
		t.fresh, t.vhidden = q[1], t.hidden
	case len(q) == 3 && k != nil && k.Rank() == 5 && v == nil && k.Shape[2] == t.heads && k.Shape[3] == 2:
		t.hidden, t.fresh = q[2], k.Shape[1]
		t.vhidden = t.hidden
		if k.Shape[4]*t.heads != t.hidden || k.Shape[0] != q[0] {
			return nil, bad
		}
	case len(q) == 3 && k != nil && v != nil && k.Rank() == 3 && v.Rank() == 3 && k.Shape[2] == q[2]:
		t.hidden, t.fresh, t.vhidden = q[2], k.Shape[1], v.Shape[2]
		if k.Shape[0] != q[0] || v.Shape[0] != q[0] || v.Shape[1] != t.fresh {
			return nil, bad
		}
	case len(q) == 3 && k != nil && v != nil && k.Rank() == 4 && v.Rank() == 4 && k.Shape[1] == t.heads && v.Shape[1] == t.heads:
		t.hidden, t.fresh, t.vhidden = q[2], k.Shape[2], v.Shape[3]*t.heads
		if k.Shape[0] != q[0] || v.Shape[0] != q[0] || v.Shape[2] != t.fresh || k.Shape[3]*t.heads != q[2] {
			return nil, bad
		}
	default:
		return nil, bad
	}
	t.batch, t.rows = q[0], q[1]
	if t.hidden%t.heads != 0 || t.vhidden%t.heads != 0 {
		return nil, fmt.Errorf("%w and %d heads", bad, t.heads)
	}
	t.size, t.vsize = t.hidden/t.heads, t.vhidden/t.heads
	if b := c.Input(3); b != nil && b.Len() != 2*t.hidden+t.vhidden {
		return nil, fmt.Errorf("bias %s", tensor.FormatShape(b.Shape))
	}
	if p := c.Input(t.pastAt); p != nil {
		if pv := c.Input(t.pastAt + 1); pv == nil || p.Rank() != 4 || !slices.Equal(p.Shape, []int{t.batch, t.heads, p.Shape[2], t.size}) ||
			!slices.Equal(pv.Shape, []int{t.batch, t.heads, p.Shape[2], t.vsize}) {
			return nil, fmt.Errorf("past key %s", tensor.FormatShape(p.Shape))
		}
		t.past = p.Shape[2]
	}
	if t.scale == 0 {
		t.scale = 1 / math.Sqrt(float64(t.size))
	}
	return t, t.checkMask(c.Input(t.maskAt))
}

func inferMultiHead(c *op.Call) error {
	t, err := newMultiHead(c)
	if err != nil {
		return err
	}
	kind := c.In[0].Type
	c.SetOut(0, kind, []int{t.batch, t.rows, t.vhidden})
	c.SetOut(1, kind, []int{t.batch, t.heads, t.total(), t.size})
	c.SetOut(2, kind, []int{t.batch, t.heads, t.total(), t.vsize})
	c.SetOut(3, kind, []int{t.batch, t.heads, t.rows, t.total()})
	return nil
}

func prepareMultiHead[T tensor.Real](c *op.Call) (op.Run, error) {
	t := op.Must(newMultiHead(c))
	// Without bias, past and state outputs, query, key and value are read in place.
	var workspace [3]*tensor.Tensor
	keep := c.Has(3) || t.past > 0
	caches := [3]attention.Cache[T]{
		{Heads: t.heads, Size: t.size, Fresh: t.rows, Total: t.rows},
		{Heads: t.heads, Size: t.size, Past: t.past, Fresh: t.fresh, Total: t.total()},
		{Heads: t.heads, Size: t.vsize, Past: t.past, Fresh: t.fresh, Total: t.total()},
	}
	bias := &rowBias[T]{t: t}
	for i := range caches {
		q := &caches[i]
		if q.Batch = t.batch; c.Has(3) {
			q.Make = bias.adds(i)
		}
		if i == 0 && c.Has(3) || i > 0 && keep && !c.Wants(i) {
			var past *tensor.Tensor
			if i > 0 {
				past = c.Input(t.pastAt + i - 1)
			}
			workspace[i] = attention.CacheWorkspace[T](c, past, q.Batch*q.Heads*q.Total*q.Size)
		}
	}
	a := attention.Attend[T]{Batch: t.batch, Heads: t.heads, KVHeads: t.heads, Rows: t.rows, Total: t.total(), Size: t.size, VSize: t.vsize, Scale: t.scale}
	added, err := newFusedBias(c, t, &a)
	if err != nil {
		return nil, err
	}
	return func(c *op.Call) error {
		var views [3]attention.Heads[T]
		views[0], views[1], views[2] = multiHeadViews[T](c, t)
		bias.of = elem.Elements[T](c, 3)
		for i := range views {
			to, past := workspace[i], (*tensor.Tensor)(nil)
			if i > 0 {
				if past = c.Input(t.pastAt + i - 1); c.Wants(i) {
					to = c.Out[i]
				}
			}
			if to != nil {
				views[i] = caches[i].Fill(c.Pool, past, views[i], to)
			}
		}
		added.bind(c, &a)
		if c.Wants(3) {
			qk := tensor.Of[T](c.Out[3])
			a.Stage = 2 // with mask and bias
			a.Trace = func(b, h, i int, s []T) { copy(qk[((b*t.heads+h)*t.rows+i)*t.total():], s) }
		}
		a.Run(c.Pool, views[0], views[1], views[2], attention.PackedHeads(tensor.Of[T](c.Out[0]), t.rows, t.heads, t.vsize))
		return nil
	}, nil
}

// rowBias is added to rows of query, key and value.
type rowBias[T tensor.Real] struct {
	t  *fusedAttention
	of []T
}

// adds returns the function that computes rows of the query (0), the key (1) or the value (2).
func (q *rowBias[T]) adds(i int) func(dst, src []T, b, h, r int) {
	from, size := i*q.t.hidden, q.t.size
	if i == 2 {
		size = q.t.vsize
	}
	return func(dst, src []T, _, h, _ int) { element.AddTo(dst, src, q.of[from+h*size:][:size]) }
}

// multiHeadViews finds query, key and value in the inputs.
func multiHeadViews[T tensor.Real](c *op.Call, t *fusedAttention) (q, k, v attention.Heads[T]) {
	x := tensor.Of[T](c.In[0])
	if c.In[0].Rank() == 5 {
		part := func(i int) attention.Heads[T] {
			return attention.Heads[T]{Data: x[i*t.size:], Batch: t.rows * 3 * t.hidden, Head: 3 * t.size, Row: 3 * t.hidden}
		}
		return part(0), part(1), part(2)
	}
	q = attention.PackedHeads(x, t.rows, t.heads, t.size)
	y := tensor.Of[T](c.In[1])
	switch c.In[1].Rank() {
	case 5:
		part := func(i int) attention.Heads[T] {
			return attention.Heads[T]{Data: y[i*t.size:], Batch: t.fresh * 2 * t.hidden, Head: 2 * t.size, Row: 2 * t.hidden}
		}
		return q, part(0), part(1)
	case 4:
		return q, attention.SplitHeads(y, t.fresh, t.heads, t.size), attention.SplitHeads(tensor.Of[T](c.In[2]), t.fresh, t.heads, t.vsize)
	}
	return q, attention.PackedHeads(y, t.fresh, t.heads, t.size), attention.PackedHeads(tensor.Of[T](c.In[2]), t.fresh, t.heads, t.vsize)
}
