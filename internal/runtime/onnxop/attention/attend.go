package attention

import (
	"math"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/vecmath"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
)

// Heads is a view of query, key or value vectors: element d of row r of head h of batch b is at
// b*Batch + h*Head + r*Row + d.
type Heads[T tensor.Real] struct {
	Data             []T
	Batch, Head, Row int
	// Halves, if not nil, replaces Data: keys or values of a float32 attention stored in a 16-bit
	// cache.
	Halves *tensor.Tensor
}

// PackedHeads views [batch, rows, heads*size].
func PackedHeads[T tensor.Real](v []T, rows, heads, size int) Heads[T] {
	return Heads[T]{Data: v, Batch: rows * heads * size, Head: size, Row: heads * size}
}

// SplitHeads views [batch, heads, rows, size].
func SplitHeads[T tensor.Real](v []T, rows, heads, size int) Heads[T] {
	return Heads[T]{Data: v, Batch: rows * heads * size, Head: rows * size, Row: size}
}

// At returns the row of a head.
func (v Heads[T]) At(b, h, r, size int) []T { return v.Data[b*v.Batch+h*v.Head+r*v.Row:][:size] }

// Added is added to scores: the value for query row i of head h of batch b and key j is at
// b*Batch + h*Head + i*Row + j*Key. -Inf masks the key out. Key is 0 or 1. Without Data nothing
// is added.
type Added[T tensor.Real] struct {
	Data                  []T
	Batch, Head, Row, Key int
}

// at returns the values for keys from from on.
func (d *Added[T]) at(b, h, i, from int) []T { return d.Data[b*d.Batch+h*d.Head+i*d.Row+from*d.Key:] }

// Attend is scaled dot-product attention over views. It serves one run at a time.
type Attend[T tensor.Real] struct {
	Batch, Heads, KVHeads int // Heads is a multiple of KVHeads
	Rows, Total           int // queries, keys
	Size, VSize           int
	Scale, Softcap        float64
	// Products says that keys are stored in columns, element d of key r at r + d*Row, and that a
	// row without valid keys is NaN, as for a MatMul and its softmax.
	Products bool
	// Span returns the range of keys that a query row may see by its position; it may exceed the
	// keys. Nil means all. Outside is added to the scores of other keys: -Inf, or the lowest
	// finite number.
	Span    func(b, i int) (from, to int)
	Outside T
	// Added are added to the scores of keys in the span.
	Added [2]Added[T]
	// Sink returns the score of one more key of each head, without a value; nil for none.
	Sink func(h int) float64
	// Trace, if not nil, receives a copy of the scores (one row of Total per call) at Stage: 0
	// products, 1 after the soft cap, 2 after the bias, 3 after the softmax.
	Trace func(b, h, i int, scores []T)
	Stage int

	limits [][2]int // keys that count, of each row of a batch row; see [Attend.setLimits]
}

// Run computes y from q, k and v.
func (a *Attend[T]) Run(p *workers.Pool, q, k, v, y Heads[T]) {
	if f, ok := any(a).(*Attend[float32]); ok {
		runBlocks(p, blockArgs{a: f, q: *any(&q).(*Heads[float32]), k: *any(&k).(*Heads[float32]), v: *any(&v).(*Heads[float32]), y: *any(&y).(*Heads[float32])})
		return
	}
	a.runRows(p, q, k, v, y)
}

// runRows computes row by row.
func (a *Attend[T]) runRows(p *workers.Pool, q, k, v, y Heads[T]) {
	group := a.Heads / max(a.KVHeads, 1)
	p.For(a.Batch*a.Heads*a.Rows, max(1, 1<<13/max(a.Total*a.Size, 1)), func(lo, hi int) {
		s := make([]T, a.Total)
		for n := lo; n < hi; n++ {
			i, h, b := n%a.Rows, n/a.Rows%a.Heads, n/a.Rows/a.Heads
			row := q.At(b, h, i, a.Size)
			for j := range s {
				s[j] = a.score(row, &k, b, h/group, j) * T(a.Scale)
			}
			scale := a.finish(b, h, i, 0, s)
			out := y.At(b, h, i, a.VSize)
			clear(out)
			for j, w := range s {
				if w *= scale; w == 0 {
					continue
				}
				for d, e := range v.At(b, h/group, j, a.VSize) {
					out[d] += w * e
				}
			}
		}
	})
}

// score returns the product of a query with a key.
func (a *Attend[T]) score(row []T, k *Heads[T], b, h, j int) T {
	if !a.Products {
		return matmul.Inner(row, k.At(b, h, j, a.Size))
	}
	var sum T
	for d, v := range row {
		sum += v * k.Data[b*k.Batch+h*k.Head+d*k.Row+j]
	}
	return sum
}

// finish converts s, the products of one query row with the keys starting at from, to weights.
// The weights must be multiplied by the returned factor.
func (a *Attend[T]) finish(b, h, i, from int, s []T) (scale T) {
	a.trace(0, b, h, i, s)
	if a.Softcap > 0 {
		capScores(s, a.Softcap)
	}
	a.trace(1, b, h, i, s)
	a.add(b, h, i, from, s)
	a.trace(2, b, h, i, s)
	if a.Sink != nil {
		scale = weigh(s, T(a.Sink(h)))
	} else {
		scale = weigh(s, T(math.Inf(-1)))
	}
	if scale == 0 && a.Products {
		return T(math.NaN())
	}
	if a.Trace != nil && a.Stage == 3 {
		for j := range s {
			s[j] *= scale
		}
		a.trace(3, b, h, i, s)
		return 1
	}
	return scale
}

// span returns Span limited to n keys.
func (a *Attend[T]) span(b, i, n int) (from, to int) {
	if a.Span == nil {
		return 0, n
	}
	from, to = a.Span(b, i)
	from = min(max(from, 0), n)
	return from, min(max(to, from), n)
}

// add adds the biases to the scores of the keys starting at from.
func (a *Attend[T]) add(b, h, i, from int, s []T) {
	lo, hi := a.span(b, i, a.Total)
	lo, hi = min(max(lo-from, 0), len(s)), min(max(hi-from, 0), len(s))
	outside(s[:lo], a.Outside)
	outside(s[max(lo, hi):], a.Outside)
	for n := range a.Added {
		if d := &a.Added[n]; d.Data != nil && lo < hi {
			addTo(s[lo:hi], d.at(b, h, i, from+lo), d.Key)
		}
	}
}

// outside adds v, the lowest number or -Inf.
func outside[T tensor.Real](s []T, v T) {
	for j := range s {
		if s[j] += v; math.IsInf(float64(v), -1) {
			s[j] = v // whatever the product was, NaN included
		}
	}
}

// addTo adds values, or the same value to all if key is 0.
func addTo[T tensor.Real](s, d []T, key int) {
	f, ok := any(s).([]float32)
	if ok && key == 1 {
		g := any(d).([]float32)[:len(f)]
		element.AddTo(f, f, g)
		if math.IsNaN(float64(element.MaxOf(f))) {
			for j, v := range g {
				if math.IsInf(float64(v), -1) {
					f[j] = v
				}
			}
		}
		return
	}
	for j := range s {
		v := d[j*key]
		if s[j] += v; math.IsInf(float64(v), -1) {
			s[j] = v
		}
	}
}

// capScores soft-caps scores at limit.
func capScores[T tensor.Real](s []T, limit float64) {
	if f, ok := any(s).([]float32); ok {
		element.Scale(f, f, float32(1/limit))
		vecmath.TanhTo(f, f)
		element.Scale(f, f, float32(limit))
		return
	}
	for j, v := range s {
		s[j] = T(limit * math.Tanh(float64(v)/limit))
	}
}

func (a *Attend[T]) trace(stage, b, h, i int, s []T) {
	if a.Trace != nil && a.Stage == stage {
		a.Trace(b, h, i, s)
	}
}

// Softmax normalises one row in place. A row of only -Inf becomes zeros.
func Softmax[T tensor.Real](s []T) {
	scale := weigh(s, T(math.Inf(-1)))
	if f, ok := any(s).([]float32); ok {
		element.Scale(f, f, float32(scale))
		return
	}
	for j := range s {
		s[j] *= scale
	}
}

// weigh replaces scores by exponentials and returns the inverse of their sum, which includes the
// score sink; -Inf for none. A row of only -Inf becomes zeros, with an inverse of 0.
func weigh[T tensor.Real](s []T, sink T) (scale T) {
	f, vectors := any(s).([]float32)
	top := sink
	if vectors {
		top = max(top, T(element.MaxOf(f)))
	} else {
		for _, v := range s {
			top = max(top, v)
		}
	}
	if math.IsInf(float64(top), -1) {
		clear(s)
		return 0
	}
	var sum T
	if !math.IsInf(float64(sink), -1) {
		sum = T(math.Exp(float64(sink - top)))
	}
	if vectors {
		return 1 / (sum + T(vecmath.ExpSumTo(f, f, float32(top))))
	}
	for j, v := range s {
		e := T(math.Exp(float64(v - top)))
		s[j] = e
		sum += e
	}
	return 1 / sum
}
