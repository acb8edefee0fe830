package attention

import (
	"math"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/vecmath"
	"github.com/opmeter/opmeter/internal/workers"
)

// Heads views query, key or value vectors: element d of row r of head h of batch b
// lies at b*Batch + h*Head + r*Row + d.
type Heads[T tensor.Real] struct {
	Data             []T
	Batch, Head, Row int
}

// PackedHeads views [batch, rows, heads*size].
func PackedHeads[T tensor.Real](v []T, rows, heads, size int) Heads[T] {
	return Heads[T]{v, rows * heads * size, size, heads * size}
}

// SplitHeads views [batch, heads, rows, size].
func SplitHeads[T tensor.Real](v []T, rows, heads, size int) Heads[T] {
	return Heads[T]{v, rows * heads * size, rows * size, size}
}

// At is the row of a head.
func (v Heads[T]) At(b, h, r, size int) []T {
	return v.Data[b*v.Batch+h*v.Head+r*v.Row:][:size]
}

// CopyTo writes rows of all heads into dst at row offset to.
func (v Heads[T]) CopyTo(dst Heads[T], batch, heads, rows, size, to int) {
	for b := range batch {
		for h := range heads {
			if v.Row == size && dst.Row == size && rows > 0 {
				copy(dst.Data[b*dst.Batch+h*dst.Head+to*size:], v.Data[b*v.Batch+h*v.Head:][:rows*size])
				continue
			}
			for r := range rows {
				copy(dst.At(b, h, to+r, size), v.At(b, h, r, size))
			}
		}
	}
}

// Attend is scaled dot-product attention over views.
type Attend[T tensor.Real] struct {
	Batch, Heads, KVHeads int // Heads is a multiple of KVHeads
	Rows, Total           int // queries, keys
	Size, VSize           int
	Scale, Softcap        float64
	// Bias adds to the scores of one query row; -Inf takes a key out. May be nil.
	Bias func(b, h, i int, bias []T)
	// Keys is the number of keys to look at for a batch row, nil for all.
	Keys func(b int) int
	// Sink is the score of one more key of each head, without a value; nil for none.
	Sink func(h int) float64
	// Trace, if not nil, takes a copy of the scores (one row of Total a call) at
	// Stage: 0 products, 1 after the soft cap, 2 after the bias, 3 after the softmax.
	Trace func(b, h, i int, scores []T)
	Stage int
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
		buf := make([]T, 2*a.Total)
		for n := lo; n < hi; n++ {
			i, h, b := n%a.Rows, n/a.Rows%a.Heads, n/a.Rows/a.Heads
			total := a.Total
			if a.Keys != nil {
				total = min(total, a.Keys(b))
			}
			s, row := buf[:total], q.At(b, h, i, a.Size)
			for j := range s {
				s[j] = matmul.Inner(row, k.At(b, h/group, j, a.Size)) * T(a.Scale)
			}
			var bias []T
			if a.Bias != nil {
				bias = buf[a.Total:][:total]
				clear(bias)
				a.Bias(b, h, i, bias)
			}
			a.finish(b, h, i, s, bias)
			out := y.At(b, h, i, a.VSize)
			clear(out)
			for j, w := range s {
				if w == 0 {
					continue
				}
				for d, e := range v.At(b, h/group, j, a.VSize) {
					out[d] += w * e
				}
			}
		}
	})
}

// finish turns the products of one query row, s, into weights; bias is added to them, nil for none.
func (a *Attend[T]) finish(b, h, i int, s, bias []T) {
	a.trace(0, b, h, i, s)
	if a.Softcap > 0 {
		capScores(s, a.Softcap)
	}
	a.trace(1, b, h, i, s)
	for j, v := range bias {
		if s[j] += v; math.IsInf(float64(v), -1) {
			s[j] = v // whatever the product was, NaN included
		}
	}
	a.trace(2, b, h, i, s)
	if a.Sink != nil {
		softmaxSink(s, a.Sink(h))
	} else {
		Softmax(s)
	}
	a.trace(3, b, h, i, s)
}

// capScores bends scores so that none is beyond limit.
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

// Softmax normalises one row in place. A row of -Inf alone becomes zeros.
func Softmax[T tensor.Real](s []T) {
	if f, ok := any(s).([]float32); ok {
		if top := element.Top(f); !math.IsInf(float64(top), -1) {
			element.Scale(f, f, 1/vecmath.ExpSumTo(f, f, top))
			return
		}
		clear(s)
		return
	}
	m := T(math.Inf(-1))
	for _, v := range s {
		m = max(m, v)
	}
	if math.IsInf(float64(m), -1) {
		clear(s)
		return
	}
	var sum T
	for j, v := range s {
		e := T(math.Exp(float64(v - m)))
		s[j] = e
		sum += e
	}
	inv := 1 / sum
	for j := range s {
		s[j] *= inv
	}
}

// softmaxSink is Softmax with one more score that takes its share.
func softmaxSink[T tensor.Real](s []T, sink float64) {
	m := T(sink)
	for _, v := range s {
		m = max(m, v)
	}
	sum := math.Exp(sink - float64(m))
	for j, v := range s {
		e := math.Exp(float64(v - m))
		s[j] = T(e)
		sum += e
	}
	for j := range s {
		s[j] = T(float64(s[j]) / sum)
	}
}
