package layout

import (
	"github.com/opmeter/opmeter/internal/tensor"
	"github.com/opmeter/opmeter/internal/workers"
)

// Store moves elements of one representation: the widths of the element types,
// and strings. Data movement never looks at values, so the width is all it needs
// to know.
type Store interface {
	// Move copies a block between two tensors, from element so to element do.
	Move(p *workers.Pool, b *Block, dst, src *tensor.Tensor, do, so int)
	// Copy copies n neighbouring elements.
	Copy(dst, src *tensor.Tensor, do, so, n int)
	// Fill sets n elements of dst, from element do, to element 0 of value.
	Fill(p *workers.Pool, dst, value *tensor.Tensor, do, n int)
	// Pick sets each element of dst to the one of a where cond is not zero and
	// of b otherwise. A stride of 0 repeats an element.
	Pick(dst *tensor.Tensor, cond []uint8, a, b *tensor.Tensor, do, co, ao, bo, n, cs, as, bs int)
}

// StoreFor returns the Store for a type, nil for packed types, containers and
// resources.
func StoreFor(t tensor.Type) Store {
	if t == tensor.String {
		return words[string]{func(x *tensor.Tensor) []string { return x.Strings }}
	}
	switch t.Bits() {
	case 8:
		return words[uint8]{tensor.Of[uint8]}
	case 16:
		return words[uint16]{tensor.Of[uint16]}
	case 32:
		return words[uint32]{tensor.Of[uint32]}
	case 64:
		return words[uint64]{tensor.Of[uint64]}
	case 128:
		return words[complex128]{tensor.Of[complex128]}
	}
	return nil
}

type words[T any] struct{ of func(*tensor.Tensor) []T }

func (w words[T]) Move(p *workers.Pool, b *Block, dst, src *tensor.Tensor, do, so int) {
	Move(p, b, w.of(dst), w.of(src), do, so)
}

func (w words[T]) Copy(dst, src *tensor.Tensor, do, so, n int) {
	copy(w.of(dst)[do:do+n], w.of(src)[so:so+n])
}

func (w words[T]) Fill(p *workers.Pool, dst, value *tensor.Tensor, do, n int) {
	if n == 0 {
		return
	}
	v, d := w.of(value)[0], w.of(dst)[do:do+n]
	if n <= grain {
		fill(d, v)
		return
	}
	p.For(n, grain, func(lo, hi int) { fill(d[lo:hi], v) })
}

func fill[T any](d []T, v T) {
	for i := range d {
		d[i] = v
	}
}

func (w words[T]) Pick(dst *tensor.Tensor, cond []uint8, a, b *tensor.Tensor, do, co, ao, bo, n, cs, as, bs int) {
	d, x, y := w.of(dst)[do:do+n], w.of(a), w.of(b)
	if cs == 1 && as == 1 && bs == 1 {
		c, x, y := cond[co:co+n], x[ao:ao+n], y[bo:bo+n]
		for i := range d {
			if c[i] != 0 {
				d[i] = x[i]
			} else {
				d[i] = y[i]
			}
		}
		return
	}
	for i := range d {
		if cond[co] != 0 {
			d[i] = x[ao]
		} else {
			d[i] = y[bo]
		}
		co += cs
		ao += as
		bo += bs
	}
}

// Zero returns a tensor of one element that stands for real zero: the zero point
// of per-tensor quantised types, an empty string, zero otherwise.
func Zero(t tensor.Type, q *tensor.Quant) *tensor.Tensor {
	x := tensor.New(t)
	if q == nil || len(q.Zero) == 0 {
		return x
	}
	switch z := q.Zero[0]; t {
	case tensor.Int8:
		tensor.Of[int8](x)[0] = int8(z)
	case tensor.Uint8:
		tensor.Of[uint8](x)[0] = uint8(z)
	case tensor.Int16:
		tensor.Of[int16](x)[0] = int16(z)
	}
	return x
}

// Copy copies all elements of src to dst, which has the same type and number of
// elements, unless they are the same memory.
func Copy(p *workers.Pool, dst, src *tensor.Tensor) {
	if dst.Type == tensor.String {
		copy(dst.Strings, src.Strings)
		return
	}
	if dst.Type == tensor.Resource || dst.Type.IsContainer() {
		dst.Strings, dst.Elems = src.Strings, src.Elems
		return
	}
	n := min(len(dst.Data), len(src.Data))
	if n == 0 || &dst.Data[0] == &src.Data[0] {
		return
	}
	if n <= 4*grain {
		copy(dst.Data[:n], src.Data[:n])
		return
	}
	p.For(n, 4*grain, func(lo, hi int) { copy(dst.Data[lo:hi], src.Data[lo:hi]) })
}
