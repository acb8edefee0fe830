package attention

import (
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Cache puts new keys or values behind those of earlier runs, as [batch, heads, rows, size] in the type of the file: halves stay halves, which
// attention widens where it reads them.
type Cache[T tensor.Real] struct {
	Batch, Heads, Size int
	Past, Fresh, Total int // rows of a head: of the past, new ones, of the cache
	// First is where the new rows of each batch row begin, nil for behind all of the past. What lies between and behind is zero.
	First []int
	// Make writes new row r of a head, of what is given for it; nil for a copy.
	Make func(dst, src []T, b, h, r int)
}

// CacheRoom is memory for a cache of n elements that no output takes, of the type of the past, if there is one.
func CacheRoom[T tensor.Real](c *op.Call, past *tensor.Tensor, n int) *tensor.Tensor {
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

// Fill makes to of the past, nil for none, and new rows. It returns the view of all.
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

// filling is what a piece of filling a cache needs.
type filling[T tensor.Real] struct {
	Cache[T]
	past, to *tensor.Tensor
	fresh    Heads[T]
}

// Piece fills those of heads lo to hi.
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
