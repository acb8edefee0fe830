package attention

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

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

// Fill fills to from the past, nil if absent, and new rows. It returns the view of all.
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
